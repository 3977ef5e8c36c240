package remote

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"brood/models/objective"
	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/testutil"
	"brood/transport/identity"
	"brood/transport/wire"
)

// sphere returns an objective with n parameters.
func sphere(n int) *host.Own {
	return &host.Own{Objective: &objective.Objective{Spec: objective.Flat(n),
		Func: func(x []float32, _ uint64) (f float64, err error) {
			for _, v := range x {
				f -= float64(v) * float64(v)
			}
			return f, nil
		}}}
}

// TestWrongProgramKeepsTheURL: a worker that cannot take part because of a wrong program does not use up a single-use
// URL. A worker that takes part does.
func TestWrongProgramKeepsTheURL(t *testing.T) {
	j := prepare(t, host.Options{
		Own:       sphere(3),
		Algorithm: "snes",
		Members:   4,
		Workers:   1,
		Threads:   1,
		Seed:      3,
		Limit:     event.Limit{Rounds: 4},
		By:        "test",
	})
	s := &served{t: t}
	var err error
	if s.srv, err = Listen(Config{Key: newKey(t), Address: "127.0.0.1:0", Enrol: 1, Note: s.notes.add}); err != nil {
		t.Fatal(err)
	}
	s.begin(j, nil, filepath.Join(t.TempDir(), "run"), nil)
	for n := range 2 {
		wrong := s.config()
		wrong.Own = sphere(2)
		var refused *RefusedError
		if err := testutil.Receive(t, s.work(t.Context(), wrong), "end of the worker"); !errors.As(err, &refused) ||
			!strings.Contains(err.Error(), "this objective is another") {
			t.Fatalf("a worker with another objective: %v", err)
		}
		testutil.Eventually(t, "the worker to end", func() bool { return strings.Count(s.notes.text(), "is gone") == n+1 })
	}
	right := s.config()
	right.Own = sphere(3)
	end := s.work(t.Context(), right)
	exit := s.train()
	if err := testutil.Receive(t, end, "end of the worker"); err != nil || exit.Phase != event.Finished {
		t.Errorf("the right program: %v, %+v", err, exit)
	}
	if err := s.srv.gate.Admit(wire.NodeID{9}, wire.Worker, s.config().Join.Token); err == nil {
		t.Error("a single-use URL admits another worker")
	} else if no, _ := identity.Refused(err); no.Code != wire.CodeTokenUsed {
		t.Errorf("another worker: %v", err)
	}
}
