// Package presets holds named experiments as TOML: model, data, algorithm, knobs and fleet. Preset files of users have
// the same form. It imports optim, models and runtime/option.
package presets

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"brood/models/data"
	"brood/models/tomlerr"
	"brood/models/usererr"
	"brood/optim/catalog"
	"brood/optim/protocol"
	"brood/runtime/option"
)

//go:embed *.toml
var embedded embed.FS

// Default is the preset that a bare `brood` trains.
const Default = "quickstart"

// Preset is an experiment: options of a run, a description and claims about its results.
type Preset struct {
	Name   string         `toml:"-"`
	Title  string         `toml:"title"`
	Doc    string         `toml:"doc"`
	Paper  string         `toml:"paper"`  // reference, with table or figure
	Expect string         `toml:"expect"` // expected time on two cores, and expected result
	Study  string         `toml:"study"`  // set of presets that reproduce a source together; "": none
	Claims []Claim        `toml:"claims"`
	Knobs  map[string]any `toml:"knobs"` // a value or a schedule each
	Full   *Full          `toml:"full"`  // the form of the source; nil if not described
	Tuned  *Tuned         `toml:"tuned"` // how the knobs were chosen; nil if not stated

	Options option.Options `toml:"-"` // from the keys that are names of options

	Protocol *protocol.Spec `toml:"protocol"` // rules of a protocol; implies the algorithm protocol
}

// Rules returns the rules of the protocol as the run records them; nil for none.
func (p Preset) Rules() ([]byte, error) {
	if p.Protocol == nil {
		return nil, nil
	}
	return p.Protocol.Text()
}

// List returns the names of the embedded presets, sorted.
func List() (out []string) {
	entries, _ := embedded.ReadDir(".")
	for _, e := range entries {
		out = append(out, strings.TrimSuffix(e.Name(), ".toml"))
	}
	slices.Sort(out)
	return out
}

// Source returns the text of an embedded preset, or of a file if nameOrPath ends in .toml.
func Source(nameOrPath string) ([]byte, error) {
	if strings.HasSuffix(nameOrPath, ".toml") {
		text, err := os.ReadFile(nameOrPath)
		if err != nil {
			return nil, fmt.Errorf("preset: %w",
				usererr.File(err, nameOrPath, "give the path of a .toml file, or a name of `brood presets`"))
		}
		return text, nil
	}
	text, err := embedded.ReadFile(nameOrPath + ".toml")
	if err != nil {
		return nil, usererr.Errorf("no preset %q%s: choose one of %s, or another one of `brood presets`, or give the "+
			"path of a .toml file", nameOrPath, usererr.Suggest(nameOrPath, List()), strings.Join(similar(nameOrPath),
			", "))
	}
	return text, nil
}

// similar returns the presets that share the first four letters of a name, or else the presets without a study.
func similar(name string) (out []string) {
	for _, x := range List() {
		if n := min(4, len(name)); n > 0 && strings.HasPrefix(x, name[:n]) {
			out = append(out, x)
		}
	}
	if len(out) > 0 {
		return out
	}
	for _, x := range List() {
		if p, err := Load(x); err == nil && (p.Study == "" || x == Default) {
			out = append(out, x)
		}
	}
	return out
}

// Load parses the preset of Source. Relative paths in a file are resolved against its directory.
func Load(nameOrPath string) (Preset, error) {
	text, err := Source(nameOrPath)
	if err != nil {
		return Preset{}, err
	}
	p, err := Parse(text)
	if err != nil {
		return p, usererr.Errorf("preset %s: %w", nameOrPath, err)
	}
	p.Name = nameOrPath
	if strings.HasSuffix(nameOrPath, ".toml") {
		p.resolvePaths(filepath.Dir(nameOrPath))
	}
	return p, nil
}

// resolvePaths resolves the relative paths of a preset file against its directory.
func (p *Preset) resolvePaths(dir string) {
	at := func(path *string, is bool) {
		if is && dir != "." && !filepath.IsAbs(*path) {
			*path = filepath.Join(dir, *path)
		}
	}
	at(&p.Options.Model, strings.HasSuffix(p.Options.Model, ".toml"))
	at(&p.Options.Data, data.IsPath(p.Options.Data))
	if f := p.Full; f != nil {
		at(&f.Options.Model, strings.HasSuffix(f.Options.Model, ".toml"))
		at(&f.Options.Data, data.IsPath(f.Options.Data))
	}
}

// Parse parses a preset and validates its options, its claims, its algorithm and the names of its knobs.
func Parse(text []byte) (Preset, error) {
	var p Preset
	var others []tomlerr.Key
	var unknown *tomlerr.UnknownError
	if err := tomlerr.Decode(text, &p); errors.As(err, &unknown) {
		others = unknown.Keys // these may be options
	} else if err != nil {
		return p, fmt.Errorf("%w; compare it with the output of `brood presets show`", err)
	}
	if err := p.setOptions(text, others); err != nil {
		return p, err
	}
	if p.Full != nil {
		if err := p.Full.check(); err != nil {
			return p, err
		}
	}
	if p.Tuned != nil {
		if err := p.Tuned.check(); err != nil {
			return p, err
		}
	}
	for _, c := range p.Claims {
		if err := c.check(); err != nil {
			return p, err
		}
		for _, name := range c.Others() {
			if _, err := Source(name); err != nil {
				return p, fmt.Errorf("a claim compares with %q: there is no such preset", name)
			}
		}
	}
	if p.Protocol != nil {
		if _, err := p.Protocol.Compile(); err != nil {
			return p, err
		}
		p.Options.Algorithm = cmp.Or(p.Options.Algorithm, protocol.Own.Name)
	}
	if p.Options.Algorithm == "" {
		return p, nil
	}
	alg, err := catalog.Lookup(p.Options.Algorithm)
	if err != nil {
		return p, err
	}
	names := p.Settings()
	if p.Full != nil {
		names = append(names, settings(p.Full.Knobs)...)
	}
	for _, s := range names {
		if _, ok := alg.Knob(s.Knob); !ok {
			return p, fmt.Errorf("%s has no knob %q%s", alg.Name, s.Knob, usererr.Suggest(s.Knob, alg.KnobNames()))
		}
	}
	return p, nil
}

// Setting is a knob with its expression as the user typed it.
type Setting struct{ Knob, Expr string }

// Settings returns the knobs, sorted by name.
func (p Preset) Settings() []Setting { return settings(p.Knobs) }

func settings(knobs map[string]any) (out []Setting) {
	for _, name := range slices.Sorted(maps.Keys(knobs)) {
		out = append(out, Setting{name, format(knobs[name])})
	}
	return out
}

func format(v any) string {
	switch x := v.(type) {
	case string:
		return x
	case float64:
		return strconv.FormatFloat(x, 'g', -1, 64)
	}
	return fmt.Sprint(v)
}
