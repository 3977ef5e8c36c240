package archive

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"

	"brood/optim/collective"
	"brood/runtime/axis"
	"brood/runtime/event"
	"brood/runtime/option/optiontest"
	"brood/runtime/view/sourcetest"
)

// maker makes a log. Each round has 10 samples, 100 bytes and half a second; the loss of each member is the number of
// the round.
type maker struct {
	out     []event.Record
	at      uint64
	members int
	every   uint64 // rounds per commit
}

func (m *maker) put(r event.Record) {
	r.At = int64(1e18) + int64(len(m.out))*1e9
	m.out = append(m.out, r)
}

func (m *maker) plan(from event.Source, at uint64, algorithm string, members int) {
	m.at, m.members = at, members
	m.put(event.Record{Plan: &event.Plan{
		Epoch:     uint32(len(m.out)),
		At:        at,
		From:      from,
		Algorithm: algorithm,
		New:       collective.Place(collective.IDs(members), []int{0}),
	}})
}

func (m *maker) rounds(n uint64) {
	for range n / m.every {
		for range m.every {
			m.at++
			losses := make([]float64, m.members)
			for i := range losses {
				losses[i] = float64(m.at)
			}
			m.put(event.Record{Points: &event.Points{
				Round:   m.at,
				Series:  "loss",
				Members: collective.IDs(m.members),
				Values:  losses,
			}})
		}
		m.put(event.Record{Commit: &event.Commit{To: m.at, Rounds: m.every, Nanos: int64(m.every) * 5e8,
			Sent:      map[collective.Op]int64{"sum": int64(m.every) * 100},
			Predicted: map[collective.Op]int64{"sum": int64(m.every) * 100},
			Progress:  event.Progress{Rounds: m.at, Steps: 2 * m.at, Samples: 10 * m.at, Epochs: float64(m.at) / 100}}})
	}
}

func (m *maker) edit(at uint64, knob, expr string) {
	m.put(event.Record{Edit: &event.Edit{At: at, Algorithm: "dp-sgd", Knob: knob, Expr: expr, By: "ann"}})
}

// begin starts a log of dp-sgd with four members.
func begin(seed uint64, of func(*event.Config)) *maker {
	m := &maker{every: 1}
	c := event.Config{Version: 1, Model: "mlp", Data: "glyphs", Seed: seed, Limit: event.Limit{Rounds: 100}}
	if of != nil {
		of(&c)
	}
	m.put(event.Record{Config: &c})
	m.plan(event.Fresh, 0, "dp-sgd", 4)
	return m
}

func (m *maker) run(t *testing.T, name string) *Run {
	t.Helper()
	r, err := fold(name, func(yield func(event.Record, error) bool) {
		for _, rec := range m.out {
			if !yield(rec, nil) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestSettings: settings include the initial values and later changes with their first round, without those that a
// rollback undid.
func TestSettings(t *testing.T) {
	m := begin(7, nil)
	m.edit(0, "eta", "0.2")
	m.rounds(10)
	m.edit(12, "eta", "0.1")
	m.rounds(10)
	m.plan(event.Workers, 20, "dp-sgd", 6)
	m.rounds(10)
	m.plan(event.Workers, 30, "dp-sgd", 8)
	m.plan(event.Saved, 25, "dp-sgd", 6)
	m.rounds(5)
	r := m.run(t, "a")
	for name, want := range map[string]string{
		"eta": "0.2 → 0.1 @13", "members": "4 → 6 @21", "algorithm": "dp-sgd", "seed": "7", "limit": "100 rounds",
		"model": "mlp", "nothing": "",
	} {
		if got := r.Value(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if r.Value("batch") == "" {
		t.Error("a knob at its default is not listed")
	}
}

// TestSettingsOfTheTable: options without their own key in the log are settings too, also those of another version.
func TestSettingsOfTheTable(t *testing.T) {
	tally, slack := optiontest.Lines()
	optiontest.Add(t, tally, slack)
	m := begin(0, func(c *event.Config) {
		c.More, c.OnLoss, c.Probe = map[string]string{"tally": "hand", "later": "9"}, "shrink", 7
	})
	m.rounds(4)
	r := m.run(t, "a")
	for name, want := range map[string]string{"tally": "hand", "later": "9", "on-loss": "shrink", "seed": "0",
		"slack-time": "", "probe": "", "rounds": ""} {
		if got := r.Value(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

// TestDifferences: only settings that differ are listed, with "" for a run without the setting. Runs that differ only
// in their seed are one group.
func TestDifferences(t *testing.T) {
	one := begin(1, nil)
	two := begin(2, nil)
	three := begin(1, func(c *event.Config) { c.Augment = "shift=2" })
	three.edit(0, "eta", "0.5")
	var runs []*Run
	for i, m := range []*maker{one, two, three} {
		m.rounds(4)
		runs = append(runs, m.run(t, fmt.Sprint(i)))
	}
	got := Differences(runs)
	eta := runs[0].Value("eta")
	want := []Difference{{"seed", []string{"1", "2", "1"}}, {"augment", []string{"", "", "shift=2"}},
		{"eta", []string{eta, eta, "0.5"}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("differences %v, want %v", got, want)
	}
	if d := Differences(runs[:1]); len(d) > 0 {
		t.Errorf("a run differs from itself: %v", d)
	}
	other := begin(1, nil)
	other.plan(event.Fresh, 0, "parle", 4)
	other.edit(0, "unknown", "1") // of another algorithm
	other.rounds(4)
	parle := other.run(t, "p")
	if parle.Value("gamma") == "" {
		t.Fatal("parle has no gamma")
	}
	names := []string{}
	for _, d := range Differences([]*Run{runs[0], parle}) {
		names = append(names, d.Name)
	}
	if !slices.Contains(names, "algorithm") || slices.Contains(names, "gamma") {
		t.Errorf("the differences from parle are %v", names)
	}
	other.put(event.Record{Edit: &event.Edit{Algorithm: "parle", Knob: "gamma", Expr: "50", By: "flag"}})
	set := Differences([]*Run{runs[0], other.run(t, "p")})
	if i := slices.IndexFunc(set, func(d Difference) bool { return d.Name == "gamma" }); i < 0 ||
		!slices.Equal(set[i].Values, []string{"", "50"}) {
		t.Errorf("a knob that was set is no difference: %v", set)
	}
	groups := Groups(runs)
	if len(groups) != 2 || len(groups[0].Runs) != 2 || groups[1].Runs[0] != runs[2] {
		t.Errorf("groups %v", groups)
	}
	mean, se, n := groups[0].Mean("train_loss") // 4 for both
	if mean != 4 || se != 0 || n != 2 {
		t.Errorf("mean %v ± %v of %d", mean, se, n)
	}
}

func TestBest(t *testing.T) {
	var runs []*Run
	for i, n := range []uint64{4, 6, 4} {
		m := begin(uint64(i), nil)
		m.rounds(n)
		runs = append(runs, m.run(t, fmt.Sprint(i)))
		runs[i].Figures["test_loss"] = float64(n)
	}
	if best := Best(runs, Metric{Name: "train_loss"}); len(best) != 2 || best[0] != runs[0] || best[1] != runs[2] {
		t.Errorf("the best are %v", best)
	}
	if best := Best(runs, Metric{Name: "test_loss", More: true}); len(best) != 1 || best[0] != runs[1] {
		t.Errorf("the best are %v", best)
	}
	tries := begin(4, nil)
	tries.rounds(2)
	for _, r := range tries.out {
		if r.Points != nil && r.Points.Series == "loss" {
			r.Points.Series = event.SeriesFitness
		}
	}
	candidates := tries.run(t, "candidates")
	if best := Best([]*Run{runs[0], runs[1], candidates},
		Metric{Name: "train_loss"}); Tried([]*Run{runs[0], candidates}) == "" || Tried(runs) != "" || best != nil {
		t.Errorf("with a loss of candidates (%q) the best are %v", Tried([]*Run{candidates}), best)
	}
	text, err := candidates.MarshalCBOR()
	cached := &Run{}
	if err := errors.Join(err, cached.UnmarshalCBOR(text)); err != nil || Tried([]*Run{cached}) == "" {
		t.Errorf("a cached run does not record that its loss is of candidates: %v", err)
	}
	m := begin(3, nil)
	m.rounds(4)
	same := []*Run{runs[0], runs[2], m.run(t, "3")}
	same[0].Figures["bytes"] = 0 // as if all members were on one worker
	same[1].Figures["bytes"]--
	if best := Best(same, Metric{Name: "bytes"}); len(best) != 1 || best[0] != same[1] {
		t.Errorf("of the runs that sent bytes the best are %v", best)
	}
	if best := Best(runs, Metric{Name: "samples_per_s", More: true}); best != nil {
		t.Errorf("equal runs have a best: %v", best)
	}
	if best := Best(runs, Metric{Name: "test_error"}); best != nil {
		t.Errorf("without a test the best are %v", best)
	}
}

// TestShortenedIsNotBest: seconds and bytes of a log without its older records are not compared with those of whole
// runs, in a cache neither.
func TestShortenedIsNotBest(t *testing.T) {
	var runs []*Run
	for i := range 2 {
		m := begin(uint64(i), nil)
		m.rounds(6)
		runs = append(runs, m.run(t, fmt.Sprint(i)))
	}
	m := begin(2, func(c *event.Config) { c.Begins = &event.Beginning{Round: 4, Head: 2} })
	m.plan(event.Saved, 4, "dp-sgd", 4)
	m.rounds(2)
	short := m.run(t, "2")
	runs[0].Figures["seconds"]--
	text, err := short.MarshalCBOR()
	cached := &Run{}
	if err := errors.Join(err, cached.UnmarshalCBOR(text)); err != nil {
		t.Fatal(err)
	}
	for _, r := range []*Run{short, cached} {
		if best := Best(append(runs, r), Metric{Name: "seconds"}); len(best) != 1 || best[0] != runs[0] {
			t.Errorf("the best of %d are %v", len(runs)+1, best)
		}
	}
}

// TestAged: Aged returns the round of a test result that is older than the run, and 0 for current results.
func TestAged(t *testing.T) {
	m := begin(1, nil)
	m.rounds(4)
	m.put(event.Record{Evaluation: &event.Evaluation{Round: 4, TestError: 2}})
	if at := m.run(t, "new").Aged("test_error"); at != 0 {
		t.Errorf("a result of the newest round has age round %d", at)
	}
	m.rounds(2)
	old := m.run(t, "old")
	if at := old.Aged("test_error"); at != 4 {
		t.Errorf("the test is of round %d, want 4", at)
	}
	if at := old.Aged("train_loss"); at != 0 {
		t.Errorf("the training loss has age round %d", at)
	}
}

// TestProtocolTrainsNothing: a run without a model has no loss and no samples per second.
func TestProtocolTrainsNothing(t *testing.T) {
	for _, model := range []string{"mlp", ""} {
		m := begin(1, func(c *event.Config) { c.Model = model })
		m.rounds(4)
		run := m.run(t, "a")
		for _, name := range []string{"train_loss", "samples_per_s"} {
			if _, ok := run.Metric(name); ok != (model != "") {
				t.Errorf("model %q: has %s: %v", model, name, ok)
			}
		}
	}
}

// TestCurveOverEveryAxis: on every axis a column has the rounds that end in it.
func TestCurveOverEveryAxis(t *testing.T) {
	m := begin(1, nil)
	m.rounds(40)
	r := m.run(t, "a")
	for a := range axis.Axis(len(axis.Names)) {
		from, to := r.Span(a)
		if from != 0 || !(to > 0) {
			t.Fatalf("%s from %v to %v", a, from, to)
		}
		cols, ok := r.Curve("loss", a, from, to, 10)
		if !ok {
			t.Fatal("no loss")
		}
		for i, b := range cols {
			lo, hi := float64(4*i), float64(4*i+3)
			switch i {
			case 0:
				lo = 1
			case 9:
				hi = 40
			}
			if b.Min != lo || b.Max != hi {
				t.Errorf("%s, column %d: %v to %v, want %v to %v", a, i, b.Min, b.Max, lo, hi)
			}
		}
	}
	if _, ok := r.Curve("spread", axis.Rounds, 0, 40, 10); ok {
		t.Error("a curve of a series that was not measured")
	}
	long, _ := r.Curve("loss", axis.Rounds, 0, 80, 10) // as for longer runs
	if long[4].Max != 39 || long[5].Min != 40 || !long[6].Empty() {
		t.Errorf("beyond the end of the run: %v", long)
	}
}

// TestPoints: the points of a short run have each value at its own round.
func TestPoints(t *testing.T) {
	m := begin(1, nil)
	m.rounds(40)
	r := m.run(t, "a")
	points := r.Points("loss", axis.Samples, 100)
	if len(points) != 40 {
		t.Fatalf("%d points", len(points))
	}
	for i, p := range points {
		if p.Round != uint64(i+1) || p.X != float64(10*(i+1)) || p.Min != float64(i+1) || p.Max != p.Min {
			t.Errorf("point %d is %+v", i, p)
		}
	}
	few := r.Points("loss", axis.Rounds, 4)
	if len(few) != 4 || few[3].Round != 40 || few[0].Min != 1 || few[0].Max != 10 || few[3].Max != 40 {
		t.Errorf("four points of 40 rounds: %+v", few)
	}
	if r.Points("spread", axis.Rounds, 4) != nil {
		t.Error("points of a series that was not measured")
	}
}

// forked returns the log of a fork of run p after 20 of its rounds; with saved, it starts with a checkpoint.
func forked(every uint64, saved bool) *maker {
	m := &maker{every: every}
	m.put(event.Record{Config: &event.Config{
		Version:  1,
		Model:    "mlp",
		Data:     "glyphs",
		Seed:     1,
		Parent:   "p",
		ParentAt: 20,
	}})
	if saved {
		m.put(event.Record{Checkpoint: &event.Checkpoint{Round: 20,
			Progress: event.Progress{Rounds: 20, Steps: 40, Samples: 200, Epochs: 0.2}}})
	}
	m.plan(event.Saved, 20, "dp-sgd", 4)
	return m
}

// TestBranch: on every axis a fork starts at its fork point, also if its first commit has several rounds.
func TestBranch(t *testing.T) {
	parent := begin(1, nil)
	parent.rounds(40)
	for _, saved := range []bool{true, false} {
		child := forked(5, saved)
		child.rounds(10)
		p, c := parent.run(t, "p"), child.run(t, "c")
		Join([]*Run{c, p})
		for a, want := range map[axis.Axis][2]float64{axis.Rounds: {20, 30}, axis.Steps: {40, 60}, axis.Samples: {200, 300},
			axis.Epochs: {0.2, 0.3}, axis.Bytes: {2000, 3000}, axis.Seconds: {10, 15}} {
			from, to := c.Span(a)
			if math.Abs(from-want[0]) > 1e-9 || math.Abs(to-want[1]) > 1e-9 {
				t.Errorf("%s: from %v to %v, want %v", a, from, to, want)
			}
			if got, want := c.clock.At(a, axis.Rounds, 22), want[0]+0.2*(want[1]-want[0]); math.Abs(got-want) > 1e-9 {
				t.Errorf("round 22 is %s %v, want %v", a, got, want)
			}
		}
		cols, _ := c.Curve("loss", axis.Seconds, 0, 20, 8)
		for i, b := range cols {
			if has := i >= 4 && i <= 6; has == b.Empty() { // rounds 20 to 30, at 10 to 15 s
				t.Errorf("column %d: %v", i, b)
			}
		}
		if c.Value("fork of") != "p after 20" {
			t.Errorf("fork of %q", c.Value("fork of"))
		}
	}
}

// TestRead: a session on disk has the run of its records. Without a committed round, or without a session, Read returns
// an error.
func TestRead(t *testing.T) {
	m := begin(1, nil)
	empty := len(m.out)
	m.rounds(8)
	home := t.TempDir()
	sourcetest.Write(t, home+"/a", m.out...)
	r, err := Read(home + "/a")
	if err != nil {
		t.Fatal(err)
	}
	if want := m.run(t, "a"); !reflect.DeepEqual(r.Settings, want.Settings) || !reflect.DeepEqual(r.clock, want.clock) {
		t.Errorf("settings %v, clock %v", r.Settings, r.clock)
	}
	sourcetest.Write(t, home+"/b", m.out[:empty]...)
	if _, err := Read(home + "/b"); err == nil ||
		err.Error() != "session b holds no committed round: there is nothing to compare" {
		t.Errorf("a session without a round: %v", err)
	}
	if _, err := Read(home + "/c"); err == nil {
		t.Error("a missing session was read")
	}
}

// TestObjectiveHasNoLoss: a run that maximises an objective is compared by its fitness, where higher is better, and its
// model is the name of its program.
func TestObjectiveHasNoLoss(t *testing.T) {
	m := begin(1, func(c *event.Config) { c.Model, c.Objective = "objective", "walk.py" })
	m.rounds(4)
	m.put(event.Record{Evaluation: &event.Evaluation{Round: 4, TestLoss: -9}})
	r := m.run(t, "a")
	for name, want := range map[string]float64{event.KeyTestFitness: 9, "mean_fitness": -4} {
		if x, ok := r.Metric(name); !ok || x != want {
			t.Errorf("%s is %g, %v; want %g", name, x, ok, want)
		}
	}
	for _, name := range []string{event.KeyTestLoss, event.KeyTestError, "train_loss"} {
		if x, ok := r.Metric(name); ok {
			t.Errorf("it has %s: %g", name, x)
		}
	}
	if got := r.Value("model"); got != "walk.py" {
		t.Errorf("its model is %q", got)
	}
}
