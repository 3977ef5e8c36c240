package option

import (
	"fmt"
	"strconv"
)

// SetTOML stores a TOML value in o. Its error states the noun of the kind.
func (x *Option) SetTOML(o *Options, v any) error {
	if text, ok := x.Kind.ofTOML(v); ok && x.Set(o, text) == nil {
		return nil
	}
	if text, ok := v.(string); ok {
		v = strconv.Quote(text)
	}
	noun := Nouns[x.Kind]
	if x.Kind == Population { // auto depends on the machine, a file does not
		noun = Nouns[Whole]
	}
	return fmt.Errorf("%s = %v is no %s", x.Name, v, noun)
}

// ofTOML returns a TOML value as text; ok is false if the value is of another kind.
func (k Kind) ofTOML(v any) (text string, ok bool) {
	switch v := v.(type) {
	case string:
		return v, k == Text || k == Span
	case int64:
		return strconv.FormatInt(v, 10), k != Text && k != Span
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), k == Number
	}
	return "", false
}
