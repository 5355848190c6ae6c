package builtin

import (
	"math"
	"strings"
)

// tells are words that stand in placeholders and do not turn up in random text.
var tells = []string{
	"example", "sample", "dummy", "placeholder", "redacted", "changeme", "change-me", "change_me", "replace",
	"notreal", "not-real", "not_real", "not-a-real", "fake", "xxxx", "your-", "your_", "yourtoken", "insert",
	"0123456789", "1234567890", "12345678", "abcdefgh", "abcd1234", "deadbeef", "foobar", "testtest",
}

// published are credentials that documentation prints, by a part that no random text repeats.
var published = []string{
	"16C7e42F292c6912E7710c838347Ae178B4a", // GitHub's documentation of user tokens
	"wJalrXUtnFEMI/K7MDENG",                // AWS's documentation
}

// madeUp says that a value with the shape of a secret is evidently none: a placeholder, one that
// documentation prints, or one without the spread of characters that random text has.
func madeUp(value string) bool {
	lower := strings.ToLower(value)
	for _, t := range tells {
		if strings.Contains(lower, t) {
			return true
		}
	}
	for _, p := range published {
		if strings.Contains(value, p) {
			return true
		}
	}
	return longestRun(lower) >= 6 || spread(value) < 2.6
}

// longestRun is the length of the longest repetition of one character.
func longestRun(s string) int {
	longest, run := 0, 0
	for i := range len(s) {
		if i > 0 && s[i] == s[i-1] {
			run++
		} else {
			run = 1
		}
		longest = max(longest, run)
	}
	return longest
}

// spread is the Shannon entropy of the bytes, in bits per byte. Random hexadecimal text of 32
// digits is above 3.2 nearly always.
func spread(s string) float64 {
	var counts [256]int
	for i := range len(s) {
		counts[s[i]]++
	}
	bits := 0.0
	for _, n := range counts {
		if n > 0 {
			p := float64(n) / float64(len(s))
			bits -= p * math.Log2(p)
		}
	}
	return bits
}
