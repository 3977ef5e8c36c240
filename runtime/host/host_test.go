package host

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"brood/models"
	"brood/models/engine"
	"brood/models/format/safetensors"
	"brood/runtime/checkpoint"
	"brood/runtime/event"
	"brood/runtime/session"
)

// tiny returns the options of a run that takes well under a second: the linear classifier on a few images.
func tiny(rounds uint64) Options {
	return Options{Model: "softmax", Data: fewImages, Algorithm: "parle", Members: 4, Workers: 2, Seed: 3,
		Limit: event.Limit{Rounds: rounds}, By: "test",
		Set: []event.Setting{{Knob: "ell", Expr: "2"}, {Knob: "batch", Expr: "8"}}}
}

// train runs a job to its end in a new session, or in that of from, and returns the hash of the last commit. during is
// called with every record.
func train(t *testing.T, dir string, j *Job, from *Restored, during func(r *Run, rec event.Record)) string {
	t.Helper()
	open := session.Create
	if from != nil && from.Epoch > 0 {
		open = session.Open
	}
	s, err := open(dir)
	if err != nil {
		t.Fatal(err)
	}
	var hash string
	var run *Run
	ready := make(chan struct{})
	run, err = Start(j, s, from, func(rec event.Record) {
		if rec.Commit != nil {
			hash = rec.Commit.Hash
		}
		if during != nil {
			select {
			case <-ready:
				during(run, rec)
			default:
			}
		}
	})
	if err != nil {
		s.Close()
		t.Fatal(err)
	}
	close(ready)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if _, err := run.Train(ctx); err != nil {
		t.Fatal(err)
	}
	if err := run.Close(); err != nil {
		t.Fatal(err)
	}
	return hash
}

// prepare returns a job as Prepare does, but without estimating memory and time, which would take longer than a short
// run.
func prepare(t *testing.T, o Options) *Job {
	t.Helper()
	j, err := prepared(o, func(j *Job, _ Engine) error {
		if j.Config.Probe > 0 || j.Modelless() {
			return nil
		}
		meta := *j
		meta.metaOnly = true
		r, err := meta.dryRun()
		j.Config.Probe = period(r.round.samples(), r.probe.samples())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// stopAt interrupts a run once a round is committed. It blocks the run's event loop for 2 ms, so that few more rounds
// are granted before the interrupt.
func stopAt(round uint64) func(*Run, event.Record) {
	return func(r *Run, rec event.Record) {
		if rec.Commit != nil && rec.Commit.To >= round {
			go r.Interrupt()
			time.Sleep(2 * time.Millisecond)
		}
	}
}

// weigh prepares a job with its memory estimate.
func weigh(t *testing.T, o Options) *Job {
	t.Helper()
	j, err := Prepare(o)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// TestResumeForkVerify: a run that is stopped and resumed ends with the hash of an uninterrupted run, and a fork from a
// round inside a commit verifies by itself.
func TestResumeForkVerify(t *testing.T) {
	const whole = 120 // many more than are in progress when the interrupt arrives
	home := t.TempDir()
	ctx := context.Background()
	want := train(t, filepath.Join(home, "whole"), prepare(t, tiny(whole)), nil, nil)
	dir := filepath.Join(home, "half")
	train(t, dir, prepare(t, tiny(whole)), nil, stopAt(8))
	from, err := Restore(ctx, dir, 0, nil, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if from.Executed != 0 {
		t.Errorf("%d rounds were recomputed after a clean stop", from.Executed)
	}
	if err := from.Continue(Options{Workers: 3, Threads: 1, Limit: event.Limit{Rounds: whole}}); err != nil {
		t.Fatal(err)
	}
	if got := train(t, dir, from.Job, from, nil); got != want {
		t.Errorf("resumed: %s, uninterrupted %s", got, want)
	}
	res, err := Verify(ctx, dir, 1, nil)
	if err != nil || res.Rounds != whole || res.Last.Hash != want {
		t.Errorf("verify: %+v, %v", res, err)
	}

	branch := filepath.Join(home, "branch")
	f, err := Restore(ctx, dir, 17, &checkpoint.Files{Dir: branch}, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if f.Checkpoint.Round != 17 {
		t.Fatalf("restored round %d, want 17", f.Checkpoint.Round)
	}
	if err := f.Fork("half", Options{
		Threads: 1,
		Limit:   event.Limit{Rounds: whole},
		Set:     []event.Setting{{Knob: "eta", Expr: "0.01"}},
		By:      "test",
	}); err != nil {
		t.Fatal(err)
	}
	if got := train(t, branch, f.Job, f, nil); got == want {
		t.Error("the fork ends as its parent: the edit did not take effect")
	}
	if res, err := Verify(ctx, branch, 1, nil); err != nil || res.Rounds != whole-17 {
		t.Errorf("verify of the fork: %+v, %v", res, err)
	}
	// The same fork without an edit ends as its parent.
	same := filepath.Join(home, "same")
	f, err = Restore(ctx, dir, 17, &checkpoint.Files{Dir: same}, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Fork("half", Options{Threads: 1, Limit: event.Limit{Rounds: whole}}); err != nil {
		t.Fatal(err)
	}
	if got := train(t, same, f.Job, f, nil); got != want {
		t.Errorf("a fork without an edit: %s, its parent %s", got, want)
	}
}

// TestSessionSize: a finished run leaves the state of its last round, saved once, and a log of at most 16 KiB. The
// state is three rows for every member, and its cursors.
func TestSessionSize(t *testing.T) {
	home := t.TempDir()
	var state int64
	for i := range 4 {
		j := prepare(t, tiny(20))
		state += int64(j.Members) * int64(3*4*j.Net.Layout.Params)
		train(t, filepath.Join(home, strconv.Itoa(i)), j, nil, nil)
	}
	const logBytes = 16 << 10
	if size := session.Size(home); size < state || size > state+4*logBytes {
		t.Errorf("four runs of %d bytes of state leave %d bytes", state, size)
	}
}

// TestEditsAcceptedWhilePaused: an edit that was accepted while the run was paused takes effect after the run is
// stopped and resumed. After every resume the session verifies from its first round.
func TestEditsAcceptedWhilePaused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	ctx := context.Background()
	steered := false
	train(t, dir, prepare(t, tiny(40)), nil, func(r *Run, rec event.Record) {
		if rec.Commit == nil || rec.Commit.To < 5 || steered {
			return
		}
		steered = true
		go func() {
			for _, c := range []event.Command{{Action: event.Pause}, {Set: []event.Setting{{Knob: "eta", Expr: "0.03"}}},
				{Action: event.Stop}} {
				if rc, err := r.Command(ctx, c); err != nil || !rc.Accepted {
					t.Errorf("%+v: %+v, %v", c, rc, err)
				}
			}
		}()
	})
	var seen bool
	for i := range 3 {
		from, err := Restore(ctx, dir, 0, nil, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := from.Continue(Options{Workers: 2, Threads: 1,
			Limit: event.Limit{Rounds: from.Checkpoint.Round + 3}}); err != nil {
			t.Fatal(err)
		}
		train(t, dir, from.Job, from, func(_ *Run, rec event.Record) {
			for _, e := range planEdits(rec) {
				seen = seen || e.Knob == "eta" && e.Expr == "0.03"
			}
		})
		if !seen {
			t.Fatal("the edit that was accepted while paused is lost")
		}
		if _, err := Verify(ctx, dir, 1, nil); err != nil {
			t.Fatalf("after resume %d: %v", i+1, err)
		}
	}
}

// TestAcceptedBeforeACrash: when a receipt is sent, the log already contains the accepted command, and a run that
// resumes from this log applies it. The test copies the log at that moment, as a kill would leave it.
func TestAcceptedBeforeACrash(t *testing.T) {
	home := t.TempDir()
	ctx := context.Background()
	crashed := filepath.Join(home, "crashed")
	asked := false
	train(t, filepath.Join(home, "s"), prepare(t, tiny(40)), nil, func(r *Run, rec event.Record) {
		switch {
		case rec.Commit != nil && rec.Commit.To >= 5 && !asked:
			asked = true
			go func() {
				c := event.Command{Members: 7, Set: []event.Setting{{Knob: "eta", Expr: "0.03"}}}
				if rc, err := r.Command(ctx, c); err != nil || !rc.Accepted {
					t.Errorf("%+v: %+v, %v", c, rc, err)
				}
			}()
		case rec.Accepted != nil:
			copyLog(t, crashed, r.Session.Dir())
		}
	})
	from, err := Restore(ctx, crashed, 0, nil, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(from.Checkpoint.Roster.Members) != 4 || len(from.Asked.Commands) != 1 {
		t.Fatalf("restored with %d members and %d commands pending, want 4 and 1", len(from.Checkpoint.Roster.Members),
			len(from.Asked.Commands))
	}
	if err := from.Continue(Options{Workers: 2, Threads: 1,
		Limit: event.Limit{Rounds: from.Checkpoint.Round + 3}}); err != nil {
		t.Fatal(err)
	}
	var members int
	var eta string
	train(t, crashed, from.Job, from, func(_ *Run, rec event.Record) {
		for _, e := range planEdits(rec) {
			if e.Knob == "eta" {
				eta = e.Expr
			}
		}
		if rec.Plan != nil {
			members = len(rec.Plan.New.Members)
		}
	})
	if members != 7 || eta != "0.03" {
		t.Errorf("the run resumes with %d members and eta %q, want the accepted 7 and 0.03", members, eta)
	}
	if _, err := Verify(ctx, crashed, 1, nil); err != nil {
		t.Error(err)
	}
}

func copyLog(t *testing.T, to, from string) {
	t.Helper()
	if err := os.Mkdir(to, 0o755); err != nil {
		t.Fatal(err)
	}
	logs, err := filepath.Glob(filepath.Join(from, "log-*.brood"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("no log in %s: %v", from, err)
	}
	for _, log := range logs {
		b, err := os.ReadFile(log)
		if err == nil {
			err = os.WriteFile(filepath.Join(to, filepath.Base(log)), b, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func planEdits(rec event.Record) []event.Edit {
	if rec.Plan == nil {
		return nil
	}
	return rec.Plan.Timeline
}

// TestRestoreRefuses: each error names the cause, and the session does not change.
func TestRestoreRefuses(t *testing.T) {
	home := t.TempDir()
	ctx := context.Background()
	dir := filepath.Join(home, "a")
	train(t, dir, prepare(t, tiny(6)), nil, nil)
	if _, err := Restore(ctx, dir, 7, nil, 1, nil); err == nil ||
		!strings.Contains(err.Error(), "after the last committed round") {
		t.Errorf("round 7 of 6: %v", err)
	}
	from, err := Restore(ctx, dir, 0, nil, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := from.Continue(Options{Limit: event.Limit{Rounds: 6}}); err == nil ||
		!strings.Contains(err.Error(), "complete") {
		t.Errorf("a finished run resumes: %v", err)
	}
	if err := from.Continue(Options{Limit: event.Limit{Rounds: 9}, Set: []event.Setting{{Knob: "ell", Expr: "0"}}}); err ==
		nil || !strings.Contains(err.Error(), "ell") {
		t.Errorf("ell = 0: %v", err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "checkpoints", "6", "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no checkpoint files: %v", err)
	}
	p, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	p[len(p)-1] ^= 1
	if err := os.WriteFile(files[0], p, 0o644); err != nil {
		t.Fatal(err)
	}
	st := &checkpoint.Files{Dir: dir}
	if _, err := st.Load(from.Checkpoint, func(string) bool { return true }); err == nil ||
		!strings.Contains(err.Error(), "damaged") {
		t.Errorf("a flipped bit in a checkpoint: %v", err)
	}
}

// TestInit: a run starts from the parameters of --init, the session keeps a copy of the file, and a file that does not
// fit is rejected.
func TestInit(t *testing.T) {
	home := t.TempDir()
	j := prepare(t, tiny(3))
	params := make([]float32, j.Net.Layout.Params)
	if err := j.Net.Init(99, 0, params); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(home, "start.safetensors")
	saveModel(t, path, j.Net, params)
	o := tiny(3)
	o.Init = path
	given := prepare(t, o)
	got := make([]float32, len(params))
	given.init(t.Context(), engine.Member(2), got)
	for i := range params {
		if math.Float32bits(got[i]) != math.Float32bits(params[i]) {
			t.Fatalf("parameter %d is %v, the file has %v", i, got[i], params[i])
		}
	}
	dir := filepath.Join(home, "s")
	hash := train(t, dir, given, nil, nil)
	if other := train(t, filepath.Join(home, "o"), prepare(t, tiny(3)), nil, nil); other == hash {
		t.Error("the initial parameters had no effect")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := Verify(context.Background(), dir, 1, nil); err != nil {
		t.Errorf("verify without the original file: %v", err)
	}
	if err := safetensors.Save(path,
		safetensors.File{Tensors: []safetensors.Tensor{{Name: "other", Shape: []int{1}, F: []float32{1}}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := Prepare(o); err == nil || !strings.Contains(err.Error(), "fc1.weight") {
		t.Errorf("a file without the model's tensors: %v", err)
	}
}

// TestPrepareRefuses: each error is one sentence that names the option.
func TestPrepareRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"algorithm": {func(o *Options) { o.Algorithm = "adam" }, "adam"},
		"model":     {func(o *Options) { o.Model = "nope" }, "nope"},
		"data":      {func(o *Options) { o.Data = "nope" }, "nope"},
		"knob":      {func(o *Options) { o.Set = []event.Setting{{Knob: "zeta", Expr: "1"}} }, "zeta"},
		"bounds":    {func(o *Options) { o.Set = []event.Setting{{Knob: "gamma", Expr: "-1"}} }, "gamma"},
		"schedule":  {func(o *Options) { o.Set = []event.Setting{{Knob: "eta", Expr: "linear:0.1"}} }, "linear"},
		"members":   {func(o *Options) { o.Members = -1 }, "members"},
		"odd":       {func(o *Options) { o.Algorithm, o.Members, o.Set = "openai-es", 3, nil }, "even"},
		"pairs":     {func(o *Options) { o.Algorithm, o.Members, o.Set = "popsgd", 1, nil }, "members"},
		"elite": {func(o *Options) {
			o.Algorithm, o.Set = "pesgd", []event.Setting{{Knob: "elite", Expr: "9"}}
		}, "elite"},
		"on-loss":    {func(o *Options) { o.OnLoss = "pray" }, "pray"},
		"target":     {func(o *Options) { o.Limit.Target = "happiness=1" }, "happiness"},
		"structural": {func(o *Options) { o.Set = []event.Setting{{Knob: "ell", Expr: "linear:2..100@50"}} }, "ell"},
	} {
		o := tiny(3)
		c.change(&o)
		if _, err := Prepare(o); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLockedSession: a second process gets an error that names the process holding the lock.
func TestLockedSession(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	s, err := session.Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, err = session.Open(dir)
	var locked *session.LockedError
	if !errors.As(err, &locked) {
		t.Errorf("a second writer: %v", err)
	}
}

// TestLossIsRecorded: the configuration names the loss of a model without classes, by which screens and comparisons
// distinguish runs.
func TestLossIsRecorded(t *testing.T) {
	for model, want := range map[string]string{"mlp-small": "", "quadratic": models.Distance} {
		j, err := Prepare(Options{
			Algorithm: "dp-sgd",
			Model:     model,
			Data:      fewImages,
			Members:   1,
			Limit:     event.Limit{Rounds: 1},
		})
		if err != nil {
			t.Fatal(err)
		}
		if j.Config.Loss != want {
			t.Errorf("%s: the configuration has the loss %q", model, j.Config.Loss)
		}
	}
}
