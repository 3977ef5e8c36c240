package option

import (
	"strings"

	"brood/models/usererr"
)

// Renaming is one FROM=TO of [Rename]. It applies to the tensor From and to all tensors whose names begin with From and
// a separator. The separators dot and slash are equal, since files of Flax have either.
type Renaming struct{ From, To string }

// Renamings parses the text of the option; it returns nil for "".
func Renamings(text string) (out []Renaming, err error) {
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		from, to, ok := strings.Cut(part, "=")
		if !ok || from == "" || to == "" {
			return nil, usererr.Errorf("--rename %s: write FROM=TO, several with commas between them", part)
		}
		out = append(out, Renaming{from, to})
	}
	return out, nil
}

// Of returns the new name; ok is false if the renaming does not apply to the tensor.
func (r Renaming) Of(name string) (string, bool) {
	rest, ok := strings.CutPrefix(dotted(name), dotted(r.From))
	if !ok || rest != "" && rest[0] != '.' {
		return name, false
	}
	return r.To + rest, true
}

func dotted(name string) string { return strings.ReplaceAll(name, "/", ".") }

func checkRename(text string) error {
	_, err := Renamings(text)
	return err
}
