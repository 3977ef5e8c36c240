package presets

import (
	"fmt"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"brood/runtime/option"
)

// key is one of a preset that is no field of it.
type key struct {
	path []string
	row  int
}

// unknown are the keys that a decoder found no field for.
func unknown(missing *toml.StrictMissingError) (out []key) {
	for i := range missing.Errors {
		row, _ := missing.Errors[i].Position()
		out = append(out, key{missing.Errors[i].Key(), row})
	}
	return out
}

// tell reads the keys that are options, of the preset or of its full form, and refuses the first that is none.
func (p *Preset) tell(text []byte, keys []key) error {
	var values map[string]any
	if err := toml.Unmarshal(text, &values); err != nil {
		return err
	}
	for _, k := range keys {
		to, from, use, path := &p.Options, values, option.Preset, k.path
		if p.Full != nil && len(path) > 1 && path[0] == fullTable {
			to, use, path = &p.Full.Options, option.Full, path[1:]
			from, _ = values[fullTable].(map[string]any)
		}
		x := option.Named(path[0])
		if x == nil || !x.Has(use) || len(path) > 1 {
			return fmt.Errorf("line %d: unknown key %s", k.row, strings.Join(k.path, "."))
		}
		if err := x.SetTOML(to, from[x.Name]); err != nil {
			return fmt.Errorf("line %d: %w", k.row, err)
		}
	}
	return p.Options.Check()
}
