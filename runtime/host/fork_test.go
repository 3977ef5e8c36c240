package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"brood/runtime/checkpoint"
	"brood/runtime/event"
	"brood/runtime/session"
	"brood/runtime/testutil"
)

// TestForkOfALiveRun: a branch that begins while its parent goes on, whose checkpoints come and go meanwhile, has the
// bits of the same branch that is made when the parent has ended, and both verify. The parent does not notice.
func TestForkOfALiveRun(t *testing.T) {
	home := t.TempDir()
	o := tiny(600)
	want := train(t, filepath.Join(home, "alone"), prepare(t, o), nil, nil)
	parent, live := filepath.Join(home, "parent"), filepath.Join(home, "live")
	branch := func(dir string, at uint64) Order {
		return Order{Dir: dir, From: parent, At: at, Options: Options{By: "fork", Threads: 1, Limit: event.Limit{Rounds: at + 20},
			Set: []event.Setting{{Knob: "eta", Expr: "0.01"}}}}
	}
	var at uint64
	begin, forked, end := make(chan uint64), make(chan string, 1), make(chan struct{})
	go func() {
		defer close(end)
		at = <-begin
		forked <- obey(t, branch(live, at), nil)
	}()
	saves := 0
	got := train(t, parent, prepare(t, o), nil, func(r *Run, rec event.Record) {
		if rec.Commit == nil || rec.Commit.To < 100 {
			return
		}
		if saves++; saves%8 == 0 { // so that checkpoints are removed under the eyes of who reads them
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
		t.Errorf("the parent ends as %s, undisturbed as %s", got, want)
	}
	if x := session.Describe(parent); x.Round != 600 {
		t.Errorf("the parent ends at round %d", x.Round)
	}
	if again := obey(t, branch(filepath.Join(home, "later"), at), nil); again != hash {
		t.Errorf("after round %d the branch of the live run ends as %s, the same one of the recording as %s", at, hash, again)
	}
	for _, dir := range []string{parent, live} {
		if _, err := Verify(t.Context(), dir, 1, nil); err != nil {
			t.Errorf("verify %s: %v", filepath.Base(dir), err)
		}
	}
}

// TestNearestCheckpoint: a branch begins with the newest checkpoint at or before its round that is there, whichever of
// the others are gone, also where one goes away once it was chosen.
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
			t.Errorf("%d rounds were executed again, and there is a checkpoint at %d", r.Executed, n)
		}
		if err := os.RemoveAll(filepath.Join(dir, session.CheckpointDir, filepath.Base(filepath.Dir(session.CheckpointFile(n, 1, 0))))); err != nil {
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

// TestABranchKnowsNoLaterEdit: an edit of the parent that takes effect behind the round of a branch is none of the
// branch's, although a checkpoint at or before that round may know it: a run is granted rounds ahead of those that it
// has committed. So a branch has the same bits whichever checkpoint it comes from.
func TestABranchKnowsNoLaterEdit(t *testing.T) {
	home := t.TempDir()
	dir, kept := filepath.Join(home, "parent"), filepath.Join(home, "kept")
	var early *event.Checkpoint // that knows an edit of the rounds after it
	var n int
	train(t, dir, prepare(t, tiny(2000)), nil, func(r *Run, rec event.Record) {
		if cp := rec.Checkpoint; cp != nil && early == nil && slices.ContainsFunc(cp.Timeline, func(e event.Edit) bool { return e.At > cp.Round }) {
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
		t.Skip("no edit was under way when a checkpoint was saved")
	}
	branch := func(name string) string {
		o := Order{Dir: filepath.Join(home, name), From: dir, At: early.Round,
			Options: Options{By: "fork", Threads: 1, Limit: event.Limit{Rounds: early.Round + 20}}}
		return obey(t, o, nil)
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
		t.Errorf("from the checkpoint of round %d a branch ends as %s, from the start as %s", early.Round, near, far)
	}
}

// TestABranchBeforeASwap: a swap or a resize after the round of a branch is none of the branch's either, although it
// happens before the next round and a checkpoint of that same round knows it.
func TestABranchBeforeASwap(t *testing.T) {
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
				hash := obey(t, Order{Dir: into, From: dir, At: after.Round, Options: Options{By: "fork", Threads: 1,
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
				t.Errorf("with the checkpoints of round %d a branch ends as %s, from the start as %s", after.Round, near, far)
			}
		})
	}
}
