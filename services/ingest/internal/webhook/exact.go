package webhook

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// maxDepth bounds the nesting of a payload; GitHub's stay below ten.
const maxDepth = 64

// errJSON is answered with 400.
var errJSON = errors.New("the payload is not the JSON that GitHub sends")

// errCase is an errJSON that is never let pass.
var errCase = errors.New("a member's name differs from ours by case")

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
			return fmt.Errorf("%w: %w: %q and %q", errJSON, errCase, clip(name), known)
		}
	}
	return dec.SkipValue()
}

// maxText bounds a string that is read, in characters: the scheduler's contract takes no longer ones.
const maxText = 255

// text reads a string; null reads as empty. A NUL is refused, since Postgres can't hold one.
func text(to *string) func(*jsontext.Decoder) error {
	return func(dec *jsontext.Decoder) error {
		tok, err := dec.ReadToken()
		if err != nil {
			return err
		}
		switch tok.Kind() {
		case 'n':
			return nil
		case '"':
		default:
			return fmt.Errorf("%w: %s where a string belongs", errJSON, tok.Kind())
		}
		s := tok.String()
		if strings.ContainsRune(s, 0) || utf8.RuneCountInString(s) > maxText {
			return fmt.Errorf("%w: a string holds a NUL or more than %d characters", errJSON, maxText)
		}
		*to = s
		return nil
	}
}

// commit reads the name of a commit, of SHA-1 or SHA-256; null reads as empty.
func commit(to *string) func(*jsontext.Decoder) error {
	return func(dec *jsontext.Decoder) error {
		if err := text(to)(dec); err != nil || *to == "" {
			return err
		}
		if n := len(*to); (n != 40 && n != 64) || strings.Trim(*to, "0123456789abcdef") != "" {
			return fmt.Errorf("%w: a commit's name is not 40 or 64 lower-case hex digits", errJSON)
		}
		return nil
	}
}

// lenient reads nothing where a value isn't what read takes. What is no JSON, or comes twice, or differs
// by case, stays an error.
func lenient(read func(*jsontext.Decoder) error) func(*jsontext.Decoder) error {
	return func(dec *jsontext.Decoder) error {
		raw, err := dec.ReadValue()
		if err != nil {
			return err
		}
		err = read(jsontext.NewDecoder(bytes.NewReader(raw)))
		if errors.Is(err, errCase) {
			return err
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

// moment reads an RFC 3339 string, or the seconds since 1970 that installation payloads hold. A time that
// no row or message could hold is refused.
func moment(to *time.Time) func(*jsontext.Decoder) error {
	return func(dec *jsontext.Decoder) error {
		var t time.Time
		if dec.PeekKind() == '0' {
			var seconds int64
			if err := number(&seconds)(dec); err != nil {
				return err
			}
			t = time.Unix(seconds, 0)
		} else {
			var s string
			if err := text(&s)(dec); err != nil || s == "" {
				return err
			}
			var err error
			if t, err = time.Parse(time.RFC3339, s); err != nil {
				return fmt.Errorf("%w: a time is not RFC 3339", errJSON)
			}
		}
		if t.Unix() < 0 || t.Unix() > lastSecond {
			return fmt.Errorf("%w: a time is before 1970 or after 9999", errJSON)
		}
		*to = t.UTC()
		return nil
	}
}

// lastSecond is the last one of the year 9999.
const lastSecond = 253_402_300_799

// present reads nothing but that a member is there and not null.
func present(to *bool) func(*jsontext.Decoder) error {
	return func(dec *jsontext.Decoder) error {
		*to = dec.PeekKind() != 'n'
		return dec.SkipValue()
	}
}
