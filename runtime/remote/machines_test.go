package remote

import (
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"brood/runtime/coordinator"
	"brood/runtime/event"
	"brood/runtime/message"
	"brood/runtime/session"
	"brood/runtime/testutil"
	"brood/runtime/view"
	"brood/transport/quic"
	"brood/transport/wire"
)

// TestMachines: the log has the measurements that workers report of their machines and those of the coordinator's
// machine, at most once a second. They do not change the hash of the run.
func TestMachines(t *testing.T) {
	o := small(1 << 40)
	o.Workers = 2
	dir := filepath.Join(t.TempDir(), "run")
	enough, began := make(chan struct{}), time.Now()
	var reported int
	var whole, linked, over bool
	s := serve(t, prepare(t, o), nil, dir, func(r event.Record) {
		if r.Machines == nil {
			return
		}
		one, two := of(r, 0), of(r, 1)
		whole = whole || len(r.Machines.Of) == 3 && r.Machines.Round > 0 && one.Values[event.Busy] > 0 &&
			two.Values[event.Busy] > 0 &&
			one.Values[event.RoundTrip] > 0 && two.Values[event.Sent] > 0 && one.Values[event.Received] > 0
		linked = linked || one.To[1] > 0 || two.To[0] > 0
		if reported++; reported >= 2 && whole && linked && !over {
			over = true
			close(enough)
		}
	})
	ends := []<-chan error{s.work(t.Context(), s.config()), s.work(t.Context(), s.config())}
	done := make(chan coordinator.Exit, 1)
	go func() { done <- s.train() }()
	testutil.Receive(t, enough, "records of machines: both workers and the coordinator, with processors, round trips, "+
		"bytes, and what a link carried")
	testutil.Eventually(t, "a round that workers report", func() bool {
		d := s.run.Doing()
		return d != nil && d.Stage == view.StageRound && d.Round > 0 && d.Members > 0
	})
	if r, err := s.run.Fleet().Command(testutil.Context(t), event.Command{Action: event.Stop, By: "test"}); err != nil ||
		!r.Accepted {
		t.Fatalf("%+v, %v", r, err)
	}
	testutil.Receive(t, done, "end of the run")
	for _, end := range ends {
		testutil.Receive(t, end, "end of a worker")
	}
	n := time.Duration(0)
	for r, err := range session.Records(dir) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Machines == nil {
			continue
		}
		// At most one record each half second: a delayed one may be followed by the next after less than a second.
		if n++; time.Unix(0, r.At).Sub(began) < n*500*time.Millisecond {
			t.Errorf("%d records of machines in %s", n, time.Unix(0, r.At).Sub(began))
		}
		for _, m := range r.Machines.Of {
			for to, x := range m.To { // with two workers the only link carries everything
				if to != 1-m.Worker || x != m.Values[event.Sent] {
					t.Errorf("worker %d sends %g/s to worker %d, and %g/s to all", m.Worker, x, to, m.Values[event.Sent])
				}
			}
			for name, x := range m.Values {
				if !(x >= 0) {
					t.Errorf("worker %d: %s is %g", m.Worker, name, x)
				}
			}
		}
		here := of(r, event.Here).Values
		if _, own := here[event.RoundTrip]; own || here[event.Cores] <= 0 || here[event.Memory] <= 0 {
			t.Errorf("the coordinator's process: %v", here)
		}
	}
	verifies(t, dir, s.hash)
}

// of returns the machine of a worker in a record.
func of(r event.Record, worker int) (m event.Machine) {
	for _, m := range r.Machines.Of {
		if m.Worker == worker {
			return m
		}
	}
	return m
}

// TestSilentMachine: for a worker that reports no measurements, as in an earlier version, the view has only the
// coordinator's measurements. Measurements that a worker reported long ago are not shown.
func TestSilentMachine(t *testing.T) {
	s := serve(t, prepare(t, small(3)), nil, filepath.Join(t.TempDir(), "run"), nil)
	x, err := joinRaw(s, newKey(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.receive(); err != nil {
		t.Fatal(err)
	}
	reported := func() (n int) {
		f := s.srv.hosted().describe(nil)
		if len(f.Machines) != 1 || f.Machines[0].Worker != x.id {
			t.Fatalf("machines are %+v", f.Machines)
		}
		for _, m := range event.Measures {
			if _, ok := f.Machines[0].Values[m.Measure]; ok && m.Reported {
				n++
			}
		}
		return n
	}
	if n := reported(); n != 0 {
		t.Errorf("%d measures of a worker that reported none", n)
	}
	x.send(message.Telemetry{Worker: x.id, Machine: map[event.Measure]float64{event.Busy: 1, event.Load: 2}})
	testutil.Eventually(t, "its machine", func() bool { return reported() == 2 })
	r := s.srv.hosted()
	s.srv.mu.Lock()
	for _, t := range r.handles {
		t.mu.Lock()
		t.machineAt = t.machineAt.Add(-staleAfter)
		t.mu.Unlock()
	}
	s.srv.mu.Unlock()
	if n := reported(); n != 0 {
		t.Errorf("%d old measures are shown", n)
	}
	x.peer.Close("")
	if err := errors.Join(s.srv.Close(), s.run.Close()); err != nil {
		t.Error(err)
	}
}

// TestDoing: the run shows the activity that a worker of another process reports, with a duration of at most the age of
// its session. It ends with another report, a stage of a later version, or some time without reports.
func TestDoing(t *testing.T) {
	s := serve(t, prepare(t, small(3)), nil, filepath.Join(t.TempDir(), "run"), nil)
	began := time.Now()
	x, err := joinRaw(s, newKey(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	shows := func(d *message.Doing, want *view.Doing) {
		t.Helper()
		x.send(message.Telemetry{Worker: x.id, Doing: d})
		testutil.Eventually(t, "its activity", func() bool {
			got := s.run.Doing()
			if got == nil || want == nil {
				return got == nil && want == nil
			}
			if got.For < 0 || got.For > time.Since(began) {
				t.Fatalf("it has worked for %s, but connected %s ago", got.For, time.Since(began))
			}
			got.For = 0
			return *got == *want
		})
	}
	shows(nil, nil)
	shows(&message.Doing{Stage: "memory", For: math.MaxInt64, Of: 7, Members: 4},
		&view.Doing{Stage: view.StageMemory, Of: 7, Members: 4})
	shows(&message.Doing{Stage: "members", For: 1, Done: 3, Of: 4, Members: 4},
		&view.Doing{Stage: view.StageMembers, Done: 3, Of: 4, Members: 4})
	shows(&message.Doing{Stage: "\x1b[2J", For: 1, Members: 4}, nil)
	shows(&message.Doing{Stage: "round", Round: 2, Done: 9, Of: 4, Members: 4},
		&view.Doing{Stage: view.StageRound, Round: 2, Done: 4, Of: 4, Members: 4})
	r := s.srv.hosted()
	s.srv.mu.Lock()
	for _, t := range r.handles {
		t.mu.Lock()
		t.machineAt = t.machineAt.Add(-staleAfter)
		t.mu.Unlock()
	}
	s.srv.mu.Unlock()
	if d := s.run.Doing(); d != nil {
		t.Errorf("an old report is shown: %+v", d)
	}
	x.peer.Close("")
	if err := errors.Join(s.srv.Close(), s.run.Close()); err != nil {
		t.Error(err)
	}
}

// TestMachineNonsense: a worker that reports impossible measurements during a run is disconnected with the reason. The
// run continues with the others, and the log has none of these measurements.
func TestMachineNonsense(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	s := serve(t, prepare(t, small(3)), nil, dir, func(r event.Record) {
		if r.Machines == nil {
			return
		}
		for _, m := range r.Machines.Of {
			if m.Values[event.Load] != m.Values[event.Load] || m.Values[event.Load] > 1<<20 {
				t.Errorf("the log has %+v", m)
			}
		}
	})
	trained := make(chan coordinator.Exit)
	go func() { trained <- s.train() }()
	for _, x := range []float64{math.NaN(), -1, 1e300} {
		w, err := joinRaw(s, newKey(t), nil)
		if err != nil {
			t.Fatal(err)
		}
		w.send(message.Ready{Worker: w.id})
		for err == nil {
			var m any
			m, err = w.receive()
			switch m := m.(type) {
			case message.Plan:
				w.send(message.Ready{Worker: w.id, Epoch: m.Epoch})
			case message.Grant:
				w.send(message.Telemetry{Worker: w.id, Machine: map[event.Measure]float64{event.Busy: 1, event.Load: x}})
			}
		}
		if gone, ok := errors.AsType[*quic.GoneError](err); !ok || gone.Cause != quic.Ended ||
			!strings.Contains(gone.Reason, "implausible load") {
			t.Errorf("with a load of %g the worker ends with %v", x, err)
		}
	}
	cfg := s.config()
	token, err := s.srv.gate.Issue(wire.Worker, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Join.Token = token
	end := s.work(t.Context(), cfg)
	if exit := testutil.Receive(t, trained, "end of the run"); exit.Phase != event.Finished {
		t.Errorf("%+v", exit)
	}
	if err := testutil.Receive(t, end, "end of a worker"); err != nil {
		t.Error(err)
	}
	verifies(t, dir, s.hash)
}
