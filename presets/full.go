package presets

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"brood/models/usererr"
	"brood/runtime/option"
)

// Full is the difference between a preset, which is a short form of an experiment, and the form of the source. Its
// options and knobs override those of the preset.
type Full struct {
	None   string         `toml:"none"`   // reason why there is no full form, one line; then all other fields are empty
	Expect string         `toml:"expect"` // time on two cores
	Knobs  map[string]any `toml:"knobs"`

	Options option.Options `toml:"-"`
}

// fullTable is the name of the table in a preset.
const fullTable = "full"

// options returns the options that are set.
func (f Full) options() []*option.Option {
	return slices.DeleteFunc(option.With(option.Full), func(x *option.Option) bool { return x.Text(f.Options) == "" })
}

func (f Full) check() error {
	given := len(f.options()) > 0 || f.Expect != "" || len(f.Knobs) > 0
	switch {
	case f.None != "" && given:
		return errors.New("the full form has none and other keys: give none, or the other keys")
	case f.None == "" && f.Expect == "":
		return errors.New("the full form needs expect, its expected time, or none, the reason why there is no full " +
			"form")
	}
	if err := f.Options.Check(); err != nil {
		return fmt.Errorf("the full form: %w", err)
	}
	return nil
}

// fullSuffix is the suffix of the recorded name of a preset that ran in its full form. No name of a preset ends with
// it.
const fullSuffix = "-full"

// InFull returns the preset in its full form, with the suffix in its name. Its claims have the published numbers, but
// their conditions are for the short form. It fails if the preset has no full form.
func (p Preset) InFull() (Preset, error) {
	switch f := p.Full; {
	case f == nil:
		return p, usererr.Errorf("the preset %s has no full form: run it without --full, or change it with "+
			"flags", p.Name)
	case f.None != "":
		return p, usererr.Errorf("the preset %s has no full form: %s", p.Name, f.None)
	default:
		p.Expect = f.Expect
		options := f.options()
		if slices.ContainsFunc(options, func(x *option.Option) bool { return x.Has(option.Ends) }) {
			// a limit of the full form replaces those of the preset
			p.Options.Limit.Rounds, p.Options.Limit.Epochs = 0, 0
		}
		for _, x := range options {
			x.Copy(&p.Options, f.Options)
		}
		p.Knobs = maps.Clone(p.Knobs)
		if p.Knobs == nil {
			p.Knobs = map[string]any{}
		}
		maps.Copy(p.Knobs, f.Knobs)
	}
	if path, ok := strings.CutSuffix(p.Name, ".toml"); ok {
		p.Name = path + fullSuffix + ".toml"
	} else {
		p.Name += fullSuffix
	}
	p.Title, p.Full = strings.TrimSuffix(p.Title, ", short")+", in full", nil
	return p, nil
}

// Published returns the published number to compare a claim with, for the full or the short form. It returns nil if the
// source has no number, and if the short form has another model or other data, unless the claim is a ratio, a slope or
// accounting.
func (p Preset) Published(c Claim, full bool) *float64 {
	other := p.Full != nil && (differs(p, option.Model) || differs(p, option.Data))
	if other && !full && c.Ratio == nil && c.Slope == nil && !c.Accounting() {
		return nil
	}
	return c.Published
}

// differs reports whether the full form changes an option.
func differs(p Preset, x *option.Option) bool {
	text := x.Text(p.Full.Options)
	return text != "" && text != x.Text(p.Options)
}

// Recorded returns the preset of a recorded name. full reports whether it ran in its full form.
func Recorded(name string) (p Preset, full bool, err error) {
	if p, err = Load(name); err == nil {
		return p, false, nil
	}
	path, own := strings.CutSuffix(name, ".toml")
	short, full := strings.CutSuffix(path, fullSuffix)
	if !full {
		return p, false, err
	}
	if own {
		short += ".toml"
	}
	p, err = Load(short)
	return p, full, err
}
