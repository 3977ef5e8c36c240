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

// Full is what the source's own form of an experiment changes of a preset, which is a shorter one: what is given here
// takes the place of the preset's, knob by knob.
type Full struct {
	None   string         `toml:"none"`   // why there is no full form, in a line; then nothing else is given
	Expect string         `toml:"expect"` // time on two cores
	Knobs  map[string]any `toml:"knobs"`

	Options option.Options `toml:"-"`
}

// fullTable is its name in a preset.
const fullTable = "full"

// told are the options that it gives.
func (f Full) told() []*option.Option {
	return slices.DeleteFunc(option.With(option.Full), func(x *option.Option) bool { return x.Text(f.Options) == "" })
}

func (f Full) check() error {
	given := len(f.told()) > 0 || f.Expect != "" || len(f.Knobs) > 0
	switch {
	case f.None != "" && given:
		return errors.New("the full form says why there is none, and then gives one: leave one of them out")
	case f.None == "" && f.Expect == "":
		return errors.New("the full form needs expect, the time to expect, or none, why there is no full form")
	}
	if err := f.Options.Check(); err != nil {
		return fmt.Errorf("the full form: %w", err)
	}
	return nil
}

// fullSuffix ends the recorded name of a preset that was run in its full form. No preset's own name ends so.
const fullSuffix = "-full"

// InFull is the preset in its full form, under a name of its own. Its claims keep what the source published; what they
// state is of the short form.
func (p Preset) InFull() (Preset, error) {
	switch f := p.Full; {
	case f == nil:
		return p, usererr.Errorf("the preset %s has no full form: run it as it is, or change it by flags", p.Name)
	case f.None != "":
		return p, usererr.Errorf("the preset %s has no full form: %s", p.Name, f.None)
	default:
		p.Expect = f.Expect
		told := f.told()
		if slices.ContainsFunc(told, func(x *option.Option) bool { return x.Has(option.Ends) }) {
			// with another end, these are not the preset's
			p.Options.Limit.Rounds, p.Options.Limit.Epochs = 0, 0
		}
		for _, x := range told {
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

// Published is what the source of a claim reports of the form that is run, full or short; nil where it reports no
// number, and where the short form has another net or other data, of which a number says nothing. A ratio, a slope and
// what is counted are compared all the same.
func (p Preset) Published(c Claim, full bool) *float64 {
	other := p.Full != nil && (differs(p, option.Model) || differs(p, option.Data))
	if other && !full && c.Ratio == nil && c.Slope == nil && !c.Accounting() {
		return nil
	}
	return c.Published
}

// differs says whether the full form tells an option otherwise.
func differs(p Preset, x *option.Option) bool {
	text := x.Text(p.Full.Options)
	return text != "" && text != x.Text(p.Options)
}

// Recorded is the preset of a recorded name; full says that it ran in its full form.
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
