// Package presets holds named experiments as TOML: model, data, algorithm, knobs and fleet. A person's own file has the
// same form. It imports optim, models and the table of options only.
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

// Preset is an experiment: what it tells a run, under the names of its options, and what is to be known of it.
type Preset struct {
	Name   string         `toml:"-"`
	Title  string         `toml:"title"`
	Doc    string         `toml:"doc"`
	Paper  string         `toml:"paper"`  // reference, with table or figure
	Expect string         `toml:"expect"` // time on two cores, and what to see
	Study  string         `toml:"study"`  // the set that it is run with to reproduce a source; "": none
	Claims []Claim        `toml:"claims"` // what it tests
	Knobs  map[string]any `toml:"knobs"`  // a value or a schedule each
	Full   *Full          `toml:"full"`   // the source's own form, of which this is a short one

	Options option.Options `toml:"-"` // what it tells, without what the table of options does not name

	Protocol *protocol.Spec `toml:"protocol"` // rules, for the algorithm of that name, which it implies
}

// Rules are what the algorithm is given and the run records, nil for none.
func (p Preset) Rules() ([]byte, error) {
	if p.Protocol == nil {
		return nil, nil
	}
	return p.Protocol.Text()
}

// List names the embedded presets.
func List() (out []string) {
	entries, _ := embedded.ReadDir(".")
	for _, e := range entries {
		out = append(out, strings.TrimSuffix(e.Name(), ".toml"))
	}
	slices.Sort(out)
	return out
}

// Source is the text of an embedded preset, or of a file when nameOrPath ends in .toml.
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
		return nil, usererr.Errorf("there is no preset %q%s: choose one of %s, or another of `brood presets`, or give the path of a .toml file", nameOrPath,
			usererr.Suggest(nameOrPath, List()), strings.Join(like(nameOrPath), ", "))
	}
	return text, nil
}

// like are the presets whose names begin as this one does, or those that no study needs.
func like(name string) (out []string) {
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

// Load reads what Source finds.
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
		p.beside(filepath.Dir(nameOrPath))
	}
	return p, nil
}

// beside makes the relative paths of a preset's file those of its folder.
func (p *Preset) beside(dir string) {
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

// Parse reads a preset and checks its algorithm and the names of its knobs.
func Parse(text []byte) (Preset, error) {
	var p Preset
	var others []tomlerr.Key
	var unknown *tomlerr.UnknownError
	if err := tomlerr.Decode(text, &p); errors.As(err, &unknown) {
		others = unknown.Keys // which may be options
	} else if err != nil {
		return p, fmt.Errorf("%w; compare it with what `brood presets show` prints", err)
	}
	if err := p.tell(text, others); err != nil {
		return p, err
	}
	if p.Full != nil {
		if err := p.Full.check(); err != nil {
			return p, err
		}
	}
	for _, c := range p.Claims {
		if err := c.check(); err != nil {
			return p, err
		}
		for _, name := range c.Others() {
			if _, err := Source(name); err != nil {
				return p, fmt.Errorf("a claim compares with %q, and there is no such preset", name)
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

// Setting is a knob as typed.
type Setting struct{ Knob, Expr string }

// Settings lists the knobs in order of name.
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
