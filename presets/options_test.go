package presets

import (
	"fmt"
	"strings"
	"testing"

	"brood/runtime/option"
	"brood/runtime/option/optiontest"
)

// TestOptionsAreKeys: every option that may be a key of a preset, or of its full form, is read from TOML, and its
// invalid values give an error with the key; every other option is rejected as a key.
func TestOptionsAreKeys(t *testing.T) {
	tally, slack := optiontest.Lines()
	optiontest.Add(t, tally, slack)
	for _, x := range option.All {
		good := inTOML(x, optiontest.Good(x))
		p, err := Parse(fmt.Appendf(nil, "title = \"a\"\n%s = %s\n", x.Name, good))
		expect(t, x, option.Preset, p, err, 2, x.Name)
		p, err = Parse(fmt.Appendf(nil, "[full]\nexpect = \"a day\"\n%s = %s\n", x.Name, good))
		if err == nil {
			p, err = p.InFull()
		}
		expect(t, x, option.Full, p, err, 3, "full."+x.Name)
		if !x.Has(option.Preset) {
			continue
		}
		for _, bad := range []string{`{ a = 1 }`, `[1]`, `true`, inTOML(x, optiontest.Bad)} {
			_, err := Parse(fmt.Appendf(nil, "%s = %s\n", x.Name, bad))
			if free := x.Kind == option.Text && x.Check == nil && x.Choices == nil && bad == inTOML(x, optiontest.Bad); free &&
				x != option.Algorithm {
				continue
			}
			if err == nil || !strings.Contains(err.Error(), x.Name) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s = %s: %v", x.Name, bad, err)
			}
		}
	}
}

// inTOML returns a value as written in a preset file.
func inTOML(x *option.Option, text string) string {
	if x.Kind == option.Text || x.Kind == option.Span || text == optiontest.Bad {
		return `"` + text + `"`
	}
	return text
}

func expect(t *testing.T, x *option.Option, use option.Use, p Preset, err error, row int, key string) {
	t.Helper()
	if unknown := fmt.Sprintf("line %d: unknown key %s", row, key); !x.Has(use) {
		if err == nil || err.Error() != unknown {
			t.Errorf("%s: %v, want %s", key, err, unknown)
		}
	} else if err != nil || x.Text(p.Options) != optiontest.Good(x) {
		t.Errorf("%s: %q, %v", key, x.Text(p.Options), err)
	}
}

// TestFullEnds: the limits of a full form replace those of the preset.
func TestFullEnds(t *testing.T) {
	p, err := Parse([]byte("rounds = 9\nfor = \"1m\"\n[full]\nexpect = \"a day\"\nepochs = 3\n"))
	if err == nil {
		p, err = p.InFull()
	}
	if l := p.Options.Limit; err != nil || l.Rounds != 0 || l.Epochs != 3 || l.Seconds != 60 {
		t.Errorf("%+v, %v", l, err)
	}
}
