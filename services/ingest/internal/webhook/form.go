package webhook

import (
	"bytes"
	"errors"
)

// errForm is an errJSON of a form-encoded delivery.
var errForm = errors.New("the form is not one field, payload, with the JSON in it")

// unform returns the JSON of a form-encoded delivery, decoded in place: it is never longer than the form. A
// form with another field, or with this one twice, is refused: another parser might read the other.
func unform(body []byte) ([]byte, error) {
	name, value, ok := bytes.Cut(body, []byte("="))
	if !ok || string(name) != "payload" || bytes.IndexByte(value, '&') >= 0 || bytes.IndexByte(value, ';') >= 0 {
		return nil, errForm
	}
	out := value[:0]
	for i := 0; i < len(value); i++ {
		switch c := value[i]; c {
		case '+':
			out = append(out, ' ')
		case '%':
			if i+2 >= len(value) {
				return nil, errForm
			}
			high, ok1 := nibble(value[i+1])
			low, ok2 := nibble(value[i+2])
			if !ok1 || !ok2 {
				return nil, errForm
			}
			out = append(out, high<<4|low)
			i += 2
		default:
			out = append(out, c)
		}
	}
	return out, nil
}

func nibble(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}
