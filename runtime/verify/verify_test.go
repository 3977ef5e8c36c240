package verify_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"brood/models/engine"
	"brood/optim/collective"
	"brood/runtime/conformance"
	"brood/runtime/event"
	"brood/runtime/verify"
	"brood/runtime/worker"
)

// recorded executes a run with an edit, then a checkpoint, then a resize, and stops it some commits later.
func recorded(t *testing.T) (conformance.Rig, *conformance.Outcome) {
	t.Helper()
	commits, resized := 0, 0
	r := conformance.Rig{Algorithm: "dp-sgd", Members: 4, Workers: 2, Rounds: 1 << 40, Seed: 5}.With("batch", "4")
	r.OnRecord = func(rec event.Record) []event.Command {
		switch {
		case rec.Edit != nil:
			return []event.Command{{Action: event.Save}}
		case rec.Checkpoint != nil && resized == 0:
			return []event.Command{{Members: 6}}
		case rec.Plan != nil && rec.Plan.Cause == "resize":
			resized = commits
		case rec.Commit != nil:
			switch commits++; {
			case commits == 2:
				return []event.Command{{Set: []event.Setting{{Knob: "eta", Expr: "0.05"}}}}
			case resized > 0 && commits == resized+3:
				return []event.Command{{Action: event.Stop}}
			}
		}
		return nil
	}
	o, err := r.Run(t.Context())
	if err != nil || o.Exit.Phase != event.Stopped {
		t.Fatalf("%+v, %v", o, err)
	}
	return r, o
}

func find(t *testing.T, log []event.Record, which func(event.Record) bool) int {
	t.Helper()
	for i, r := range log {
		if which(r) {
			return i
		}
	}
	t.Fatal("the log lacks what the test changes")
	return -1
}

func TestAgrees(t *testing.T) {
	r, o := recorded(t)
	res, err := r.Verify(t.Context(), o)
	if err != nil || res.Rounds != o.Last().To || res.Last.Hash != o.Hash() || res.Commits == 0 {
		t.Errorf("%+v, %v", res, err)
	}
	sent, _ := o.Bytes()
	var total int64
	for _, n := range sent {
		total += n
	}
	if res.Bytes != total || total == 0 {
		t.Errorf("%d bytes verified of %d", res.Bytes, total)
	}
	res, err = r.VerifyFrom(t.Context(), o, o.Checkpoint())
	if err != nil {
		t.Errorf("from the last checkpoint: %v", err)
	}
	first := o.Log.Records[find(t, o.Log.Records, func(r event.Record) bool { return r.Checkpoint != nil })].Checkpoint
	if res, err = r.VerifyFrom(t.Context(), o, first); err != nil || res.Rounds != o.Last().To-first.Round {
		t.Errorf("from round %d: %+v, %v", first.Round, res, err)
	}
}

// TestTampered: verify returns the first round that differs from a changed log.
func TestTampered(t *testing.T) {
	isEdit := func(r event.Record) bool { return r.Edit != nil }
	late := func(n int) func(event.Record) bool { // the n-th commit
		return func(r event.Record) bool {
			if r.Commit != nil {
				n--
			}
			return r.Commit != nil && n == 0
		}
	}
	// governed returns the first commit to which a record applies, which may be the record itself.
	governed := func(log []event.Record, i int) *event.Commit {
		e := log[i].Edit
		for ; ; i++ {
			if c := log[i].Commit; c != nil && (e == nil || c.To > e.At) {
				return c
			}
		}
	}
	for _, c := range []struct {
		name  string
		which func(event.Record) bool
		do    func(r *event.Record)
		want  string
	}{
		{"the value of an edit", isEdit, func(r *event.Record) { e := *r.Edit; e.Expr = "0.051"; r.Edit = &e }, "the state is recorded as"},
		{"the knob of an edit", isEdit, func(r *event.Record) { e := *r.Edit; e.Knob = "decay"; r.Edit = &e }, "the state is recorded as"},
		{"the round of an edit", isEdit, func(r *event.Record) { e := *r.Edit; e.At++; r.Edit = &e }, "the state is recorded as"},
		{"an edit is gone", isEdit, func(r *event.Record) { *r = event.Record{} }, "the state is recorded as"},
		{"a hash", late(3), func(r *event.Record) {
			k := *r.Commit
			k.Hash = k.Hash[:len(k.Hash)-1] + "z"
			r.Commit = &k
		}, "z, but its execution gives blake3:"},
		{"bytes", late(3), func(r *event.Record) {
			k := *r.Commit
			k.Sent = map[collective.Op]int64{}
			for op, n := range r.Commit.Sent {
				k.Sent[op] = n + 4
			}
			r.Commit = &k
		}, "the bytes of gradient is recorded as"},
		{"an operation that was not executed", late(3), func(r *event.Record) {
			k := *r.Commit
			k.Sent = map[collective.Op]int64{"smuggle": 1}
			maps.Copy(k.Sent, r.Commit.Sent)
			r.Commit = &k
		}, "the bytes of smuggle"},
		{"an epoch", late(3), func(r *event.Record) { k := *r.Commit; k.Epoch++; r.Commit = &k }, "the order of commits"},
		{"infinite epochs", late(3), func(r *event.Record) { k := *r.Commit; k.Progress.Epochs = math.Inf(1); r.Commit = &k }, "the progress is recorded as"},
		{"steps", late(3), func(r *event.Record) { k := *r.Commit; k.Progress.Steps += 4; r.Commit = &k }, "the progress is recorded as"},
		{"rounds without end", late(3), func(r *event.Record) {
			k := *r.Commit
			k.To, k.Rounds, k.Progress.Rounds = 1<<62, 1<<62-r.Commit.To+r.Commit.Rounds, 1<<62
			r.Commit = &k
		}, "and the grant had no more than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, o := recorded(t)
			i := find(t, o.Log.Records, c.which)
			want := governed(o.Log.Records, i).To
			if c.do(&o.Log.Records[i]); o.Log.Records[i].Commit != nil {
				want = o.Log.Records[i].Commit.To
			}
			_, err := r.Verify(t.Context(), o)
			var m *verify.MismatchError
			if !errors.As(err, &m) || m.Round != want || !strings.Contains(err.Error(), c.want) ||
				!strings.HasPrefix(err.Error(), fmt.Sprintf("round %d: ", want)) {
				t.Errorf("%v, want round %d and %q", err, want, c.want)
			}
		})
	}
}

// TestWrongBytes: if the log has an AlertBytes, verify compares no bytes, but all other values.
func TestWrongBytes(t *testing.T) {
	r, o := recorded(t)
	i := find(t, o.Log.Records, func(r event.Record) bool { return r.Commit != nil })
	k := *o.Log.Records[i].Commit
	k.Sent = map[collective.Op]int64{"gradient": 1}
	o.Log.Records[i].Commit = &k
	alert := event.Record{Alert: &event.Alert{Level: "warning", Kind: event.AlertBytes}}
	o.Log.Records = slices.Insert(o.Log.Records, i, alert)
	if res, err := r.Verify(t.Context(), o); err != nil || !res.WrongBytes {
		t.Errorf("%+v, %v", res, err)
	}
	k.Hash += "0"
	var m *verify.MismatchError
	if _, err := r.Verify(t.Context(), o); !errors.As(err, &m) || m.What != "the state" {
		t.Errorf("another state: %v", err)
	}
}

// TestOrderOfRecords: a log whose records cannot be executed is refused with the position.
func TestOrderOfRecords(t *testing.T) {
	r, o := recorded(t)
	whole := o.Log.Records
	plan := find(t, whole, func(r event.Record) bool { return r.Plan != nil })
	commit := find(t, whole, func(r event.Record) bool { return r.Commit != nil })

	o.Log.Records = append(append([]event.Record(nil), whole[:plan]...), whole[plan+1:]...)
	if _, err := r.Verify(t.Context(), o); err == nil || !strings.Contains(err.Error(), "before any plan") {
		t.Errorf("without its plan: %v", err)
	}
	o.Log.Records = append(append([]event.Record(nil), whole[:commit+1]...), whole[commit:]...)
	var m *verify.MismatchError
	if _, err := r.Verify(t.Context(), o); !errors.As(err, &m) || m.What != "the order of commits" {
		t.Errorf("a commit twice: %v", err)
	}
	lost := event.Plan{Epoch: 99, At: 7, From: event.Saved, OldAlg: "dp-sgd", Algorithm: "dp-sgd"}
	o.Log.Records = append(append([]event.Record(nil), whole[:commit+1]...), event.Record{Plan: &lost})
	if _, err := r.Verify(t.Context(), o); err == nil ||
		!strings.Contains(err.Error(), "checkpoint of round 7, which the log does not mention") {
		t.Errorf("a checkpoint without a record: %v", err)
	}
}

// broken is a source that fails after its records.
type broken struct{ left []event.Record }

var errTorn = errors.New("torn")

func (b *broken) Next() (event.Record, error) {
	if len(b.left) == 0 {
		return event.Record{}, errTorn
	}
	r := b.left[0]
	b.left = b.left[1:]
	return r, nil
}

func TestSourceFails(t *testing.T) {
	if _, err := verify.Run(t.Context(), verify.Config{}, &broken{}, 0); !errors.Is(err, errTorn) {
		t.Errorf("%v", err)
	}
	if res, err := verify.Run(t.Context(), verify.Config{}, eof{}, 0); err != nil || res.Commits != 0 {
		t.Errorf("an empty log: %+v, %v", res, err)
	}
}

// TestRemovedRecords: a walk fails if the records to execute were removed from the log.
func TestRemovedRecords(t *testing.T) {
	begins := event.Record{Config: &event.Config{Begins: &event.Beginning{Round: 40}}}
	for name, c := range map[string]struct {
		from *event.Checkpoint
		stop uint64
		ok   bool
	}{
		"from an earlier checkpoint":     {&event.Checkpoint{Round: 39}, 60, false},
		"to an earlier round":            {nil, 39, false},
		"from the beginning":             {&event.Checkpoint{Round: 40}, 60, true},
		"to the round of the checkpoint": {nil, 40, true},
		"all":                            {nil, 0, true},
	} {
		_, err := verify.Run(t.Context(), verify.Config{From: c.from}, &broken{[]event.Record{begins}}, c.stop)
		if gone := strings.Contains(err.Error(), "the log begins after round 40"); gone == c.ok || c.ok && err != errTorn {
			t.Errorf("%s: %v", name, err)
		}
	}
}

type eof struct{}

func (eof) Next() (event.Record, error) { return event.Record{}, io.EOF }

// TestCancelled: a canceled walk returns the error of its context.
func TestCancelled(t *testing.T) {
	r, o := recorded(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Verify(ctx, o); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// TestForgedCheckpoint: a plan that restores a checkpoint whose rows differ from those of its commit is an error,
// although the later rounds were computed from these rows.
func TestForgedCheckpoint(t *testing.T) {
	r, o := recorded(t)
	var cp event.Checkpoint
	for _, rec := range o.Log.Records {
		if rec.Checkpoint != nil && rec.Checkpoint.Round > 0 {
			cp = *rec.Checkpoint
			break
		}
	}
	if _, err := r.VerifyFrom(t.Context(), o, &cp); err != nil {
		t.Fatal(err)
	}
	forged := worker.Row{Name: "x/shared", Record: engine.NewHost(1, o.Toy.Layout().Params, engine.F32)}
	f, err := o.Store.Save(1<<20, 1, 7, []worker.Row{forged})
	if err != nil {
		t.Fatal(err)
	}
	for i, rec := range o.Log.Records {
		if rec.Checkpoint != nil && rec.Checkpoint.Round == cp.Round {
			k := *rec.Checkpoint
			k.Files = append(slices.Clone(k.Files), f)
			o.Log.Records[i].Checkpoint, cp.Files = &k, k.Files
		}
	}
	_, err = r.VerifyFrom(t.Context(), o, &cp)
	if err == nil || !strings.Contains(err.Error(), "the state of the checkpoint is recorded as") {
		t.Errorf("%v", err)
	}
}

// TestTamperedMeasurements: wrong points and evaluations are errors; series that the rounds do not produce are counted.
func TestTamperedMeasurements(t *testing.T) {
	r := conformance.Rig{Algorithm: "dp-sgd", Members: 4, Workers: 2, Rounds: 12, Probe: 3, Seed: 5}
	o, err := r.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	res, err := r.Verify(t.Context(), o)
	if err != nil || res.Evaluations != 1 || res.Points < 20 || res.Unmatched != 0 {
		t.Fatalf("untouched: %d evaluations, %d points, %d unmatched, %v", res.Evaluations, res.Points, res.Unmatched, err)
	}
	isEvaluation := func(r event.Record) bool { return r.Evaluation != nil }
	series := func(name string) func(event.Record) bool {
		return func(r event.Record) bool { return r.Points != nil && r.Points.Series == name }
	}
	for _, c := range []struct {
		name  string
		which func(event.Record) bool
		do    func(r *event.Record)
		want  string
	}{
		{"a test error", isEvaluation, func(r *event.Record) { e := *r.Evaluation; e.TestError = 0; r.Evaluation = &e }, "the test evaluation is recorded as error 0 %"},
		{"a test loss", isEvaluation, func(r *event.Record) { e := *r.Evaluation; e.TestLoss /= 2; r.Evaluation = &e }, "the test evaluation is recorded as"},
		{"a loss", series("loss"), func(r *event.Record) {
			p := *r.Points
			p.Values = slices.Clone(p.Values)
			p.Values[1] = 0
			r.Points = &p
		}, "series loss of member 1 is recorded as 0"},
		{"a probe", series(event.SeriesCentre), func(r *event.Record) { p := *r.Points; p.Values = []float64{0.5}; r.Points = &p }, "series centre.loss is recorded as 0.5"},
		{"a member", series("loss"), func(r *event.Record) {
			p := *r.Points
			p.Members = []engine.Member{0, 1, 2, 7}
			r.Points = &p
		}, "the members of series loss is recorded as [0 1 2 7]"},
		{"a value too few", series("loss"), func(r *event.Record) {
			p := *r.Points
			p.Values = p.Values[:3]
			r.Points = &p
		}, "series loss"},
	} {
		log := slices.Clone(o.Log.Records)
		c.do(&log[find(t, log, c.which)])
		_, err := r.Verify(t.Context(), &conformance.Outcome{Log: &conformance.Log{Records: log}, Store: o.Store})
		var differs *verify.MismatchError
		if !errors.As(err, &differs) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	log := slices.Clone(o.Log.Records)
	i := find(t, log, series("loss"))
	p := *log[i].Points
	p.Series = "invented"
	log[i].Points = &p
	if res, err := r.Verify(t.Context(),
		&conformance.Outcome{Log: &conformance.Log{Records: log}, Store: o.Store}); err != nil || res.Unmatched != 1 {
		t.Errorf("an invented series: %d unmatched, %v", res.Unmatched, err)
	}
}
