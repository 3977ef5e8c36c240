package conformance

import (
	"context"
	"maps"
	"slices"
	"testing"

	"brood/optim"
	"brood/optim/catalog"
	"brood/optim/collective"
	"brood/runtime/event"
	"brood/runtime/timeline"
)

// Test trains an algorithm on a perceptron whose numbers can be checked by hand, and checks the properties that a run
// relies on: the same hash on 1, 3 and 8 workers and with a late joiner, bytes as predicted, verification from the log,
// stop and resume, a falling loss, and an error for every population that the algorithm rejects. The algorithm need not
// be in the catalog. Settings are pairs of a knob and a value that make a cycle short: runs have 12 rounds with
// mini-batches of 4.
func Test(t *testing.T, a *optim.Algorithm, settings ...[2]string) {
	r := Rig{Algorithm: a.Name, Rounds: 12}
	if _, ok := a.Knob(optim.KnobB.Name); ok {
		r = r.With(optim.KnobB.Name, "4")
	}
	for _, s := range settings {
		r = r.With(s[0], s[1])
	}
	Suite(t, a, r)
}

// Suite runs the checks that every algorithm must pass. a need not be in the catalog. base is a short run of it on the
// toy data, with knobs that make its rounds tiny: 8 members, about a dozen rounds, on the toy or on the engines of
// base. The first group of checks that fails is the last.
func Suite(t *testing.T, a *optim.Algorithm, base Rig) {
	base.Algorithm, base.Seed = a.Name, 3
	base.Lookup = func(name string) (*optim.Algorithm, error) {
		if name == a.Name {
			return a, nil
		}
		return catalog.Lookup(name)
	}
	check := func(name string, f func(*testing.T)) {
		if !t.Failed() {
			t.Run(name, f)
		}
	}
	check("declared", func(t *testing.T) { declared(t, a) })
	check("placement", func(t *testing.T) { placement(t, base) })
	check("restored", func(t *testing.T) { restored(t, base) })
	if base.Engine == nil { // callers with another engine compare its results themselves
		check("elsewhere", func(t *testing.T) { elsewhere(t, base) })
		check("learns", func(t *testing.T) { learns(t, base, a.Needs.Model()) })
	}
	check("shapes", func(t *testing.T) { shapes(t, a, base) })
}

// run trains to the end, or fails the test.
func run(t *testing.T, r Rig) *Outcome {
	t.Helper()
	o, err := r.Run(context.Background())
	if err != nil {
		t.Fatalf("%s, %d members on %d workers: %v", r.Algorithm, r.Members, r.Workers, err)
	}
	if o.Exit.Phase != event.Finished {
		t.Fatalf("%s, %d members on %d workers: ended %s: %s%s", r.Algorithm, r.Members, r.Workers,
			o.Exit.Phase, o.Exit.Reason, o.advice())
	}
	return o
}

// runIntact is run without the loss of a worker.
func runIntact(t *testing.T, r Rig) *Outcome {
	t.Helper()
	o := run(t, r)
	if lost := o.lost(); lost != nil {
		t.Fatalf("%s, %d members on %d workers: %v", r.Algorithm, r.Members, r.Workers, lost)
	}
	return o
}

// advice returns what the author of an algorithm whose workers disagree can look for.
func (o *Outcome) advice() string {
	for _, rec := range o.Log.Records {
		if rec.Alert != nil && rec.Alert.Kind == event.AlertDisagree {
			return "; each worker must compute a shared block from the same values, not from those of its own members"
		}
	}
	return ""
}

// declared checks the declaration of the algorithm.
func declared(t *testing.T, a *optim.Algorithm) {
	if err := a.Validate(); err != nil {
		t.Fatal(err)
	}
	if len(a.Doc) < 40 {
		t.Error("the algorithm needs a doc of a few sentences")
	}
	for _, k := range a.Knobs {
		if _, err := timeline.Parse(k, k.Initial()); err != nil {
			t.Errorf("initial value: %v", err)
		}
	}
	toy, err := NewToy(true)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, b := range a.Blocks(a.Defaults(), toy.Layout()) {
		if seen[b.Name] || b.Name == "progress" {
			t.Errorf("block %q: names must differ, and progress is reserved for the runtime", b.Name)
		}
		seen[b.Name] = true
	}
	// checks before a run: whether the algorithm accepts the population, and the units of its schedules
	s := optim.Shape{
		Roster: collective.Place(collective.IDs(8), []int{0, 1}),
		Layout: toy.Layout(),
		K:      a.Defaults(),
		Data:   optim.DataSize{Train: 96, Validation: 32},
	}
	if a.Check == nil || a.Check(s) == nil {
		for _, unit := range []string{"round", "epoch", "cycle"} {
			for _, k := range a.Knobs {
				edits := []event.Edit{{Knob: k.Name, Expr: "exp:0.5/" + unit}}
				if err := timeline.Count(a, nil, edits, s, timeline.Position{}); err != nil && !k.Integer && len(k.Choices) == 0 {
					t.Errorf("knob %s, schedule per %s: %v", k.Name, unit, err)
				}
			}
		}
	}
}

// placement: the hash depends neither on the number of workers, nor on how they exchange, nor on probes, and bytes are
// as predicted. Statistics that workers exchange are part of the hash, so runs with statistics are compared separately.
func placement(t *testing.T, base Rig) {
	base.Members, base.Workers, base.Direct = 8, 1, 0
	measured := base
	measured.Stats = true
	place := func(name, want string, verify bool, r Rig) {
		if !t.Run(name, func(t *testing.T) { placed(t, r, want, verify) }) {
			t.FailNow() // the others would fail for the same reason
		}
	}
	want := runIntact(t, base).Hash()
	place("again", want, false, base)
	base.Workers = 8
	place("eight workers", want, true, base)
	base.Direct = 4096
	place("eight workers in one hop", want, false, base)

	want = runIntact(t, measured).Hash()
	measured.Workers, measured.Probe, measured.Audit = 3, 1, 1
	place("three workers, probed every round and audited", want, false, measured)
	measured.Probe, measured.JoinAfter = 0, 3
	place("three workers and a fourth that joins", want, true, measured)
}

// placed runs a rig and compares its hash and its bytes. If verify is set, it also verifies the log.
func placed(t *testing.T, r Rig, want string, verify bool) {
	t.Helper()
	o := runIntact(t, r)
	if o.Hash() != want {
		t.Errorf("hash %s, on one worker %s", o.Hash(), want)
	}
	if sent, predicted := o.Bytes(); !maps.Equal(sent, predicted) {
		t.Errorf("sent %v, predicted %v", sent, predicted)
	}
	for _, rec := range o.Log.Records {
		if c := rec.Commit; c != nil && r.Audit == 1 && len(c.Audited) != 1 {
			t.Errorf("the audits of round %d: %v", c.To, c.Audited)
		}
		if a := rec.Alert; a != nil && a.Kind == event.AlertDisagree {
			t.Errorf("alert: %s", a.Text)
		}
	}
	if !verify {
		return
	}
	if _, err := r.Verify(context.Background(), o); err != nil {
		t.Errorf("verify: %v", err)
	}
}

// elsewhere: on engines that own their memory and complete tasks late, the hash and every point are the same, and all
// memory is freed. This detects a program that reads the output of a task before waiting for it, or that retains
// matrices.
func elsewhere(t *testing.T, base Rig) {
	base.Members, base.Workers, base.Stats, base.Probe = 8, 1, true, 5
	want, measured := runIntact(t, base), map[string]bool{}
	for _, rec := range want.Log.Records {
		if rec.Points != nil {
			measured[rec.Points.Series] = true
		}
	}
	var there separate
	base.Engine = there.engine
	for _, workers := range []int{1, 3} {
		r := base
		r.Workers, r.JoinAfter = workers, 3*(workers/3)
		o := runIntact(t, r)
		if o.Hash() != want.Hash() {
			t.Errorf("%d workers: hash %s, in host memory %s", workers, o.Hash(), want.Hash())
		}
		if workers > 1 {
			continue
		}
		for name := range measured {
			_, got := o.Series(name)
			if _, was := want.Series(name); !slices.Equal(got, was) {
				t.Errorf("series %s: %v, in host memory %v: use LatePoints for the output of a task, or wait for the engine",
					name, got, was)
			}
		}
		if _, err := r.Verify(context.Background(), want); err != nil {
			t.Errorf("verify with separate memory: %v", err)
		}
		r.Engine = nil
		if _, err := r.Verify(context.Background(), o); err != nil {
			t.Errorf("verify in host memory: %v", err)
		}
	}
	there.clean(t)
}

// restored: a run that is stopped and resumed on other workers has the hash of an uninterrupted run.
func restored(t *testing.T, base Rig) {
	base.Members, base.Workers, base.Stats = 8, 2, true
	whole := runIntact(t, base)
	half := base
	half.Rounds, half.Store = base.Rounds/2, &Memory{}
	first := runIntact(t, half)
	cp := first.Checkpoint()
	if cp == nil || cp.Round != half.Rounds {
		t.Fatalf("no checkpoint at the end of round %d", half.Rounds)
	}
	rest := base
	rest.Workers, rest.Resume, rest.Epoch, rest.Store = 3, cp, cp.Epoch, half.Store
	if o := runIntact(t, rest); o.Hash() != whole.Hash() {
		t.Errorf("resumed: hash %s, uninterrupted %s", o.Hash(), whole.Hash())
	}
}

// learns: the centre's loss on the validation split falls, or the loss that an algorithm without a model measures.
func learns(t *testing.T, base Rig, model bool) {
	base.Members, base.Workers, base.Probe, base.Rounds = 8, 2, 1, 6*base.Rounds
	series := "centre.loss"
	if !model {
		series = "loss"
	}
	_, loss := runIntact(t, base).Series(series)
	if len(loss) < 10 {
		t.Fatalf("%d points of %s", len(loss), series)
	}
	if first, last := loss[0], slices.Min(loss[len(loss)-5:]); !(last < 0.9*first) {
		t.Errorf("%s went from %.4f to %.4f", series, first, last)
	}
}

// shapes: every population is rejected by Check, or trains to its last round.
func shapes(t *testing.T, a *optim.Algorithm, base Rig) {
	base.Rounds = 4
	for _, members := range []int{0, 1, 2, 3, 5, 7} {
		base.Members, base.Workers = members, min(2, max(1, members))
		tryShape(t, base)
	}
	base.Members, base.Workers = 4, 2
	for _, k := range a.Knobs {
		if k.Integer && k.Max > 16 { // an elite, a group or a batch larger than the population
			tryShape(t, base.With(k.Name, "11"))
		}
	}
}

func tryShape(t *testing.T, r Rig) {
	t.Helper()
	o, err := r.Run(context.Background())
	if o == nil {
		if err == nil || err.Error() == "" {
			t.Errorf("%d members: rejected without a reason", r.Members)
		}
		return
	}
	if err != nil || o.Exit.Phase != event.Finished || o.Last().To != r.Rounds {
		t.Errorf("%d members, %v: ended %s: %s (%v)", r.Members, r.Set, o.Exit.Phase, o.Exit.Reason, err)
	}
}
