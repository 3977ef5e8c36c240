package option_test

import (
	"slices"
	"strings"
	"testing"

	"brood/optim/catalog"
	"brood/runtime/event"
	"brood/runtime/option"
	"brood/runtime/option/optiontest"
)

// TestEveryOption: each option of the table, and two of this test, is set without a change of another; is copied; is
// formatted as it is parsed; is restored from a recorded configuration; and refuses an invalid value.
func TestEveryOption(t *testing.T) {
	tally, slack := optiontest.Lines()
	optiontest.Add(t, tally, slack)
	seen := map[string]bool{}
	for _, x := range option.All {
		if x.Name == "" || x.Doc == "" || x.Kind == "" || seen[x.Name] || option.Named(x.Name) != x {
			t.Errorf("%q: an option needs a unique name, a doc and a kind", x.Name)
		}
		seen[x.Name] = true
		var o option.Options
		good := optiontest.Good(x)
		if err := x.Set(&o, good); err != nil {
			t.Errorf("--%s %s: %v", x.Name, good, err)
		}
		for _, other := range option.All {
			if text := other.Text(o); (other == x) != (text != "") || other == x && text != good {
				t.Errorf("--%s %s made %s %q", x.Name, good, other.Name, text)
			}
		}
		if err := o.Check(); err != nil {
			t.Errorf("--%s %s: %v", x.Name, good, err)
		}
		var copied option.Options
		if x.Copy(&copied, o); x.Text(copied) != good || copied.Check() != nil {
			t.Errorf("--%s %s copied is %q", x.Name, good, x.Text(copied))
		}
		if x.Copy(&copied, option.Options{}); x.Text(copied) != "" {
			t.Errorf("--%s: nothing copied is %q", x.Name, x.Text(copied))
		}
		checkRecorded(t, x, o, good)
		checkResumed(t, x, o, good)
		if err := refusal(x, optiontest.Bad); err == nil || strings.Contains(err.Error(), "\n") {
			// TestEveryOption cannot know whether the file or name exists
			if x.Kind != option.Text || x.Check != nil || x.Choices != nil {
				t.Errorf("--%s %q: %v", x.Name, optiontest.Bad, err)
			}
		}
		if x.Above != "" {
			if err := x.CheckTyped(option.Options{}); err == nil ||
				!strings.Contains(err.Error(), "--"+x.Name+" "+x.Written(option.Options{})) {
				t.Errorf("--%s of nothing: %v", x.Name, err)
			}
		}
	}
}

// refusal returns the error of parsing or of checking a text.
func refusal(x *option.Option, text string) error {
	var o option.Options
	if err := x.Set(&o, text); err != nil {
		return err
	}
	return o.Check()
}

func checkRecorded(t *testing.T, x *option.Option, o option.Options, good string) {
	t.Helper()
	var c event.Config
	o.Record(&c)
	back, err := option.Recorded(c)
	want := good
	if !x.Has(option.Logged) {
		want = ""
	}
	if err != nil || x.Text(back) != want {
		t.Errorf("--%s %s is recorded as %q (%v), want %q", x.Name, good, x.Text(back), err, want)
	}
}

// checkResumed: a resumed or branched run changes the options that it may change, in its options and in its recorded
// configuration, and no others.
func checkResumed(t *testing.T, x *option.Option, given option.Options, good string) {
	t.Helper()
	var o option.Options
	var c event.Config
	o.ApplyResumed(&c, given)
	back, err := option.Recorded(c)
	takes := x.Has(option.Again) && !x.Has(option.Ends)
	if (x.Text(o) == good) != takes || err != nil || (x.Text(back) == good) != (takes && x.Has(option.Logged)) {
		t.Errorf("--%s %s given again: %q, on record %q (%v)", x.Name, good, x.Text(o), x.Text(back), err)
	}
	if err := given.CheckResume(); (err == nil) != x.Has(option.Again) ||
		err != nil && !strings.HasPrefix(err.Error(), x.Name+" = "+good) {
		t.Errorf("--%s %s to a resumed session: %v", x.Name, good, err)
	}
}

// TestUnknownRecorded: an option of a newer brood that this one does not know is refused, since it would change the
// run.
func TestUnknownRecorded(t *testing.T) {
	refused := func(name, text, want string) {
		t.Helper()
		if _, err := option.Recorded(event.Config{More: map[string]string{name: text}}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	refused("tally", "hand", `records the option tally = "hand", which this version of brood lacks`)
	tally, slack := optiontest.Lines()
	optiontest.Add(t, tally, slack)
	refused("slack-time", "late", `records slack-time = "late", which is not a whole number`)
}

// TestNothingShared: options are values, and so are those without a field.
func TestNothingShared(t *testing.T) {
	tally, slack := optiontest.Lines()
	optiontest.Add(t, tally, slack)
	set := func(x *option.Option, o *option.Options, text string) {
		t.Helper()
		if err := x.Set(o, text); err != nil {
			t.Fatal(err)
		}
	}
	var a option.Options
	set(tally, &a, "hand")
	b := a
	set(tally, &b, "machine")
	set(slack, &b, "3")
	var c event.Config
	a.Record(&c)
	d := c
	b.Record(&d)
	if tally.Text(a) != "hand" || slack.Text(a) != "" || len(c.More) != 1 || c.More["tally"] != "hand" ||
		len(d.More) != 2 {
		t.Errorf("%v and %v, recorded %v and %v", a.More, b.More, c.More, d.More)
	}
}

// TestRefusals: the error of a value out of bounds names the option.
func TestRefusals(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"members", "3000000", "members = 3000000 is out of bounds: give 1 to 262144"},
		{"members", "-2", "members = -2 is out of bounds: give 1 to 262144"},
		{"workers", "1025", "workers = 1025 is out of bounds: give 1 to 1024"},
		{"threads", "-1", "threads = -1 is out of bounds: give 1 to 1024"},
		{"epochs", "-2.5", "epochs = -2.5 must be a number above 0"},
		{"epochs", "NaN", "epochs = NaN must be a number above 0"},
		{"epochs", "+Inf", "epochs = +Inf must be a number above 0"},
		{"for", "-3s", "for = -3 seconds is not above 0: give a duration such as 30s"},
		{"on-loss", "cry", `on-loss "cry": choose reseed, rollback, shrink or mirror`},
		{"on-trouble", "cry", `on-trouble "cry": choose wait, stop or back`},
		{"target", "speed=3", `target "speed=3": write loss=0.1, test_loss=0.1, test_error=2.8 (percent), test_bits=2, test_hamming=1, test_rmse=5, test_r2=0.9, fitness=-0.1 (minus a loss) or test_fitness=475 (of an objective)`},
		{"augment", "turn", `augment = "turn": write pad=N or reflect=N, flip or alternate, one of each with a comma between them, such as pad=4,flip, or none`},
		{"rounds", "-1", "whole number of 0 or more"},
		{"members", "three", "whole number, nor auto"},
		{"for", "3", "duration such as 30s"},
	} {
		if err := refusal(option.Named(c.name), c.text); err == nil || err.Error() != c.want {
			t.Errorf("%s %s: %v, want %s", c.name, c.text, err, c.want)
		}
	}
	for _, c := range []struct{ name, text, want string }{
		{"members", "0", "--members 0: give 1 or more"}, {"rounds", "0", "--rounds 0: give 1 or more"},
		{"epochs", "-1.5", "--epochs -1.5: give a number above 0"}, {"epochs", "NaN", "--epochs NaN: give a number above 0"},
		{"for", "0s", "--for 0s: give a duration such as 30s"}, {"for", "-3s", "--for -3s: give a duration such as 30s"},
	} {
		x, o := option.Named(c.name), option.Options{}
		if err := x.Set(&o, c.text); err != nil {
			t.Fatal(err)
		}
		if err := x.CheckTyped(o); err == nil || err.Error() != c.want {
			t.Errorf("--%s %s: %v, want %s", c.name, c.text, err, c.want)
		}
	}
	for _, x := range []*option.Option{option.Seed, option.Probe, option.Evaluate} {
		if err := x.CheckTyped(option.Options{}); err != nil {
			t.Errorf("--%s 0: %v", x.Name, err)
		}
	}
}

// TestNamesAreNoKnobs: an axis of a sweep is a knob or an option, so a name that is both is an option that a sweep may
// vary.
func TestNamesAreNoKnobs(t *testing.T) {
	for _, a := range catalog.All() {
		for _, k := range a.Knobs {
			if x := option.Named(k.Name); x != nil && !x.Has(option.Axis) {
				t.Errorf("%s of %s is an option too", k.Name, a.Name)
			}
		}
	}
}

// TestUsesStay: the uses on which sessions, files and scripts rely. A new option may have any uses.
func TestUsesStay(t *testing.T) {
	all := "algorithm model data augment members workers threads epochs rounds for target seed init on-loss on-trouble " +
		"probe evaluate"
	for use, names := range map[option.Use]string{
		option.Preset: "algorithm model data augment members workers epochs rounds for target seed on-loss on-trouble probe evaluate",
		option.Full:   "model data augment members workers epochs rounds",
		option.Axis:   "algorithm model data members workers epochs rounds",
		option.Again:  "workers threads epochs rounds for target on-loss on-trouble",
		option.Ends:   "epochs rounds for target",
		option.Logged: "model data augment epochs rounds for target seed on-loss on-trouble probe evaluate",
		option.Joined: "",
	} {
		for _, name := range strings.Fields(all) {
			x := option.Named(name)
			if x == nil {
				t.Fatalf("there is no option %s", name)
			}
			if want := slices.Contains(strings.Fields(names), name); x.Has(use) != want {
				t.Errorf("%s for use %b: %v, want %v", name, use, x.Has(use), want)
			}
		}
	}
}

// TestUses: an option of the full form is also a key of presets; a limit can be given again and is recorded.
func TestUses(t *testing.T) {
	for _, x := range option.All {
		for _, both := range [][2]option.Use{{option.Full, option.Preset}, {option.Ends, option.Again},
			{option.Ends, option.Logged}} {
			if x.Has(both[0]) && !x.Has(both[1]) {
				t.Errorf("%s may be used for %b and not for %b", x.Name, both[0], both[1])
			}
		}
	}
}
