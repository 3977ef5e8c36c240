package archive

import (
	"math"
	"path/filepath"
	"slices"
	"testing"

	"brood/runtime/axis"
	"brood/runtime/event"
)

// in returns the run of a log in a directory.
func (m *maker) in(t *testing.T, dir string) *Run {
	t.Helper()
	r := m.run(t, filepath.Base(dir))
	r.Dir = filepath.FromSlash(dir)
	return r
}

// TestParents: finds the parent of a fork among several runs. The log of the fork has only a name, which several runs
// may have.
func TestParents(t *testing.T) {
	runOf := func(seed uint64, rounds uint64) func(string) *Run {
		return func(dir string) *Run {
			m := begin(seed, nil)
			m.rounds(rounds)
			return m.in(t, dir)
		}
	}
	good, seed, short := runOf(1, 40), runOf(2, 40), runOf(1, 19)
	fork := func(parent string) *Run {
		m := forked(1, true)
		m.rounds(10)
		m.out[0].Config.Parent = parent
		return m.in(t, "/a/c")
	}
	for name, c := range map[string]struct {
		fork *Run
		runs []*Run
		want int // index of the parent, -1 if it is unknown
	}{
		"the same name":                           {fork("p"), []*Run{good("/b/q"), good("/b/p")}, 1},
		"the same seed":                           {fork("p"), []*Run{seed("/a/p"), good("/b/p")}, 1},
		"enough rounds":                           {fork("p"), []*Run{short("/a/p"), good("/b/p")}, 1},
		"the same directory":                      {fork("p"), []*Run{good("/b/p"), good("/a/p")}, 1},
		"ambiguous":                               {fork("p"), []*Run{good("/b/p"), good("/d/p")}, -1},
		"another run with that name":              {fork("p"), []*Run{seed("/a/p")}, -1},
		"a run with that name and too few rounds": {fork("p"), []*Run{short("/a/p")}, -1},
		"a path":                                  {fork("/b/p"), []*Run{good("/a/p"), good("/b/p")}, 1},
		"a path that no run has":                  {fork("/d/p"), []*Run{good("/a/p")}, -1},
		"a parent with the name of its fork":      {fork("c"), []*Run{good("/b/c")}, 0},
	} {
		runs := append(slices.Clone(c.runs), c.fork)
		Join(runs)
		want := 0.0
		if c.want >= 0 {
			want = 10 // the seconds of 20 rounds
		}
		from, _ := c.fork.Span(axis.Seconds)
		if from != want || c.fork.Whole() != (c.want >= 0) {
			t.Errorf("%s: the fork starts at %v s, whole %v", name, from, c.fork.Whole())
		}
		if c.want >= 0 && c.fork.parent != c.runs[c.want] {
			t.Errorf("%s: the parent differs", name)
		}
	}
}

// TestNames: runs with the same name are distinguished by the shortest different ends of their paths.
func TestNames(t *testing.T) {
	m := begin(1, nil)
	m.rounds(4)
	for _, c := range []struct{ dirs, want []string }{
		{[]string{"/x/s/one", "/x/s/two"}, []string{"one", "two"}},
		{[]string{"/x/s/one", "/x/t/one", "/x/s/two"}, []string{"s/one", "t/one", "two"}},
		{[]string{"/x/s/one", "/y/s/one", "/y/t/one"}, []string{"x/s/one", "y/s/one", "t/one"}},
		{[]string{"/one", "/s/one", "/s/s/one"}, []string{"/one", "/s/one", "s/s/one"}},
	} {
		var runs []*Run
		for _, d := range c.dirs {
			runs = append(runs, m.in(t, d))
		}
		Join(runs)
		for i, r := range runs {
			if r.Name != filepath.FromSlash(c.want[i]) {
				t.Errorf("%s has the name %s, want %s", r.Dir, r.Name, c.want[i])
			}
		}
	}
}

// TestForkIsCountedWhole: if the parent of a fork is among the runs, the seconds and bytes of the fork include those of
// its parent. Otherwise they are its own and not ranked.
func TestForkIsCountedWhole(t *testing.T) {
	parent, child, other := begin(1, nil), forked(1, true), begin(1, nil)
	parent.rounds(20)
	for begun := len(parent.out); parent.at < 30; {
		parent.rounds(1)
		for _, r := range parent.out[begun:] { // the parent's last rounds cost more than those of the fork
			if r.Commit != nil {
				r.Commit.Nanos, r.Commit.Sent["sum"] = 1e9, 200
			}
		}
	}
	child.rounds(10)
	other.rounds(30)
	figures := func(runs []*Run, want map[string]float64, best map[string][]string) {
		t.Helper()
		Join(runs)
		for name, x := range want {
			if got, ok := runs[0].Metric(name); !ok || math.Abs(got-x) > 1e-9 {
				t.Errorf("%s of the fork is %v, want %v", name, got, x)
			}
		}
		for name, want := range best {
			names := []string{}
			for _, r := range Best(runs, Metric{Name: name}) {
				names = append(names, r.Name)
			}
			if !slices.Equal(names, want) {
				t.Errorf("the best of %s are %v, want %v", name, names, want)
			}
		}
	}
	figures([]*Run{child.run(t, "c"), parent.run(t, "p")},
		map[string]float64{"seconds": 15, "bytes": 3000, "samples_per_s": 20},
		map[string][]string{"seconds": {"c"}, "bytes": {"c"}})
	figures([]*Run{child.run(t, "c"), parent.run(t, "q"), other.run(t, "r")},
		map[string]float64{"seconds": 5, "bytes": 1000, "samples_per_s": 20},
		map[string][]string{"seconds": {"r"}, "bytes": {"r"}})
	parent.rounds(10)
	figures([]*Run{child.run(t, "c"), parent.run(t, "q"), other.run(t, "r")}, nil,
		map[string][]string{"seconds": {}, "bytes": {}, "train_loss": {"c", "r"}})
	figures([]*Run{child.run(t, "c"), other.run(t, "r")}, nil, map[string][]string{"seconds": {}, "bytes": {}})

	grandchild := &maker{every: 1} // of a fork whose own parent is missing
	grandchild.put(event.Record{Config: &event.Config{
		Version:  1,
		Model:    "mlp",
		Data:     "glyphs",
		Seed:     1,
		Parent:   "c",
		ParentAt: 25,
	}})
	grandchild.plan(event.Saved, 25, "dp-sgd", 4)
	grandchild.rounds(10)
	runs := []*Run{grandchild.run(t, "g"), child.run(t, "c"), other.run(t, "r")}
	Join(runs)
	if runs[0].Whole() {
		t.Error("a fork of a fork without its parent is whole")
	}
}
