package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// readFile returns the content of a NAME_FILE without its trailing newline, which editors and
// `echo` add. The content never appears in the error.
func readFile(path string) (string, error) {
	if path == "" {
		return "", errors.New("its file has no path")
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("read its file: %w", err)
	}
	defer func() { _ = f.Close() }()
	content, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return "", fmt.Errorf("read its file: %w", err)
	}
	if len(content) > maxFile {
		return "", fmt.Errorf("read its file: %s is larger than %d bytes", path, maxFile)
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(content), "\n"), "\r"), nil
}
