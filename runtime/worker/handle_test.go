package worker_test

import (
	"context"
	"strings"
	"testing"

	"brood/models/engine"
	"brood/optim/catalog"
	"brood/optim/collective"
	"brood/runtime/conformance"
	"brood/runtime/event"
	"brood/runtime/message"
	"brood/runtime/worker"
	"brood/transport/local"
)

// toyWorker is a worker of the toy model.
func toyWorker(t *testing.T, id int, link collective.Link) *worker.Worker {
	t.Helper()
	toy, err := conformance.NewToy(false)
	if err != nil {
		t.Fatal(err)
	}
	return worker.New(worker.Config{ID: id, Layout: toy.Layout(), Init: toy.Init(1), Engine: toy, Data: toy, Link: link,
		Lookup: catalog.Lookup, Store: &conformance.Memory{}, Clock: func() int64 { return 0 }})
}

// alone is a worker that hosts everybody, with the plan of its first epoch.
func alone(t *testing.T) (*worker.Worker, message.Plan) {
	t.Helper()
	w := toyWorker(t, 0, (&local.Hub{}).Link(0))
	p := event.Plan{Epoch: 1, From: event.Fresh, Algorithm: "dp-sgd", New: collective.Place(collective.IDs(2), []int{0})}
	return w, message.Plan{Plan: p}
}

func grant(epoch uint32, from, to uint64) message.Grant {
	return message.Grant{Epoch: epoch, From: from, To: to, Committed: from}
}

func done(t *testing.T, w *worker.Worker, g message.Grant) message.Done {
	t.Helper()
	switch r := w.Handle(t.Context(), g).(type) {
	case message.Done:
		return r
	default:
		t.Fatalf("grant of %d: %+v", g.From, r)
		return message.Done{}
	}
}

func ready(t *testing.T, w *worker.Worker, p message.Plan) {
	t.Helper()
	r := w.Handle(t.Context(), p)
	if r != message.Report(message.Ready{Worker: w.ID(), Epoch: p.Epoch}) {
		t.Fatalf("plan %d: %+v", p.Epoch, r)
	}
}

// TestFences: orders of another epoch, or for another round than the current one, are ignored silently.
func TestFences(t *testing.T) {
	w, p := alone(t)
	if r := w.Handle(t.Context(), grant(1, 0, 1)); r != nil {
		t.Errorf("a grant before any plan: %+v", r)
	}
	if s, ok := w.Handle(t.Context(), message.Save{}).(message.Saved); !ok || s.Err == "" {
		t.Errorf("a save without blocks: %+v", s)
	}
	ready(t, w, p)
	for _, m := range []message.Order{grant(2, 0, 1), grant(0, 0, 1), grant(1, 3, 4), message.Save{Epoch: 7},
		message.Stop{}, message.Evict{}} {
		if r := w.Handle(t.Context(), m); r != nil {
			t.Errorf("%+v: %+v", m, r)
		}
	}
	done(t, w, grant(1, 0, 2))
	w.Handle(t.Context(), message.Abort{Epoch: 2})
	if r := w.Handle(t.Context(), grant(1, 2, 3)); r != nil {
		t.Errorf("a grant that an abort overtook: %+v", r)
	}
	if r := w.Handle(t.Context(), p); r != nil {
		t.Errorf("a plan that an abort overtook: %+v", r)
	}
}

// TestAbortedGrantLeavesNoTrace: after an aborted grant and a plan from the round before it, the same rounds give the
// same state as without the abort.
func TestAbortedGrantLeavesNoTrace(t *testing.T) {
	straight, p := alone(t)
	ready(t, straight, p)
	done(t, straight, grant(1, 0, 3))
	want := done(t, straight, grant(1, 3, 6))

	w, p := alone(t)
	ready(t, w, p)
	done(t, w, grant(1, 0, 3))
	g := grant(1, 3, 6)
	g.Edits = []event.Edit{{At: 3, Algorithm: "dp-sgd", Knob: "eta", Expr: "5"}}
	done(t, w, g)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r := w.Handle(ctx, message.Grant{Epoch: 1, From: 6, To: 9, Committed: 3}); r != nil {
		t.Errorf("a cancelled grant answers %+v", r)
	}
	w.Handle(t.Context(), message.Abort{Epoch: 2})
	ready(t, w, message.Plan{Plan: event.Plan{
		Epoch:     2,
		Base:      1,
		At:        3,
		From:      event.Workers,
		Old:       p.New,
		New:       p.New,
		OldAlg:    "dp-sgd",
		Algorithm: "dp-sgd",
	}})
	got := done(t, w, grant(2, 3, 6))
	if message.Root(got.Digests) != message.Root(want.Digests) || got.Progress != want.Progress {
		t.Errorf("%+v, want %+v", got.Progress, want.Progress)
	}
}

// TestSaveOfAPast: a checkpoint has the state of its round, even if the worker is at a later round.
func TestSaveOfAPast(t *testing.T) {
	w, p := alone(t)
	ready(t, w, p)
	done(t, w, grant(1, 0, 3))
	at3 := done(t, w, message.Grant{Epoch: 1, From: 3, To: 5, Committed: 3})
	saved := w.Handle(t.Context(), message.Save{Epoch: 1, At: 3}).(message.Saved)
	if saved.Err != "" {
		t.Fatal(saved.Err)
	}
	cp := event.Checkpoint{Round: 3, Epoch: 1, Roster: p.New, Algorithm: "dp-sgd", Files: saved.Files}
	ready(t, w, message.Plan{Plan: event.Plan{
		Epoch:     2,
		Base:      1,
		At:        3,
		From:      event.Saved,
		Old:       p.New,
		New:       p.New,
		OldAlg:    "dp-sgd",
		Algorithm: "dp-sgd",
	}, Checkpoint: &cp})
	if again := done(t, w, grant(2, 3, 5)); message.Root(again.Digests) != message.Root(at3.Digests) {
		t.Error("from the checkpoint the same rounds give another state")
	}
	if s := w.Handle(t.Context(), message.Save{Epoch: 2, At: 1}).(message.Saved); !strings.Contains(s.Err,
		"no snapshot of round 1") {
		t.Errorf("a round that is gone: %q", s.Err)
	}
}

// TestRowsFollowMembers: in a new epoch a member keeps its rows at any position, and a new member starts at the centre.
// Verification cannot detect an error here, since it executes the same code.
func TestRowsFollowMembers(t *testing.T) {
	w, p := alone(t)
	p.Algorithm, p.New = "popsgd", collective.Place(collective.IDs(4), []int{0})
	p.Timeline = []event.Edit{{Algorithm: "popsgd", Knob: "start", Expr: "own"}}
	ready(t, w, p)
	before := done(t, w, grant(1, 0, 3)).Digests.Map()
	next := event.Plan{Epoch: 2, Base: 1, At: 3, From: event.Workers, Old: p.New, OldAlg: "popsgd", Algorithm: "popsgd",
		Timeline: p.Timeline, New: collective.Place([]engine.Member{1, 3, 7}, []int{0}), Lost: []engine.Member{3}}
	ready(t, w, message.Plan{Plan: next})
	if r, ok := w.Handle(t.Context(), message.Save{Epoch: 2, At: 3}).(message.Saved); !ok || r.Err != "" {
		t.Fatalf("%+v", r)
	}
	st, err := w.State(t.Context())
	if err != nil || st.Round != 3 || st.Progress.Rounds != 3 {
		t.Fatalf("%+v", st)
	}
	after := w.Digests()
	for _, row := range []string{"x/1", "m/1", "cursor/1"} {
		if after[row] != before[row] {
			t.Errorf("%s is another", row)
		}
	}
	if after["x/3"] == before["x/3"] || after["x/3"] != after["x/7"] {
		t.Error("a lost member and a new one should both stand at the centre")
	}
	if before["x/1"] == before["x/0"] || after["x/1"] == after["x/7"] {
		t.Error("the test's members do not differ")
	}
}

// TestLimit: a grant ends at the limit, and nothing runs after it.
func TestLimit(t *testing.T) {
	w, p := alone(t)
	ready(t, w, p)
	g := grant(1, 0, 10)
	g.Limit = event.Limit{Rounds: 4}
	if d := done(t, w, g); !d.Ended || d.To != 4 || d.Progress.Rounds != 4 {
		t.Errorf("%+v", d)
	}
	if r := w.Handle(t.Context(), grant(1, 4, 5)); r != nil {
		t.Errorf("beyond its limit: %+v", r)
	}
}

// TestBadPlans: invalid plans give an error, never a panic.
func TestBadPlans(t *testing.T) {
	roster := collective.Place(collective.IDs(2), []int{0})
	for _, c := range []struct {
		p   event.Plan
		cp  *event.Checkpoint
		say string
	}{
		{event.Plan{Epoch: 1, From: "the moon", Algorithm: "dp-sgd", New: roster}, nil, `unknown source of blocks "the moon"`},
		{event.Plan{Epoch: 1, From: event.Fresh, Algorithm: "sgd++", New: roster}, nil, `no algorithm "sgd++"`},
		{event.Plan{Epoch: 1, From: event.Saved, Algorithm: "dp-sgd", New: roster}, nil, "names none"},
		{event.Plan{Epoch: 1, From: event.Saved, Algorithm: "dp-sgd", New: roster}, &event.Checkpoint{Algorithm: "parle", Roster: roster}, "holds 2 members of parle"},
		{event.Plan{Epoch: 1, From: event.Saved, Algorithm: "dp-sgd", New: roster}, &event.Checkpoint{Algorithm: "dp-sgd", Roster: roster}, "has no row"},
		{event.Plan{Epoch: 1, From: event.Workers, Algorithm: "dp-sgd", OldAlg: "dp-sgd", Old: roster, New: roster}, nil, "holds no blocks"},
		{event.Plan{Epoch: 1, From: event.Workers, Algorithm: "dp-sgd", OldAlg: "dp-sgd", Old: roster, New: roster, Lost: roster.Members}, nil, "no member survived"},
		{event.Plan{Epoch: 1, From: event.Fresh, Algorithm: "dp-sgd", New: roster, Timeline: []event.Edit{{Algorithm: "dp-sgd", Knob: "eta", Expr: "fast"}}}, nil, `eta = "fast"`},
	} {
		w, _ := alone(t)
		f, ok := w.Handle(t.Context(), message.Plan{Plan: c.p, Checkpoint: c.cp}).(message.Failed)
		if !ok || !strings.Contains(f.Err, c.say) {
			t.Errorf("%+v, want %q", f, c.say)
		}
	}
}
