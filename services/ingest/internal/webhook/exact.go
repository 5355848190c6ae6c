package webhook

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// maxDepth bounds the nesting of a payload; GitHub's stay below ten.
const maxDepth = 64

// errJSON is answered with 400.
var errJSON = errors.New("the payload is not the JSON that GitHub sends")

// fields are the members of an object that are read, by their exact names. Others are skipped; one that
// differs only by case is refused, since another parser would read it as ours, and so is a name that
// comes twice, at any depth.
type fields map[string]func(*jsontext.Decoder) error

// object reads one object into fields. null reads as an empty object.
func (f fields) read(dec *jsontext.Decoder) error {
	tok, err := dec.ReadToken()
	if err != nil {
		return err
	}
	switch tok.Kind() {
	case 'n':
		return nil
	case '{':
	default:
		return fmt.Errorf("%w: %s where an object belongs", errJSON, tok.Kind())
	}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return err
		}
		if err := f.member(dec, name.String()); err != nil {
			return err
		}
	}
	_, err = dec.ReadToken()
	return err
}

func (f fields) member(dec *jsontext.Decoder, name string) error {
	if read, ok := f[name]; ok {
		return read(dec)
	}
	for known := range f {
		if strings.EqualFold(known, name) {
			return fmt.Errorf("%w: member %q differs from %q by case", errJSON, clip(name), known)
		}
	}
	return dec.SkipValue()
}

// text reads a string; null reads as empty.
func text(to *string) func(*jsontext.Decoder) error {
	return func(dec *jsontext.Decoder) error {
		tok, err := dec.ReadToken()
		if err != nil {
			return err
		}
		switch tok.Kind() {
		case 'n':
		case '"':
			*to = tok.String()
		default:
			return fmt.Errorf("%w: %s where a string belongs", errJSON, tok.Kind())
		}
		return nil
	}
}

// number reads a whole number of at least zero; null reads as zero.
func number(to *int64) func(*jsontext.Decoder) error {
	return func(dec *jsontext.Decoder) error {
		raw, err := dec.ReadValue()
		if err != nil {
			return err
		}
		if raw.Kind() == 'n' {
			return nil
		}
		n, err := wholeNumber(string(raw))
		if err != nil {
			return err
		}
		*to = n
		return nil
	}
}

// flag reads a boolean; null reads as false.
func flag(to *bool) func(*jsontext.Decoder) error {
	return func(dec *jsontext.Decoder) error {
		tok, err := dec.ReadToken()
		if err != nil {
			return err
		}
		switch tok.Kind() {
		case 'n', 'f':
		case 't':
			*to = true
		default:
			return fmt.Errorf("%w: %s where a boolean belongs", errJSON, tok.Kind())
		}
		return nil
	}
}

// moment reads an RFC 3339 string, or the seconds since 1970 that installation payloads hold.
func moment(to *time.Time) func(*jsontext.Decoder) error {
	return func(dec *jsontext.Decoder) error {
		if dec.PeekKind() == '0' {
			var seconds int64
			err := number(&seconds)(dec)
			*to = time.Unix(seconds, 0).UTC()
			return err
		}
		var s string
		if err := text(&s)(dec); err != nil || s == "" {
			return err
		}
		t, err := time.Parse(time.RFC3339, s)
		if err != nil {
			return fmt.Errorf("%w: a time is not RFC 3339", errJSON)
		}
		*to = t.UTC()
		return nil
	}
}

// present reads nothing but that a member is there and not null.
func present(to *bool) func(*jsontext.Decoder) error {
	return func(dec *jsontext.Decoder) error {
		*to = dec.PeekKind() != 'n'
		return dec.SkipValue()
	}
}
