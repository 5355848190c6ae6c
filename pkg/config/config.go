// Package config reads a service's settings from an injected environment into a struct, whole and once.
package config

import (
	"encoding"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"

	"github.com/caarlos0/env/v11"
)

// fileSuffix names the variant of a variable that holds a path: secrets mounted as files
// stay out of the process environment, which other processes of the same user can read.
const fileSuffix = "_FILE"

// maxFile bounds what is read for one NAME_FILE, in bytes: a path to a device or a log
// must not fill the memory of a starting service.
const maxFile = 1 << 20

// Environ returns the process environment as a map. Of doubled names the last one counts.
func Environ() map[string]string {
	vars := make(map[string]string)
	for _, kv := range os.Environ() {
		if name, value, ok := strings.Cut(kv, "="); ok {
			vars[name] = value
		}
	}
	return vars
}

// Load fills a T, which must be a struct, from vars by its `env`, `envDefault` and `envPrefix`
// tags. Where NAME is absent and NAME_FILE is present, the value is that file's content without
// its trailing newline. The error joins every problem found, each with its variable's name and,
// for secrets, without its value; then those of Validate() error, if T has that method.
func Load[T any](vars map[string]string) (T, error) {
	var cfg T
	root := reflect.ValueOf(&cfg).Elem()
	if root.Kind() != reflect.Struct {
		return cfg, fmt.Errorf("config: %T is not a struct", cfg)
	}
	var problems []error
	broken := make(map[string]bool)
	for _, l := range leaves(root, "") {
		if err := l.load(vars); err != nil {
			broken[l.key] = true
			problems = append(problems, fmt.Errorf("%s: %w", l.key, err))
		}
	}
	said := make(map[string]bool) // a struct may pass on what its group has said already
	for _, err := range validate(root, "") {
		if text := err.Error(); !about(err, broken) && !said[text] {
			said[text] = true
			problems = append(problems, err)
		}
	}
	return cfg, errors.Join(problems...)
}

// validate calls Validate of every nested group and then of the struct itself. A group knows its
// variables without their prefix, and begins each problem with the variable's name: the prefix goes
// in front.
func validate(v reflect.Value, prefix string) []error {
	var problems []error
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.IsExported() && f.Tag.Get("env") == "" && nested(v.Field(i)) {
			problems = append(problems, validate(v.Field(i), prefix+f.Tag.Get("envPrefix"))...)
		}
	}
	if group, ok := v.Addr().Interface().(interface{ Validate() error }); ok {
		for _, err := range flatten(group.Validate()) {
			problems = append(problems, fmt.Errorf("%s%w", prefix, err))
		}
	}
	return problems
}

// flatten takes joined errors apart, so that each can be judged by itself.
func flatten(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || !strings.Contains(err.Error(), "\n") {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, flatten(e)...)
	}
	return all
}

// about reports whether a validation error speaks of a variable that could not be read: its
// zero value would be complained about a second time.
func about(err error, broken map[string]bool) bool {
	for _, word := range strings.FieldsFunc(err.Error(), func(r rune) bool {
		return r != '_' && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
	}) {
		if broken[word] {
			return true
		}
	}
	return false
}

// leaf is one variable and the field it fills.
type leaf struct {
	key    string // full name, prefixes included
	prefix string
	field  reflect.StructField
	value  reflect.Value
}

// leaves lists the variables of a struct in field order, nested structs in place.
func leaves(v reflect.Value, prefix string) []leaf {
	var all []leaf
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if !f.IsExported() {
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("env"), ",")
		switch {
		case name == "-":
		case name != "":
			all = append(all, leaf{key: prefix + name, prefix: prefix, field: f, value: v.Field(i)})
		case nested(v.Field(i)):
			all = append(all, leaves(v.Field(i), prefix+f.Tag.Get("envPrefix"))...)
		}
	}
	return all
}

// nested reports whether a field without a variable of its own is a group of settings.
func nested(v reflect.Value) bool {
	if v.Kind() != reflect.Struct {
		return false
	}
	_, text := v.Addr().Interface().(encoding.TextUnmarshaler)
	return !text
}

// load parses one variable into its field. Parsing them one by one is what ties every problem
// to the name of its variable: the library names the Go field, which an operator does not know.
func (l leaf) load(vars map[string]string) error {
	value, ok := vars[l.key]
	if path, named := vars[l.key+fileSuffix]; !ok && named {
		content, err := readFile(path)
		if err != nil {
			return err
		}
		value, ok = content, true
	}
	one := map[string]string{}
	if ok {
		one[l.key] = value
	}
	box := reflect.New(reflect.StructOf([]reflect.StructField{{Name: l.field.Name, Type: l.field.Type, Tag: l.field.Tag}}))
	if err := env.ParseWithOptions(box.Interface(), env.Options{Environment: one, Prefix: l.prefix}); err != nil {
		return l.explain(err)
	}
	l.value.Set(box.Elem().Field(0))
	return nil
}

// explain turns the library's error into a sentence for an operator.
func (l leaf) explain(err error) error {
	var (
		unset env.VarIsNotSetError
		empty env.EmptyVarError
		parse env.ParseError
	)
	switch {
	case errors.As(err, &unset):
		return fmt.Errorf("is required (or %s%s)", l.key, fileSuffix)
	case errors.As(err, &empty):
		return errors.New("must not be empty")
	case l.secret():
		return fmt.Errorf("is not a valid %s (value withheld)", l.field.Type)
	case errors.As(err, &parse):
		return fmt.Errorf("is not a valid %s: %w", l.field.Type, parse.Err)
	default:
		return fmt.Errorf("is not a valid %s: %w", l.field.Type, err)
	}
}

// secret reports whether the field's type is made of Secret.
func (l leaf) secret() bool { return isSecret(l.field.Type) }

func isSecret(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Slice, reflect.Array, reflect.Pointer, reflect.Map:
		return isSecret(t.Elem())
	default:
		return t == reflect.TypeFor[Secret]()
	}
}
