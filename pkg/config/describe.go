package config

import (
	"reflect"
	"strings"
)

// Setting describes one variable for documentation.
type Setting struct {
	Name     string // full name, prefixes included
	Type     string // Go type, as "time.Duration"
	Default  string // "" when there is none
	Doc      string // the field's doc tag
	Required bool
	Secret   bool // NAME_FILE is the better way to set it
}

// Describe lists the variables of a configuration struct, or of a pointer to one, in field order.
// It reads types and tags only, never values.
func Describe(cfg any) []Setting {
	t := reflect.TypeOf(cfg)
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	var all []Setting
	for _, l := range leaves(reflect.New(t).Elem(), "") {
		_, options, _ := strings.Cut(l.field.Tag.Get("env"), ",")
		all = append(all, Setting{
			Name:     l.key,
			Type:     l.field.Type.String(),
			Default:  l.field.Tag.Get("envDefault"),
			Doc:      l.field.Tag.Get("doc"),
			Required: hasOption(options, "required") || hasOption(options, "notEmpty"),
			Secret:   l.secret(),
		})
	}
	return all
}

func hasOption(options, want string) bool {
	for o := range strings.SplitSeq(options, ",") {
		if o == want {
			return true
		}
	}
	return false
}
