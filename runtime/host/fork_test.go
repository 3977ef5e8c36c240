package host

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"brood/runtime/checkpoint"
	"brood/runtime/event"
	"brood/runtime/session"
	"brood/runtime/testutil"
)

// TestForkOfALiveRun: a fork that starts while its parent is running, and while the parent saves and removes
// checkpoints, has the same hash as a fork from the finished parent. Both verify. The hash of the parent does not
// change.
func TestForkOfALiveRun(t *testing.T) {
	home := t.TempDir()
	o := tiny(300)
	want := train(t, filepath.Join(home, "alone"), prepare(t, o), nil, nil)
	parent, live := filepath.Join(home, "parent"), filepath.Join(home, "live")
	branch := func(dir string, at uint64) Order {
		return Order{Dir: dir, From: parent, At: at,
			Options: Options{By: "fork", Threads: 1, Limit: event.Limit{Rounds: at + 20},
				Set: []event.Setting{{Knob: "eta", Expr: "0.01"}}}}
	}
	var at uint64
	begin, forked, end := make(chan uint64), make(chan string, 1), make(chan struct{})
	go func() {
		defer close(end)
		at = <-begin
		forked <- runOrder(t, branch(live, at), nil)
	}()
	saves := 0
	got := train(t, parent, prepare(t, o), nil, func(r *Run, rec event.Record) {
		if rec.Commit == nil || rec.Commit.To < 100 {
			return
		}
		if saves++; saves%8 == 0 { // so that checkpoints are removed while the fork reads them
			go func() { _, _ = r.Command(t.Context(), event.Command{Action: event.Save}) }()
		}
		select {
		case begin <- rec.Commit.To:
		default:
		}
	})
	hash := testutil.Receive(t, forked, "branch")
	<-end
	if got != want {
		t.Errorf("the parent ends as %s, a run without a fork as %s", got, want)
	}
	if x := session.Describe(parent); x.Round != 300 {
		t.Errorf("the parent ends at round %d", x.Round)
	}
	if again := runOrder(t, branch(filepath.Join(home, "later"), at), nil); again != hash {
		t.Errorf("after round %d the fork of the live run ends as %s, a fork of the finished run as %s", at, hash, again)
	}
	for _, dir := range []string{parent, live} {
		if _, err := Verify(t.Context(), dir, 1, nil); err != nil {
			t.Errorf("verify %s: %v", filepath.Base(dir), err)
		}
	}
}

// TestNearestCheckpoint: a fork starts from the newest existing checkpoint at or before its round, whichever others are
// missing, also if one is removed after it was chosen.
func TestNearestCheckpoint(t *testing.T) {
	home := t.TempDir()
	dir := filepath.Join(home, "parent")
	saved := map[uint64]bool{}
	train(t, dir, prepare(t, tiny(100)), nil, func(r *Run, rec event.Record) {
		if rec.Checkpoint != nil {
			copyCheckpoint(t, filepath.Join(home, "kept"), dir, rec.Checkpoint.Round)
			saved[rec.Checkpoint.Round] = true
		}
		if rec.Commit != nil && rec.Commit.To < 80 {
			go func() { _, _ = r.Command(t.Context(), event.Command{Action: event.Save}) }()
		}
	})
	if len(saved) < 2 {
		t.Fatalf("only %d checkpoints were saved", len(saved))
	}
	if err := os.RemoveAll(filepath.Join(dir, session.CheckpointDir)); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(home, "kept"), filepath.Join(dir, session.CheckpointDir)); err != nil {
		t.Fatal(err)
	}
	nearest := func() (round uint64) {
		for r := range saved {
			if r <= 90 {
				round = max(round, r)
			}
		}
		return round
	}
	for len(saved) > 0 {
		n := nearest()
		if n == 0 {
			break
		}
		into := filepath.Join(home, "branch")
		r, err := Restore(t.Context(), dir, 90, &checkpoint.Files{Dir: into}, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.Executed > 90-n {
			t.Errorf("%d rounds were recomputed, and there is a checkpoint at round %d", r.Executed, n)
		}
		if err := os.RemoveAll(filepath.Join(dir, session.CheckpointDir,
			filepath.Base(filepath.Dir(session.CheckpointFile(n, 1, 0))))); err != nil {
			t.Fatal(err)
		}
		delete(saved, n)
	}
}

func copyCheckpoint(t *testing.T, to, dir string, round uint64) {
	t.Helper()
	name := filepath.Base(filepath.Dir(session.CheckpointFile(round, 1, 0)))
	if err := os.CopyFS(filepath.Join(to, name), os.DirFS(filepath.Join(dir, session.CheckpointDir, name))); err != nil {
		t.Error(err)
	}
}

// TestForkDropsLaterEdits: an edit of the parent that takes effect after the round of a fork is not in the fork. A
// checkpoint at or before that round may contain the edit, since rounds are granted ahead of the last commit. So a fork
// has the same hash whichever checkpoint it starts from.
func TestForkDropsLaterEdits(t *testing.T) {
	home := t.TempDir()
	dir, kept := filepath.Join(home, "parent"), filepath.Join(home, "kept")
	var early *event.Checkpoint // contains an edit of a later round
	var n int
	train(t, dir, prepare(t, tiny(2000)), nil, func(r *Run, rec event.Record) {
		if cp := rec.Checkpoint; cp != nil && early == nil &&
			slices.ContainsFunc(cp.Timeline, func(e event.Edit) bool { return e.At > cp.Round }) {
			early = cp
			copyCheckpoint(t, kept, dir, cp.Round)
		}
		if rec.Commit == nil {
			return
		}
		if early != nil {
			stopAt(early.Round+20)(r, rec)
			return
		}
		n++
		set := []event.Setting{{Knob: "eta", Expr: fmt.Sprint(0.01 / float64(n))}}
		go func() {
			_, _ = r.Command(t.Context(), event.Command{Set: set})
			_, _ = r.Command(t.Context(), event.Command{Action: event.Save})
		}()
	})
	if early == nil {
		t.Skip("no edit was pending when a checkpoint was saved")
	}
	branch := func(name string) string {
		o := Order{Dir: filepath.Join(home, name), From: dir, At: early.Round,
			Options: Options{By: "fork", Threads: 1, Limit: event.Limit{Rounds: early.Round + 20}}}
		return runOrder(t, o, nil)
	}
	files := filepath.Join(dir, session.CheckpointDir)
	if err := errors.Join(os.RemoveAll(files), os.Rename(kept, files)); err != nil {
		t.Fatal(err)
	}
	near := branch("from its checkpoint")
	if err := os.RemoveAll(files); err != nil {
		t.Fatal(err)
	}
	if far := branch("from the start"); far != near {
		t.Errorf("from the checkpoint of round %d a fork ends as %s, from the start as %s", early.Round, near, far)
	}
}

// TestForkBeforeSwap: a swap or a resize after the round of a fork is not in the fork, although it happens before the
// next round and a checkpoint of the fork's round contains it.
func TestForkBeforeSwap(t *testing.T) {
	for _, c := range []struct {
		name string
		to   event.Command
	}{
		{"swap", event.Command{Algorithm: "elastic", Set: []event.Setting{{Knob: "eta", Expr: "0.05"}}}},
		{"resize", event.Command{Members: 6}},
	} {
		t.Run(c.name, func(t *testing.T) {
			home := t.TempDir()
			dir := filepath.Join(home, "parent")
			var steered bool
			var plan *event.Plan
			var after *event.Checkpoint
			train(t, dir, prepare(t, tiny(1<<30)), nil, func(r *Run, rec event.Record) {
				switch {
				case rec.Plan != nil:
					plan = rec.Plan
				case rec.Checkpoint != nil && plan != nil && rec.Checkpoint.Round == plan.At:
					after = rec.Checkpoint
				}
				if rec.Commit == nil || rec.Commit.To < 20 || steered {
					return
				}
				steered = true
				go func() {
					for _, x := range []event.Command{{Action: event.Pause}, c.to, {Action: event.Stop}} {
						if rc, err := r.Command(t.Context(), x); err != nil || !rc.Accepted {
							t.Errorf("%+v: %+v, %v", x, rc, err)
						}
					}
				}()
			})
			if after == nil {
				t.Fatal("no checkpoint was saved between the plan and the next round")
			}
			branch := func(name string) string { // sets a knob that the algorithm after a swap lacks
				into := filepath.Join(home, name)
				hash := runOrder(t, Order{Dir: into, From: dir, At: after.Round, Options: Options{By: "fork", Threads: 1,
					Limit: event.Limit{Rounds: after.Round + 10}, Set: []event.Setting{{Knob: "ell", Expr: "3"}}}}, nil)
				if _, err := Verify(t.Context(), into, 1, nil); err != nil {
					t.Error(err)
				}
				return hash
			}
			near := branch("from its checkpoints")
			if err := os.RemoveAll(filepath.Join(dir, session.CheckpointDir)); err != nil {
				t.Fatal(err)
			}
			if far := branch("from the start"); far != near {
				t.Errorf("with the checkpoints of round %d a fork ends as %s, from the start as %s", after.Round, near, far)
			}
		})
	}
}

// TestRefusedBeforeRecomputing: options that do not fit the state of a session are refused before one of its rounds is
// recomputed, and nothing is written.
func TestRefusedBeforeRecomputing(t *testing.T) {
	home := t.TempDir()
	parent := filepath.Join(home, "parent")
	train(t, parent, prepare(t, tiny(60)), nil, nil)
	if err := os.RemoveAll(filepath.Join(parent, session.CheckpointDir)); err != nil {
		t.Fatal(err)
	}
	more := event.Limit{Rounds: 90}
	for want, change := range map[string]Options{
		"the run is complete: @ rounds": {Limit: event.Limit{Rounds: 20}},
		"the run is complete: @":        {Limit: event.Limit{Epochs: 0.5}},
		"never be met":                  {Limit: event.Limit{Rounds: 90, Target: "loss=-1"}},
		`no knob "sigma"`:               {Limit: more, Set: []event.Setting{{Knob: "sigma", Expr: "1"}}},
		"has ended by round":            {Limit: more, Set: []event.Setting{{Knob: "eta", Expr: "linear:1..0.1@9"}}},
		"audit = 2":                     {Limit: more, Audit: 2},
	} {
		for _, o := range []Order{{Dir: filepath.Join(home, "branch"), From: parent, At: 50, Options: change},
			{Dir: parent, Resume: true, Options: change}} {
			want := strings.Replace(want, "@", map[bool]string{false: "50", true: "60"}[o.Resume], 1)
			// a context that has ended fails the first round that is recomputed
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			r, err := o.Open(ctx, nil)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: %v, want %s", o, err, want)
			}
			if err == nil {
				r.Session.Close()
			}
		}
	}
	if session.Exists(filepath.Join(home, "branch")) {
		t.Error("a refused fork has a session")
	}
}

// TestRoundsBeforeAFork: a fork has its first state, and not the rounds before, which its parent has.
func TestRoundsBeforeAFork(t *testing.T) {
	home := t.TempDir()
	parent, fork := filepath.Join(home, "parent"), filepath.Join(home, "fork")
	train(t, parent, prepare(t, tiny(20)), nil, nil)
	runOrder(t, Order{Dir: fork, From: parent, At: 10, Options: Options{By: "test", Limit: event.Limit{Rounds: 20}}}, nil)
	if _, err := (*Own)(nil).Past(fork, 10); err != nil {
		t.Error(err)
	}
	_, err := (*Own)(nil).Past(fork, 9)
	if err == nil || !strings.Contains(err.Error(), "round 9 is before the start of") ||
		!strings.HasSuffix(err.Error(), "fork, which branches from parent after round 10: ask parent for it") {
		t.Error(err)
	}
}

// TestRecordedState: the state after a round as a log has it agrees with the recomputed one, in the middle of a commit
// too, and after an edit and a resize.
func TestRecordedState(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "parent")
	edited := false
	train(t, dir, prepare(t, tiny(400)), nil, func(r *Run, rec event.Record) {
		if rec.Commit != nil && rec.Commit.To >= 40 && !edited {
			edited = true
			go func() {
				_, _ = r.Command(t.Context(), event.Command{Set: []event.Setting{{Knob: "eta", Expr: "0.01"}}})
				_, _ = r.Command(t.Context(), event.Command{Members: 5})
			}()
		}
	})
	for _, at := range []uint64{0, 1, 20, 37, 399, 400} {
		p, err := (*Own)(nil).Past(dir, at)
		if err != nil {
			t.Fatal(err)
		}
		recorded, err := p.recorded()
		if err != nil {
			t.Fatal(err)
		}
		restored, err := Restore(t.Context(), dir, at, &checkpoint.Files{Dir: t.TempDir()}, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, want := recorded.Checkpoint, restored.Checkpoint
		if got.Round != want.Round || got.Algorithm != want.Algorithm || got.Progress.Steps != want.Progress.Steps ||
			math.Abs(got.Progress.Epochs-want.Progress.Epochs) > 1e-9 ||
			!slices.Equal(got.Roster.Members, want.Roster.Members) || recorded.Job.Members != restored.Job.Members ||
			!reflect.DeepEqual(got.Timeline, want.Timeline) {
			t.Errorf("round %d: the log has %+v\nrecomputed is %+v", at, got, want)
		}
	}
}
