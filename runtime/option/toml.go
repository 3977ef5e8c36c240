package option

import (
	"fmt"
	"strconv"
)

// SetTOML puts a value as TOML has it into o, or says in a sentence what it should be.
func (x *Option) SetTOML(o *Options, v any) error {
	if text, ok := x.Kind.ofTOML(v); ok && x.Set(o, text) == nil {
		return nil
	}
	if text, ok := v.(string); ok {
		v = strconv.Quote(text)
	}
	wants := Wants[x.Kind]
	if x.Kind == Population { // auto is for who sees the machine
		wants = Wants[Whole]
	}
	return fmt.Errorf("%s = %v is no %s", x.Name, v, wants)
}

// ofTOML is a value as text; ok is false where it is of another kind.
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
