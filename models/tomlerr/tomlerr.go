// Package tomlerr decodes TOML and reports errors in TOML's terms: the line, its text and what is expected there. The
// errors of the decoder name fields and types of Go.
package tomlerr

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// Key is an unknown key and its line.
type Key struct {
	Path []string
	Row  int
}

// UnknownError lists the unknown keys of a text. The known keys have been decoded.
type UnknownError struct{ Keys []Key }

func (e *UnknownError) Error() string {
	return fmt.Sprintf("line %d: unknown key %s", e.Keys[0].Row, strings.Join(e.Keys[0].Path, "."))
}

// Decode decodes text into the value that into points to. It returns an [*UnknownError] if only keys are unknown.
func Decode(text []byte, into any) error {
	err := decode(text, into)
	var strict *toml.StrictMissingError
	if err == nil {
		return nil
	} else if errors.As(err, &strict) {
		unknown := &UnknownError{}
		for i := range strict.Errors {
			row, _ := strict.Errors[i].Position()
			unknown.Keys = append(unknown.Keys, Key{strict.Errors[i].Key(), row})
		}
		return unknown
	}
	cause := sentence(err.Error())
	var bad *toml.DecodeError
	if !errors.As(err, &bad) {
		return errors.New(cause)
	}
	row, _ := bad.Position()
	if lines := bytes.Split(text, []byte("\n")); row >= 1 && row <= len(lines) {
		return fmt.Errorf("line %d, %s: %s", row, clip(string(lines[row-1])), cause)
	}
	return fmt.Errorf("line %d: %s", row, cause)
}

// decode decodes text. The decoder panics at a sign without digits that is to become a float.
func decode(text []byte, into any) (err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("a number has a sign and no digits")
		}
	}()
	return toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields().Decode(into)
}

// most is the number of runes that are shown of a line.
const most = 40

func clip(line string) string {
	r := []rune(strings.Join(strings.Fields(line), " "))
	if len(r) > most {
		r = append(r[:most-1], '…')
	}
	return string(r)
}

var (
	mismatch = regexp.MustCompile(`^toml: cannot decode TOML (.+) into (?:a Go value|struct field .+) of type (\S+)`)
	forms    = []struct {
		of   *regexp.Regexp
		text string
	}{
		{regexp.MustCompile(`float cannot be assigned to`), "it takes a whole number"},
		{regexp.MustCompile(`number .* does not fit|couldn't parse .* number|integer value .* exceeds`),
			"the number does not fit"},
		{regexp.MustCompile(`cannot (store|assign|convert) `), "it takes a value of another form"},
	}
)

// sentence rewrites an error of the decoder.
func sentence(text string) string {
	if m := mismatch.FindStringSubmatch(text); m != nil {
		return fmt.Sprintf("it takes %s, and this is %s", form(m[2]), given[m[1]])
	}
	for _, f := range forms {
		if f.of.MatchString(text) {
			return f.text
		}
	}
	return strings.TrimPrefix(text, "toml: ")
}

// given maps the decoder's names of TOML values to plain words.
var given = map[string]string{
	"integer": "a number", "float": "a number", "string": "a text", "array": "a list", "boolean": "true or false",
	"inline table": "a table", "table": "a table", "array table": "a list of tables", "datetime": "a time",
	"time": "a time",
}

// form describes the values that a field of a Go type accepts.
func form(goType string) string {
	t := strings.TrimLeft(goType, "*")
	switch {
	case t == "bool":
		return "true or false"
	case t == "string":
		return "a text in quotes"
	case strings.HasPrefix(t, "int"), strings.HasPrefix(t, "uint"):
		return "a whole number"
	case strings.HasPrefix(t, "float"):
		return "a number"
	case strings.HasPrefix(t, "[]int"), strings.HasPrefix(t, "[]float"):
		return "a list of numbers, such as [1, 2]"
	case strings.HasPrefix(t, "[]string"):
		return `a list of texts, such as ["a", "b"]`
	case strings.HasPrefix(t, "[]"):
		return "a list of tables, each below its name in two brackets"
	default:
		return "a table"
	}
}
