package publisher

import (
	"fmt"
	"slices"
	"strings"
)

// maxNamed bounds the paths that a reason's line names; the rest are in the list that is folded away.
const maxNamed = 3

// left is what was left out for one reason. Its paths are empty where it speaks of the comparison as a whole.
type left struct {
	reason string
	minor  bool
	paths  []string
	whole  bool
}

// byReason groups what was left out, what matters first; otherwise in the order of its first mention.
func byReason(all []Omission) []left {
	type key struct {
		reason       string
		minor, whole bool
	}
	var out []left
	at := map[key]int{}
	for _, o := range all {
		k := key{o.Reason, o.Minor, o.Path == ""}
		i, known := at[k]
		if !known {
			i = len(out)
			at[k] = i
			out = append(out, left{reason: o.Reason, minor: o.Minor, whole: k.whole})
		}
		if !k.whole && !slices.Contains(out[i].paths, o.Path) {
			out[i].paths = append(out[i].paths, o.Path)
		}
	}
	slices.SortStableFunc(out, func(a, b left) int {
		switch {
		case a.minor == b.minor:
			return 0
		case b.minor:
			return -1
		}
		return 1
	})
	return out
}

// line says a reason with its count, and names a few of what it is about.
func (l left) line() string {
	reason := Code(l.reason, maxDetail)
	switch n := len(l.paths); {
	case l.whole:
		return fmt.Sprintf("- %s\n", reason)
	case n == 1:
		return fmt.Sprintf("- %s: %s\n", Code(l.paths[0], maxPath), reason)
	default:
		named := make([]string, 0, maxNamed+1)
		for _, p := range l.paths[:min(n, maxNamed)] {
			named = append(named, Code(p, maxPath))
		}
		if n > maxNamed {
			named = append(named, fmt.Sprintf("%d more", n-maxNamed))
		}
		return fmt.Sprintf("- %s: %s (%s)\n", count(n, "file"), reason, strings.Join(named, ", "))
	}
}

// omissions says what was left out, a line a reason, and folds away the paths that no line names.
func (b *body) omissions(all []Omission) {
	if len(all) == 0 {
		return
	}
	groups, listed := byReason(all), 0
	b.left -= noteRoom
	if b.add("\n**Left out**\n\n") {
		for _, l := range groups[:min(len(groups), maxListed)] {
			if !b.add(l.line()) {
				break
			}
			listed++
		}
	}
	b.left += noteRoom
	if rest := len(groups) - listed; rest > 0 {
		b.add(fmt.Sprintf("\n%s more, not listed here.\n", count(rest, "reason")))
	}
	b.unnamed(groups[:listed])
}

// unnamed folds away the paths that their reason's line does not name, as far as they fit: all of it or, where
// not even its frame fits, nothing.
func (b *body) unnamed(groups []left) {
	total := 0
	for _, l := range groups {
		total += max(0, len(l.paths)-maxNamed)
	}
	const unfold, kept = "\n</details>\n", noteRoom
	fold := fmt.Sprintf("\n<details>\n<summary>%s left out</summary>\n\n", count(total, "more file"))
	if total == 0 || len(fold)+len(unfold)+kept > b.left {
		return
	}
	b.add(fold)
	b.left -= len(unfold) + kept
	named := 0
	for _, l := range groups {
		for _, p := range l.paths[min(len(l.paths), maxNamed):] {
			if named == maxListed || !b.add(fmt.Sprintf("- %s: %s\n", Code(p, maxPath), Code(l.reason, maxWord))) {
				break
			}
			named++
		}
	}
	b.left += len(unfold) + kept
	if rest := total - named; rest > 0 {
		b.add(fmt.Sprintf("\n%s more, not listed here.\n", count(rest, "file")))
	}
	b.add(unfold)
}
