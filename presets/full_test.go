package presets

import (
	"strings"
	"testing"
)

// TestInFull: the full form overrides its settings, knob by knob, keeps the others, and does not change the short form.
func TestInFull(t *testing.T) {
	p, err := Parse([]byte("title = \"A, short\"\nalgorithm = \"parle\"\nmodel = \"lenet\"\nmembers = 3\nepochs = 3\n" +
		"seed = 7\n[knobs]\neta = 0.1\nell = 10\n" +
		"[full]\nmembers = 6\nrounds = 50\nexpect = \"an hour\"\n[full.knobs]\neta = 0.2\nrho = 2\n"))
	if err != nil {
		t.Fatal(err)
	}
	p.Name = "a"
	full, err := p.InFull()
	if err != nil {
		t.Fatal(err)
	}
	if full.Name != "a-full" || full.Title != "A, in full" || full.Options.Members != 6 ||
		full.Options.Limit.Rounds != 50 || full.Options.Limit.Epochs != 0 || full.Options.Model != "lenet" ||
		full.Options.Seed != 7 || full.Expect != "an hour" || full.Full != nil {
		t.Errorf("in full it is %+v", full)
	}
	text := func(p Preset) (out string) {
		for _, s := range p.Settings() {
			out += s.Knob + "=" + s.Expr + " "
		}
		return out
	}
	if text(full) != "ell=10 eta=0.2 rho=2 " || text(p) != "ell=10 eta=0.1 " {
		t.Errorf("knobs are %sin full and %sin short", text(full), text(p))
	}
	for _, none := range []Preset{{Name: "b"}, {Name: "c", Full: &Full{None: "it is all there is"}}} {
		if _, err := none.InFull(); err == nil || !strings.Contains(err.Error(), "no full form") {
			t.Errorf("%s: %v", none.Name, err)
		}
	}
}

func TestFullIsChecked(t *testing.T) {
	for text, says := range map[string]string{
		"[full]\nepochs = 3": "needs expect",
		"[full]\nnone = \"too long\"\nepochs = 3": "has none and other " +
			"keys",
		"[full]\nexpect = \"a day\"\ncolour = 3":                                              "colour",
		"algorithm = \"parle\"\n[full]\nexpect = \"a day\"\n[full.knobs]\nzeta = 1":           "zeta",
		"algorithm = \"parle\"\n[full]\nexpect = \"a day\"\nnone = \"\"\n[full.knobs]\nh = 1": "no knob \"h\"",
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, name := range List() { // else a recorded name could mean two things
		if strings.HasSuffix(name, fullSuffix) {
			t.Errorf("the name of the preset %s is that of a full form", name)
		}
	}
}

// TestPublished: a published number of another model or of other data is shown only with the full form; a ratio is
// shown with the short form too.
func TestPublished(t *testing.T) {
	for _, c := range []struct {
		preset string
		claim  int
		full   bool
		want   bool
	}{
		{"parle-lenet", 0, false, true},  // the source's net and data
		{"parle-split", 0, false, false}, // LeNet on MNIST for All-CNN on CIFAR-10
		{"parle-split", 0, true, true},
		{"parle-cifar", 0, false, false},
		{"hybrid-r2", 1, false, true}, // half of the bytes, whatever the net
	} {
		p, err := Load(c.preset)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Published(p.Claims[c.claim], c.full); (got != nil) != c.want || p.Claims[c.claim].Published == nil {
			t.Errorf("%s, full %v: published %v, want one: %v", c.preset, c.full, got, c.want)
		}
	}
	for _, name := range []string{"darwinn-10k-es", "darwinn-30k-es"} {
		// neither form has the net that a number is known of
		p, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
		if p.Claims[0].Published != nil {
			t.Errorf("%s stands beside %g, of another net", name, *p.Claims[0].Published)
		}
	}
}
