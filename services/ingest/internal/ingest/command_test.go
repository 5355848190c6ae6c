package ingest

import (
	"strings"
	"testing"
)

func TestParseCommand(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]Verb{
		"/fenceline review":                                        VerbReview,
		"/fenceline rerun":                                         VerbRerun,
		"/fenceline explain":                                       VerbExplain,
		"/fenceline pause":                                         VerbPause,
		"/fenceline resume":                                        VerbResume,
		"/Fenceline  Review ":                                      VerbReview,
		"/fenceline\treview, please":                               VerbUnknown,
		"/fenceline review please":                                 VerbReview,
		"/fenceline":                                               VerbUnknown,
		"/fenceline dance":                                         VerbUnknown,
		"Thanks!\n\n/fenceline review":                             VerbReview,
		"Thanks!\r\n/fenceline review\r\n":                         VerbReview,
		"Thanks!\r/fenceline review":                               VerbReview,
		"/fenceline pause\n/fenceline resume":                      VerbPause, // the first one counts
		"> what he said\n\n/fenceline review":                      VerbReview,
		"```\n/fenceline pause\n```\n/fenceline review":            VerbReview,
		"````\n```\n/fenceline pause\n````\n/fenceline review":     VerbReview,
		"~~~ text\n/fenceline pause\n~~~~\n/fenceline review":      VerbReview,
		"```inline``` code\n/fenceline review":                     VerbReview,
		"<!-- note -->\n/fenceline review":                         VerbReview,
		"<!--\n/fenceline pause\n-->\n/fenceline review":           VerbReview,
		"<pre>\n/fenceline pause\n</pre>\n/fenceline review":       VerbReview,
		"<preface>\n/fenceline review":                             "", // doubtful: no command
		"<details>\n\n/fenceline review":                           VerbReview,
		"    code\n/fenceline review":                              VerbReview,
		"- a list\n/fenceline review":                              VerbReview,
		"<blockquote>x</blockquote>\n/fenceline review":            VerbReview,
		"a `span` and ``another ` one``\n/fenceline review":        VerbReview,
		"a \\`tick\n/fenceline review":                             VerbReview,
		"one ` alone\n\n/fenceline review":                         VerbReview,
		"":                                                         "",
		"please /fenceline review":                                 "",
		" /fenceline review":                                       "",
		"\t/fenceline review":                                      "",
		"    /fenceline review":                                    "",
		"- /fenceline review":                                      "",
		"/fencelines review":                                       "",
		"/ fenceline review":                                       "",
		"fenceline review":                                         "",
		"/review":                                                  "",
		"`/fenceline review`":                                      "",
		"> /fenceline review":                                      "",
		">/fenceline review":                                       "",
		"> quoted\n/fenceline review":                              "", // Markdown shows it in the quote
		"```\n/fenceline review\n```":                              "",
		"```\n/fenceline review":                                   "",
		"~~~\n/fenceline review\n```\n/fenceline review":           "",
		"   ```go\n/fenceline review\n   ```":                      "",
		"`a span\n/fenceline review\nover lines`":                  "",
		"``a ` span\n/fenceline review\nover lines``":              "",
		"<blockquote>\n\n/fenceline review\n\n</blockquote>":       "",
		"he said <blockquote>\n/fenceline review":                  "",
		"<blockquote><blockquote></blockquote>\n/fenceline review": "",
		"<code>\n/fenceline review\n</code>":                       "",
		"<!-- /fenceline review -->":                               "",
		"<!--\n/fenceline review\n-->":                             "",
		"hidden <!--\n\n/fenceline review":                         "",
		"--> <!-- x --> <!--\n/fenceline review":                   "",
		"<!--\n--> <!--\n/fenceline review":                        "",
		"<PRE>\n/fenceline review\n</PRE>":                         "",
		"<?php\n/fenceline review\n?>":                             "",
		"<![CDATA[\n/fenceline review\n]]>":                        "",
		"`a`, `b`\n/fenceline review":                              VerbReview,
		"<blockquote>a</blockquote>\n/fenceline review":            VerbReview,
		"use <code>x</code>\n/fenceline review":                    VerbReview,
		"<img alt=\"\n/fenceline review\n\">":                      "", // shown to nobody
		"<!DOCTYPE\n/fenceline review\n>":                          "",
		"a <b\n\n/fenceline review":                                VerbReview,
		"2 < 3\n/fenceline review":                                 VerbReview,
		"<https://example.com>\n/fenceline review":                 VerbReview,
		"[a]: /u '\n/fenceline review\n'":                          "",
		"[a](/u '\n/fenceline review\n')":                          "",
		"[a](/u)\n/fenceline review":                               VerbReview,
		"[a]: /u\n\n/fenceline review":                             VerbReview,
		"- > quoted\n/fenceline review":                            "", // Markdown shows it in the quote
		"1. - > quoted\n/fenceline review":                         "",
		"- > quoted\n\n/fenceline review":                          VerbReview,
		"- a\n- b\n/fenceline review":                              VerbReview,
		"/fenceline\u00a0review":                                   "", // no space that anybody types
		"\u200b/fenceline review":                                  "",
		"text\u2028/fenceline review":                              "",
		strings.Repeat("x", 70_000) + "/fenceline review":          "",
		strings.Repeat("x\n", 70_000) + "/fenceline review\nend":   VerbReview,
	} {
		got, ok := ParseCommand(body, false)
		if got != want || ok != (want != "") {
			t.Errorf("%.80q: %q %v, want %q", body, got, ok, want)
		}
	}
}

func TestShortCommands(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]Verb{
		"/deploy": "", "/": "", "/unknown": "", "say /review": "", "```\n/review\n```": "",
	} {
		got, ok := ParseCommand(body, true)
		if got != want || ok != (want != "") {
			t.Errorf("%q: %q %v, want %q", body, got, ok, want)
		}
	}
}

// FuzzParseCommand: whatever is written, a command is a line of its own text, and hiding the text hides it.
func FuzzParseCommand(f *testing.F) {
	for _, s := range []string{
		"/fenceline review", "```\n/fenceline review\n```", "> a\n/fenceline pause", "<!--\n/fenceline x\n-->\n/fenceline rerun",
		"~~~\n~~~~\n\n/review", "\t/fenceline\n", "<pre\n/fenceline review", "a\r/fenceline explain\r\n",
	} {
		f.Add(s, true)
		f.Add(s, false)
	}
	f.Fuzz(func(t *testing.T, body string, short bool) {
		verb, ok := ParseCommand(body, short)
		if ok != (verb != "") {
			t.Fatalf("%q and %v", verb, ok)
		}
		begins := false
		for line := range strings.SplitSeq(strings.ReplaceAll(body, "\r", "\n"), "\n") {
			begins = begins || strings.HasPrefix(strings.ToLower(line), Word) || short && strings.HasPrefix(line, "/")
		}
		if ok && !begins {
			t.Fatalf("%q out of a text without one", verb)
		}
		if _, ok := ParseCommand("<!--\n"+strings.ReplaceAll(body, "-->", ""), short); ok {
			t.Fatal("a command in an HTML comment")
		}
		if _, ok := ParseCommand("<blockquote>\n"+strings.NewReplacer("</", "").Replace(body), short); ok {
			t.Fatal("a command in a quoting element")
		}
		if _, ok := ParseCommand("```````````\n"+strings.ReplaceAll(body, "`", ""), short); ok {
			t.Fatal("a command in a code block")
		}
		quoted := "> " + strings.NewReplacer("\r\n", "\n> ", "\r", "\n> ", "\n", "\n> ").Replace(body)
		if _, ok := ParseCommand(quoted, short); ok {
			t.Fatal("a command in a quote")
		}
	})
}
