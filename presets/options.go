package presets

import (
	"fmt"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"brood/models/tomlerr"
	"brood/models/usererr"
	"brood/runtime/option"
)

// setOptions sets the options of the preset and of its full form from these keys of text. It fails for a key that is
// not an option.
func (p *Preset) setOptions(text []byte, keys []tomlerr.Key) error {
	var values map[string]any
	if err := toml.Unmarshal(text, &values); err != nil {
		return err
	}
	for _, k := range keys {
		to, from, use, path := &p.Options, values, option.Preset, k.Path
		if p.Full != nil && len(path) > 1 && path[0] == fullTable {
			to, use, path = &p.Full.Options, option.Full, path[1:]
			from, _ = values[fullTable].(map[string]any)
		}
		x := option.Named(path[0])
		if x == nil || !x.Has(use) || len(path) > 1 {
			var names []string
			for _, x := range option.With(use) {
				names = append(names, x.Name)
			}
			return fmt.Errorf("line %d: unknown key %s%s", k.Row, strings.Join(k.Path, "."), usererr.Suggest(path[0], names))
		}
		if err := x.SetTOML(to, from[x.Name]); err != nil {
			return fmt.Errorf("line %d: %w", k.Row, err)
		}
	}
	return p.Options.Check()
}
