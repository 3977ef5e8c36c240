package remote

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"brood/models/format/safetensors"
	"brood/models/longtest"
	"brood/runtime/evaluate"
	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/testutil"
	"brood/transport/quic"
	"brood/transport/wire"
)

// TestServedRunIsTheRun: with two and three workers over QUIC, a run has the hash and the predicted bytes of the run in
// one process, and no tensor passes through the coordinator while rounds are executed.
func TestServedRunIsTheRun(t *testing.T) {
	o := small(24)
	want := localHash(t, o)
	for _, n := range []int{2, 3} {
		o.Workers = n
		dir := filepath.Join(t.TempDir(), "run")
		var through, before, tensors int64 // bytes of control connections
		var s *served
		s = serve(t, prepare(t, o), nil, dir, func(r event.Record) {
			if r.Plan == nil && (r.Commit == nil || r.Commit.To >= 24) {
				return // excludes setup before the first plan, and the checkpoint that may follow the last commit
			}
			through = s.control()
			if r.Plan != nil {
				before = through
			}
			tensors = total(s.sum.Sent)
		})
		var ends []<-chan error
		for range n {
			ends = append(ends, s.work(t.Context(), s.config()))
		}
		mesh, began := s.srv.hosted().mesh, time.Now()
		exit := s.train()
		for _, end := range ends {
			if err := testutil.Receive(t, end, "end of a worker"); err != nil {
				t.Errorf("%d workers: one ends with %v", n, err)
			}
		}
		if exit.Phase != event.Finished || s.hash != want {
			t.Errorf("%d workers: %+v, hash %s, alone %s", n, exit, s.hash, want)
		}
		if total(s.sum.Sent) == 0 || !maps.Equal(s.sum.Sent, s.sum.Predicted) || s.sum.Overhead <= 0 {
			t.Errorf("%d workers: sent %v, predicted %v, overhead %d", n, s.sum.Sent, s.sum.Predicted, s.sum.Overhead)
		}
		if p := mesh.Totals(); p.Payload != 0 || p.Sent != 0 {
			t.Errorf("%d workers: %+v on the coordinator's links", n, p)
		}
		// A row of parameters has 200 KB, so not even one passed. On an overloaded machine the run takes longer and has more
		// telemetry.
		row := int64(4 * s.run.Job.Net.Layout.Params)
		most := row
		if time.Since(began) > 10*time.Second {
			most = tensors / 4
		}
		if tensors < 20*row || through-before > most {
			t.Errorf("%d workers: %d bytes of control for %d of tensors", n, through-before, tensors)
		}
		verifies(t, dir, want)
	}
}

// TestRelays: workers that are on one machine, or on two, relay small collectives: the hash is that of the run in one
// process, the bytes are as predicted, and the log verifies.
func TestRelays(t *testing.T) {
	for _, alg := range []string{"parle", "sparseloco", "openai-es"} {
		o := host.Options{Model: "mlp:8", Data: "glyphs", Algorithm: alg, Members: 8, Workers: 1, Threads: 1, Seed: 3,
			By: "test", Limit: event.Limit{Rounds: 4}, Set: []event.Setting{{Knob: "batch", Expr: "8"}}}
		want := localHash(t, o)
		for _, machines := range []string{"aaaa", "abab"} {
			t.Run(alg+" "+machines, func(t *testing.T) {
				t.Parallel()
				o := o
				o.Workers = len(machines)
				dir := filepath.Join(t.TempDir(), "run")
				s := serve(t, prepare(t, o), nil, dir, func(event.Record) {})
				for _, m := range machines {
					cfg := s.config()
					cfg.Machine = string(m)
					s.work(t.Context(), cfg)
				}
				exit := s.train()
				if exit.Phase != event.Finished || s.hash != want {
					t.Errorf("%+v, hash %s, alone %s", exit, s.hash, want)
				}
				if total(s.sum.Sent) == 0 || !maps.Equal(s.sum.Sent, s.sum.Predicted) {
					t.Errorf("sent %v, predicted %v", s.sum.Sent, s.sum.Predicted)
				}
				if got := s.plans[0].New.Machines; len(got) != o.Members {
					t.Errorf("the plan has the machines %v", got)
				}
				verifies(t, dir, want)
			})
		}
	}
}

func total[K comparable](m map[K]int64) (sum int64) {
	for _, n := range m {
		sum += n
	}
	return sum
}

// control returns the bytes that the coordinator's control connections have carried in both directions.
func (s *served) control() (n int64) {
	r := s.srv.hosted()
	s.srv.mu.Lock()
	defer s.srv.mu.Unlock()
	for _, t := range r.handles {
		st := t.peer.Stats()
		n += st.Sent + st.Received
	}
	return n
}

// TestComeAndGo: a worker leaves and another one joins during the run. Each change is a plan, and the log verifies.
func TestComeAndGo(t *testing.T) {
	o := small(1 << 40)
	o.Workers = 2
	dir := filepath.Join(t.TempDir(), "run")
	var s *served
	leaves, leave := context.WithCancel(testutil.Context(t))
	joined, finished := false, false
	var late <-chan error
	s = serve(t, prepare(t, o), nil, dir, func(r event.Record) {
		switch c := r.Commit; {
		case c == nil:
		case len(s.plans) == 1 && c.To >= 10:
			leave()
		case len(s.plans) == 2 && !joined:
			joined = true
			late = s.work(t.Context(), s.config())
		case len(s.plans) == 3 && !finished:
			finished = true
			s.run.Interrupt()
		}
	})
	stays, goes := s.work(t.Context(), s.config()), s.work(leaves, s.config())
	if exit := s.train(); exit.Phase != event.Stopped || !joined {
		t.Fatalf("%+v, joined %v", exit, joined)
	}
	if err := errors.Join(testutil.Receive(t, stays, "end of a worker"),
		testutil.Receive(t, late, "end of a worker")); err != nil {
		t.Error(err)
	}
	if err := testutil.Receive(t, goes, "end of a worker"); !errors.Is(err, context.Canceled) {
		t.Errorf("the canceled worker ends with %v", err)
	}
	if s.plans[1].Cause != "death" || s.plans[2].Cause != "join" || len(s.plans[2].New.Workers()) != 2 {
		t.Errorf("plans %+v", s.plans)
	}
	if text := s.notes.text(); !strings.Contains(text, "stopped by its operator") {
		t.Errorf("the notes are %s", text)
	}
	verifies(t, dir, s.hash)
}

// TestResumeServed: initial parameters and checkpoints are transferred: a served run that was stopped resumes with
// other workers and ends with the hash of an uninterrupted run.
func TestResumeServed(t *testing.T) {
	o := small(30)
	o.Init = filepath.Join(t.TempDir(), "given.safetensors")
	j := prepare(t, small(1))
	params := make([]float32, j.Net.Layout.Params)
	if err := j.Net.Init(77, 0, params); err != nil {
		t.Fatal(err)
	}
	if err := (&evaluate.Model{Net: j.Net, Params: params}).Save(o.Init); err != nil {
		t.Fatal(err)
	}
	if f, err := safetensors.Open(o.Init); err != nil || len(f.Tensors) == 0 {
		t.Fatal(err)
	}
	want := localHash(t, o)
	dir := filepath.Join(t.TempDir(), "run")
	o.Workers = 2
	var s *served
	s = serve(t, prepare(t, o), nil, dir, func(r event.Record) {
		if r.Commit != nil && r.Commit.To >= 8 {
			s.run.Interrupt()
		}
	})
	s.work(t.Context(), s.config())
	s.work(t.Context(), s.config())
	if x := s.train(); x.Phase != event.Stopped {
		t.Fatalf("%+v", x)
	}
	from, err := host.Restore(t.Context(), dir, 0, nil, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if from.Executed != 0 || len(from.Checkpoint.Files) != 2 {
		t.Errorf("recomputed %d rounds, checkpoint %+v", from.Executed, from.Checkpoint)
	}
	if err := from.Continue(host.Options{Workers: 3, Threads: 1, Limit: event.Limit{Rounds: 30}}); err != nil {
		t.Fatal(err)
	}
	s = serve(t, from.Job, from, dir, nil)
	for range 3 {
		s.work(t.Context(), s.config())
	}
	if x := s.train(); x.Phase != event.Finished || s.hash != want {
		t.Errorf("%+v, hash %s, uninterrupted %s", x, s.hash, want)
	}
	verifies(t, dir, want)
}

// TestLeftAtOnce: a coordinator that ends before its run does, as after a second Ctrl+C, does not release its worker
// for good. The worker retries until its patience ends.
func TestLeftAtOnce(t *testing.T) {
	t.Parallel()
	o := small(1 << 40)
	dir := filepath.Join(t.TempDir(), "run")
	ctx, cancel := context.WithCancel(testutil.Context(t))
	s := serve(t, prepare(t, o), nil, dir, func(r event.Record) {
		if r.Commit != nil {
			cancel()
		}
	})
	cfg := s.config()
	cfg.Patience = 3 * time.Second
	end := s.work(t.Context(), cfg)
	if _, err := s.run.Train(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := errors.Join(s.srv.Close(), s.run.Close()); err != nil {
		t.Error(err)
	}
	err := testutil.Receive(t, end, "end of the worker")
	if _, out := errors.AsType[*RefusedError](err); err == nil || out ||
		!strings.Contains(err.Error(), "the coordinator did not answer for 3s") {
		t.Errorf("the worker ends with %v", err)
	}
	if want := "the coordinator ends before the run does; this worker returns in 1s and retries for 3s"; !strings.Contains(
		s.notes.text(), want) {
		t.Errorf("the notes are %q, want %q", s.notes.text(), want)
	}
	testutil.Wait(s.t, &s.workers, "end of all workers")
}

// TestPatience: a worker retries until its patience ends, then returns an error that says what to do.
func TestPatience(t *testing.T) {
	t.Parallel()
	s := serve(t, prepare(t, small(1)), nil, filepath.Join(t.TempDir(), "run"), nil)
	cfg := s.config()
	if err := errors.Join(s.srv.Close(), s.run.Close()); err != nil {
		t.Fatal(err)
	}
	cfg.Patience = 0
	err := Work(t.Context(), cfg)
	if err == nil || !strings.Contains(err.Error(), "the coordinator did not answer for 0s") ||
		!strings.Contains(err.Error(), "start the coordinator") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	cfg.Patience = time.Minute
	if err := Work(ctx, cfg); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

// TestReturns: a worker whose connection is cut for a while joins again by its key, since its token is used up.
func TestReturns(t *testing.T) {
	longtest.Need(t, longtest.Fleets, "waits for timeouts of two seconds")
	o := small(1 << 40)
	o.Workers = 3
	dir := filepath.Join(t.TempDir(), "run")
	var s *served
	var address string // of the worker that is cut off
	cut, done := false, false
	s = serve(t, prepare(t, o), nil, dir, func(r event.Record) {
		switch {
		case r.Plan != nil && cut && len(s.plans) == 2: // the loss was noticed
			time.AfterFunc(2*time.Second, func() {
				if err := s.srv.node.Shaper().Set(address, quic.Shape{}); err != nil {
					t.Error(err)
				}
			})
		case r.Commit != nil && r.Commit.To >= 5 && !cut:
			cut = true
			run := s.srv.hosted()
			s.srv.mu.Lock()
			defer s.srv.mu.Unlock()
			for _, handle := range run.handles {
				if handle.id == 1 {
					address = handle.peer.Address().String()
					if err := s.srv.node.Shaper().Set(address, quic.Shape{Loss: 1}); err != nil {
						t.Error(err)
					}
				}
			}
		case r.Commit != nil && len(s.plans) >= 3 && !done:
			done = true
			s.run.Interrupt()
		}
	})
	var ends []<-chan error
	for range 3 {
		ends = append(ends, s.work(t.Context(), s.config()))
	}
	if x := s.train(); x.Phase != event.Stopped || !done {
		t.Fatalf("%+v", x)
	}
	for _, end := range ends {
		if err := testutil.Receive(t, end, "end of a worker"); err != nil {
			t.Error(err)
		}
	}
	last := s.plans[len(s.plans)-1]
	if ws := last.New.Workers(); last.Cause != "join" || len(ws) != 3 || ws[2] < 3 {
		t.Errorf("last plan %s of workers %v", last.Cause, ws)
	}
	verifies(t, dir, s.hash)
}

// TestEvicted: a worker that the others cannot reach reports it and is evicted with that reason. The run continues.
func TestEvicted(t *testing.T) {
	longtest.Need(t, longtest.Fleets, "waits for the eviction of a worker that reports failures")
	o := small(3)
	o.Workers = 2
	dir := filepath.Join(t.TempDir(), "run")
	s := serve(t, prepare(t, o), nil, dir, nil)
	s.srv.cfg.Note = func(text string) { // after the roster, before the worker's handle is in the fleet
		if s.notes.add(text); strings.HasPrefix(text, "worker 1 ") && strings.HasSuffix(text, " joined") {
			run := s.srv.hosted()
			s.srv.mu.Lock()
			defer s.srv.mu.Unlock()
			for i := range run.roster {
				if run.roster[i].Index == 1 {
					run.roster[i].Node[0] ^= 1
				}
			}
			run.sendRoster()
		}
	}
	ends := []<-chan error{s.work(t.Context(), s.config()), s.work(t.Context(), s.config())}
	if x := s.train(); x.Phase != event.Finished || s.hash != localHash(t, small(3)) {
		t.Errorf("%+v, hash %s", x, s.hash)
	}
	var out []error
	for _, end := range ends {
		if err := testutil.Receive(t, end, "end of a worker"); err != nil {
			out = append(out, err)
		}
	}
	if len(out) != 1 || !strings.Contains(out[0].Error(), "the coordinator evicted this worker: it reports: ") {
		t.Errorf("ends: %v", out)
	}
	verifies(t, dir, s.hash)
}

// TestOpening: clients that connect before a run accepts them are asked to retry, for any time. The refusal differs
// from that of a run that takes no workers.
func TestOpening(t *testing.T) {
	srv, err := Listen(Config{Address: "127.0.0.1:0", Enrol: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := srv.open(&run{srv: srv, id: wire.RunID{1}, dir: filepath.Join(file, "run")}); err == nil {
		t.Fatal("a server saved its identity below a file")
	}
	for _, role := range []wire.Role{wire.Worker, wire.Viewer} {
		var no wire.Refused
		if _, err := srv.admit(t.Context(), quic.Request{Hello: wire.Hello{Role: role}}); !errors.As(err, &no) || !no.Retry ||
			no.Code != wire.CodeBusy {
			t.Errorf("%v before the run is open: %v", role, err)
		}
	}
}
