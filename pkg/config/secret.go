package config

import (
	"fmt"
	"io"
	"log/slog"
)

// redacted is what every way of printing a Secret shows.
const redacted = "***"

// Secret is a string that no log, error, format verb or encoder prints.
type Secret string

// Reveal returns the secret itself.
func (s Secret) Reveal() string { return string(s) }

// Empty reports whether nothing is set.
func (s Secret) Empty() bool { return s == "" }

// String returns "***".
func (Secret) String() string { return redacted }

// GoString returns "***".
func (Secret) GoString() string { return redacted }

// Format prints "***" for every verb: without it %d would print the value as a bad verb's operand.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// MarshalText returns "***", which is also what JSON gets.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// LogValue returns "***".
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }
