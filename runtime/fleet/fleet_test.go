package fleet_test

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"brood/models/engine"
	"brood/optim"
	"brood/optim/averaging"
	"brood/optim/catalog"
	"brood/optim/collective"
	"brood/runtime/conformance"
	"brood/runtime/coordinator"
	"brood/runtime/event"
	"brood/runtime/fleet"
	"brood/runtime/testutil"
	"brood/runtime/worker"
	"brood/transport/local"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newFleet returns a fleet that trains with data-parallel SGD on the toy engine.
func newFleet(t *testing.T, workers int, change func(*fleet.Config)) *fleet.Fleet {
	t.Helper()
	toy, err := conformance.NewToy(false)
	if err != nil {
		t.Fatal(err)
	}
	hub, store := &local.Hub{}, &conformance.Memory{}
	cfg := fleet.Config{
		Core: coordinator.Config{Algorithm: "dp-sgd", Members: 4, Wait: workers, Layout: toy.Layout(),
			Data:  optim.DataSize{Train: 120, Validation: 30},
			Limit: event.Limit{Rounds: 20}, Lookup: catalog.Lookup},
		Log: &conformance.Log{}, Workers: workers, Tick: time.Millisecond,
	}
	cfg.Spawn = func(id int) (*worker.Worker, error) {
		own, err := conformance.NewToy(false)
		if err != nil {
			return nil, err
		}
		return worker.New(worker.Config{ID: id, Layout: own.Layout(), Init: own.Init(1), Engine: own, Data: own,
			Link: hub.Link(id), Lookup: cfg.Core.Lookup, Store: store,
			Clock: func() int64 { return time.Now().UnixNano() }}), nil
	}
	change(&cfg)
	f, err := fleet.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func bounded(t *testing.T) context.Context { return testutil.Context(t) }

// TestCommandsAfterTheEnd: each of many concurrent commands returns ErrOver.
func TestCommandsAfterTheEnd(t *testing.T) {
	f := newFleet(t, 2, func(*fleet.Config) {})
	x, err := f.Run(bounded(t))
	if err != nil || x.Phase != event.Finished {
		t.Fatalf("%+v, %v", x, err)
	}
	var wg sync.WaitGroup
	for range 100 { // more than fit in the queue of the loop
		wg.Go(func() {
			if _, err := f.Command(bounded(t), event.Command{Action: event.Save}); !errors.Is(err, fleet.ErrOver) {
				t.Errorf("a command after the end: %v", err)
			}
		})
	}
	wg.Wait()
	f.Interrupt()
}

// TestStopIsReceipted: a stop that ends the run at once has a receipt.
func TestStopIsReceipted(t *testing.T) {
	for range 50 {
		f := newFleet(t, 0, func(c *fleet.Config) { c.Core.Wait = 1 })
		over := make(chan struct{})
		go func() {
			defer close(over)
			if _, err := f.Run(bounded(t)); err != nil {
				t.Error(err)
			}
		}()
		r, err := f.Command(bounded(t), event.Command{ID: 9, Action: event.Stop})
		if err != nil || !r.Accepted || r.ID != 9 {
			t.Errorf("%+v, %v", r, err)
		}
		<-over
	}
}

// faulty is data-parallel SGD that panics once on one worker.
type faulty struct {
	optim.Program
	worker int
	round  uint64
	fired  *atomic.Bool
}

func (p faulty) Round(ctx context.Context, e *optim.Env, k optim.Values, round uint64) (optim.Report, error) {
	if e.Self == p.worker && round >= p.round && p.fired.CompareAndSwap(false, true) {
		panic("an index out of range, say")
	}
	return p.Program.Round(ctx, e, k, round)
}

// TestPanicIsADeath: a program that panics ends its worker and no other.
func TestPanicIsADeath(t *testing.T) {
	alg := *averaging.DPSGD
	alg.Program = faulty{alg.Program, 1, 5, &atomic.Bool{}}
	log := &conformance.Log{}
	f := newFleet(t, 3, func(c *fleet.Config) {
		c.Log, c.Core.Lookup = log, func(string) (*optim.Algorithm, error) { return &alg, nil }
	})
	x, err := f.Run(bounded(t))
	if err != nil || x.Phase != event.Finished {
		t.Fatalf("%+v, %v", x, err)
	}
	var alerted, replaced bool
	for _, r := range log.Records {
		if r.Alert != nil && r.Alert.Kind == "lost-worker" {
			alerted = strings.Contains(r.Alert.Text, "worker 1 is lost") &&
				strings.Contains(r.Alert.Text, "an index out of range, say")
		}
		if p := r.Plan; p != nil && p.Cause == "death" {
			replaced = len(p.New.Members) == 4 && len(p.New.Hosted(1)) == 0
		}
	}
	if !alerted || !replaced {
		t.Errorf("alerted %v, replaced %v: %+v", alerted, replaced, log.Records)
	}
}

// TestDiesAtTheSameRound: a run ends whose only worker always dies at the same round, although the rounds before it are
// committed again each time.
func TestDiesAtTheSameRound(t *testing.T) {
	alg := *averaging.DPSGD
	alg.Program = always{alg.Program, 5}
	f := newFleet(t, 1, func(c *fleet.Config) {
		c.Respawn, c.Core.Lookup = time.Millisecond, func(string) (*optim.Algorithm, error) { return &alg, nil }
	})
	ctx, stop := context.WithTimeout(bounded(t), 3*time.Second)
	defer stop()
	_, err := f.Run(ctx)
	want := regexp.MustCompile(`workers die repeatedly without a new round; the last one: worker \d+, round 5, ` +
		`dp-sgd: the tensors do not match`)
	if err == nil || !want.MatchString(err.Error()) {
		t.Errorf("the error is %v, want %s", err, want)
	}
}

// always fails in a round, whenever it is executed.
type always struct {
	optim.Program
	round uint64
}

func (p always) Round(ctx context.Context, e *optim.Env, k optim.Values, round uint64) (optim.Report, error) {
	if round == p.round {
		return optim.Report{}, errors.New("the tensors do not match")
	}
	return p.Program.Round(ctx, e, k, round)
}

// recorder is a log with a hook before each batch.
type recorder struct {
	conformance.Log
	before func([]event.Record) error
}

func (r *recorder) Append(batch ...event.Record) error {
	if err := r.before(batch); err != nil {
		return err
	}
	return r.Log.Append(batch...)
}

// counting is an engine that counts gradients.
type counting struct {
	*conformance.Toy
	n *atomic.Int64
}

func (c counting) Do(ctx context.Context, tasks ...engine.Task) error {
	for _, t := range tasks {
		if _, ok := t.(engine.Gradients); ok {
			c.n.Add(1)
		}
	}
	return c.Toy.Do(ctx, tasks...)
}

// TestWriteAhead: no worker starts a round before its plan is in the log, even on a slow disk.
func TestWriteAhead(t *testing.T) {
	var begun atomic.Int64
	planned := false
	rec := &recorder{before: func(batch []event.Record) error {
		for _, r := range batch {
			if r.Plan != nil {
				time.Sleep(30 * time.Millisecond) // time for a worker that got its plan too early
				if n := begun.Load(); n > 0 {
					t.Errorf("%d gradients before the plan is in the log", n)
				}
				planned = true
			}
		}
		return nil
	}}
	f := newFleet(t, 1, func(c *fleet.Config) {
		c.Log = rec
		hub := &local.Hub{}
		c.Spawn = func(id int) (*worker.Worker, error) {
			own, err := conformance.NewToy(false)
			if err != nil {
				return nil, err
			}
			return worker.New(worker.Config{ID: id, Layout: own.Layout(), Init: own.Init(1), Engine: counting{own, &begun},
				Data: own, Link: hub.Link(id), Lookup: catalog.Lookup,
				Store: &conformance.Memory{}, Clock: func() int64 { return 0 }}), nil
		}
	})
	if _, err := f.Run(bounded(t)); err != nil || !planned || begun.Load() == 0 {
		t.Errorf("%v, planned %v, %d gradients", err, planned, begun.Load())
	}
}

// TestLogFails: a run whose log cannot be written ends with the error of the log.
func TestLogFails(t *testing.T) {
	full := errors.New("no space left on device")
	for _, at := range []int{1, 3, 6} {
		n := 0
		rec := &recorder{before: func([]event.Record) error {
			if n++; n >= at {
				return full
			}
			return nil
		}}
		f := newFleet(t, 2, func(c *fleet.Config) { c.Log = rec })
		if x, err := f.Run(bounded(t)); !errors.Is(err, full) || x.Phase != event.Failed {
			t.Errorf("batch %d fails: %+v, %v", at, x, err)
		}
	}
}

// TestWatchSeesWhatIsLogged: Watch gets the records in order, each after it is in the log.
func TestWatchSeesWhatIsLogged(t *testing.T) {
	log, seen := &conformance.Log{}, 0
	f := newFleet(t, 2, func(c *fleet.Config) {
		c.Log = log
		c.Watch = func(r event.Record) {
			if seen >= len(log.Records) || log.Records[seen].At != r.At {
				t.Errorf("record %d is shown before it is logged", seen)
			}
			seen++
		}
	})
	if _, err := f.Run(bounded(t)); err != nil || seen != len(log.Records) || seen == 0 {
		t.Errorf("%v, %d of %d records were shown", err, seen, len(log.Records))
	}
}

// TestKillUnknown: a kill of an unknown worker is refused.
func TestKillUnknown(t *testing.T) {
	f := newFleet(t, 1, func(c *fleet.Config) { c.Core.Limit = event.Limit{Rounds: 1 << 40} })
	over := make(chan coordinator.Exit)
	go func() {
		x, _ := f.Run(bounded(t))
		over <- x
	}()
	r, err := f.Command(bounded(t), event.Command{Action: event.Kill, Worker: 7})
	if err != nil || r.Accepted || r.Reason != "there is no worker 7 here" {
		t.Errorf("%+v, %v", r, err)
	}
	f.Interrupt()
	if x := <-over; x.Phase != event.Stopped {
		t.Errorf("interrupted, it ended %+v", x)
	}
}

func TestSpawnFails(t *testing.T) {
	broken := errors.New("no memory")
	f := newFleet(t, 2, func(c *fleet.Config) { c.Spawn = func(int) (*worker.Worker, error) { return nil, broken } })
	if _, err := f.Run(bounded(t)); !errors.Is(err, broken) ||
		!strings.Contains(err.Error(), "worker 0") && !strings.Contains(err.Error(), "worker 1") {
		t.Errorf("%v", err)
	}
}

// TestContextEnds: the run returns at once when its context ends, and all goroutines end (TestMain).
func TestContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(bounded(t))
	f := newFleet(t, 3, func(c *fleet.Config) {
		c.Core.Limit = event.Limit{Rounds: 1 << 40}
		c.Watch = func(r event.Record) {
			if r.Commit != nil {
				cancel()
			}
		}
	})
	if x, err := f.Run(ctx); !errors.Is(err, context.Canceled) || x.Phase != event.Stopped {
		t.Errorf("%+v, %v", x, err)
	}
}

// TestWrongBytes: a wrong formula for the traffic of an algorithm raises one alert with its name and does not end the
// run.
func TestWrongBytes(t *testing.T) {
	for _, workers := range []int{1, 2} {
		log := &conformance.Log{}
		f := newFleet(t, workers, func(c *fleet.Config) {
			c.Log = log
			lookup := c.Core.Lookup
			c.Core.Lookup = func(name string) (*optim.Algorithm, error) {
				known, err := lookup(name)
				if err != nil {
					return nil, err
				}
				alg := *known
				alg.Bytes = func(s optim.Shape) map[collective.Op]int64 { return map[collective.Op]int64{"gradient": 7} }
				return &alg, nil
			}
		})
		exit, err := f.Run(bounded(t))
		if err != nil || exit.Phase != event.Finished {
			t.Errorf("%d workers: %+v, %v", workers, exit, err)
		}
		var alerts []string
		for _, r := range log.Records {
			if r.Alert != nil {
				alerts = append(alerts, string(r.Alert.Level)+" "+string(r.Alert.Kind)+": "+r.Alert.Text)
			}
		}
		if len(alerts) != 1 || !strings.HasPrefix(alerts[0],
			"warning bytes: Bytes of dp-sgd predicts 7 bytes for gradient up to round 1, and its workers sent ") {
			t.Errorf("%d workers: alerts %q", workers, alerts)
		}
	}
}

// TestKillReason: the alerts of a kill and of a slow link contain the reason of the command. A command with an
// unprintable reason is refused and has no effect.
func TestKillReason(t *testing.T) {
	log := &conformance.Log{}
	var shaped atomic.Int32
	f := newFleet(t, 2, func(c *fleet.Config) {
		c.Log, c.Core.Limit = log, event.Limit{Rounds: 1 << 40}
		c.Shape = func(event.Link) error { shaped.Add(1); return nil }
	})
	over := make(chan coordinator.Exit)
	go func() {
		x, _ := f.Run(bounded(t))
		over <- x
	}()
	ask := func(c event.Command) event.Receipt {
		r, err := f.Command(bounded(t), c)
		if err != nil {
			t.Error(err)
		}
		return r
	}
	for _, bad := range []string{"two\nlines", strings.Repeat("x", event.MaxWhy+1)} {
		for _, c := range []event.Command{{Action: event.Kill, Worker: 1, Why: bad},
			{Link: &event.Link{From: 0, To: 1, Rate: 1e6}, Why: bad}} {
			if r := ask(c); r.Accepted || !r.Usage || !strings.Contains(r.Reason, "reason of the command") {
				t.Errorf("%.40q is answered by %+v", bad, r)
			}
		}
	}
	if shaped.Load() != 0 {
		t.Error("a refused command changed a link")
	}
	for _, c := range []event.Command{{Link: &event.Link{From: 0, To: 1, Rate: 1e6}, Why: "a bad line"},
		{Action: event.Kill, Worker: 1, Why: "a drill"}} {
		if c.By = "tuner"; !ask(c).Accepted {
			t.Errorf("%+v is refused", c)
		}
	}
	f.Interrupt()
	<-over
	var alerts []string
	for _, r := range log.Records {
		if r.Alert != nil && (r.Alert.Kind == event.AlertKill || r.Alert.Kind == event.AlertLink) {
			alerts = append(alerts, r.Alert.Text)
		}
	}
	want := []string{"worker 0 to worker 1: 1 MB/s, set by tuner: a bad line", "worker 1 is killed by tuner: a drill"}
	if !slices.Equal(alerts, want) {
		t.Errorf("alerts %q, want %q", alerts, want)
	}
}
