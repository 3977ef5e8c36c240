package presets_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"brood/models/usererr"
	"brood/optim/catalog"
	"brood/presets"
	"brood/runtime/option"
)

// TestPlans: every plan can be read, uses existing presets, and sets knobs that their algorithms have.
func TestPlans(t *testing.T) {
	for _, name := range presets.Plans() {
		p, err := presets.LoadPlan(name)
		if err != nil {
			t.Fatal(err)
		}
		if p.Title == "" || p.Paper == "" || p.Expect == "" || len(p.Runs(p.Workers[0])) == 0 {
			t.Errorf("%s lacks a title, its paper, what to expect, or runs", name)
		}
		for _, r := range p.Runs(p.Workers[len(p.Workers)-1]) {
			base, err := presets.Load(r.Curve.Preset)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			alg, err := catalog.Lookup(base.Options.Algorithm)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range r.Settings() {
				if o := option.Named(s.Knob); o != nil && o.Has(option.Axis) {
					continue
				}
				if k, ok := alg.Knob(s.Knob); !ok {
					t.Errorf("%s, %s: %s has no knob %s", name, r.Curve.Name, alg.Name, s.Knob)
				} else if _, err := k.Parse(s.Expr); err != nil {
					t.Errorf("%s, %s: %v", name, r.Curve.Name, err)
				}
			}
		}
	}
}

// TestRunsOfPlan: a single worker runs each population once, whatever the links; populations that are smaller than
// their fleet are skipped.
func TestRunsOfPlan(t *testing.T) {
	p := presets.Scaling{
		Workers: []int{1, 2, 8},
		Links:   []string{"", "1Mbit"},
		Each:    []int{2},
		Members: []int{4},
		Curves:  []presets.Curve{{Name: "a", Set: []string{"groups=workers"}}},
	}
	for workers, want := range map[int]string{1: " 2; 4;", 2: " 4;1Mbit 4;", 8: " 16;1Mbit 16;"} {
		text := ""
		for _, r := range p.Runs(workers) {
			s := r.Settings()
			text += r.Link + " " + s[1].Expr + ";"
			if s[0].Expr != map[int]string{1: "1", 2: "2", 8: "8"}[workers] {
				t.Errorf("groups are %s on %d workers", s[0].Expr, workers)
			}
		}
		if text != want {
			t.Errorf("%d workers run %q, want %q", workers, text, want)
		}
	}
}

func TestBadPlans(t *testing.T) {
	const fine = "workers = [1, 2]\neach = [1]\nrounds = 6\n[[curves]]\nname = \"a\"\npreset = \"quickstart\"\n"
	path := filepath.Join(t.TempDir(), "p.toml")
	load := func(text string) error {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := presets.LoadPlan(path)
		return err
	}
	if err := load(fine); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ from, to, says string }{
		{"[1, 2]", "[2, 1]", "in ascending order"},
		{"[1, 2]", "[0]", "give numbers from 1"},
		{"[1, 2]", "[]", "give workers"},
		{"each = [1]", "", "give each"},
		{"rounds = 6", "rounds = 5", "give rounds, 6 or more"},
		{"rounds = 6", "rounds = 6\ndelay = \"1ms\"", "delay applies to links with a rate"},
		{"rounds = 6", "rounds = 6\nlinks = [\"1Mbit\", \"1Mbit\"]", "a rate is given twice"},
		{"rounds = 6", "rounds = 6\nepochs = 2", "epochs needs a target"},
		{"rounds = 6", "target = \"loss=1\"", "the limit of runs that miss it"},
		{"rounds = 6", "target = \"loss=1\"\nepochs = 1", "give probe"},
		{"rounds = 6", "rounds = 6\nslow = 0.5", "slow = 0.5"},
		{"rounds = 6", "rounds = 6\nsloww = 2", "sloww"},
		{"rounds = 6", "rounds", "line 3"},
		{"[[curves]]\nname = \"a\"\npreset = \"quickstart\"\n", "", "give at least one [[curves]]"},
		{"rounds = 6", "rounds = 6\nseeds = 101", "seeds = 101: give a number from 1 to 100"},
		{"rounds = 6", "rounds = 6\nseeds = -1", "give a number from 1"},
		{"name = \"a\"", "name = \"\"", "give each curve a unique name"},
		{"name = \"a\"", "name = \"a\"\nprobe = 3", "give probe"},
		{"name = \"a\"", "name = \"a\"\nset = [\"members=3\"]", "members and workers are keys of the plan"},
		{"name = \"a\"", "name = \"a\"\nset = [\"eta\"]", "give NAME=VALUE"},
	} {
		if err := load(strings.Replace(fine, c.from, c.to, 1)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s for %s: %v, want %q", c.to, c.from, err, c.says)
		} else if !usererr.Is(err) {
			t.Errorf("%s for %s: what is wrong with a plan of one's own was typed", c.to, c.from)
		}
	}
	if _, err := presets.LoadPlan("none"); err == nil || !strings.Contains(err.Error(), "choose one of") {
		t.Errorf("a plan that there is not: %v", err)
	}
}

// TestPlanOnPage: the plan on the scaling page can be read.
func TestPlanOnPage(t *testing.T) {
	page, err := os.ReadFile("../docs/scaling.md")
	if err != nil {
		t.Fatal(err)
	}
	plans := regexp.MustCompile("(?s)```toml\n(.*?)```").FindAllSubmatch(page, -1)
	if len(plans) == 0 {
		t.Fatal("scaling.md shows no plan")
	}
	for _, plan := range plans {
		file := filepath.Join(t.TempDir(), "mine.toml")
		if err := os.WriteFile(file, plan[1], 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := presets.LoadPlan(file); err != nil {
			t.Error(err)
		}
	}
}
