package option

import (
	"strings"

	"brood/models/usererr"
)

// Renaming is one FROM=TO of [Rename]: a tensor, or all whose names begin with From and a dot or a slash, which are one
// separator here: files of Flax have either.
type Renaming struct{ From, To string }

// Renamings are those of the option's text; none of an empty one.
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

// Of is the name after the renaming; ok is false where it does not mean the tensor.
func (r Renaming) Of(name string) (string, bool) {
	rest, ok := strings.CutPrefix(dotted(name), dotted(r.From))
	if !ok || rest != "" && rest[0] != '.' {
		return name, false
	}
	return r.To + rest, true
}

func dotted(name string) string { return strings.ReplaceAll(name, "/", ".") }

func renames(text string) error {
	_, err := Renamings(text)
	return err
}
