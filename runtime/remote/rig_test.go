package remote

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"brood/optim/collective"
	"brood/runtime/coordinator"
	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/session"
	"brood/runtime/testutil"
	"brood/transport/identity"
	"brood/transport/wire"
)

// TestMain lets six parallel tests wait at the same time on any number of processors, since they mostly wait.
func TestMain(m *testing.M) {
	flag.Parse()
	if goruntime.GOMAXPROCS(0) < 6 {
		_ = flag.Set("test.parallel", "6")
	}
	goleak.VerifyTestMain(m)
}

// small returns a job that takes about a second.
func small(rounds uint64) host.Options {
	return host.Options{Model: "mlp-small", Data: "glyphs", Algorithm: "parle", Members: 4, Workers: 1, Threads: 1,
		Seed: 3, Limit: event.Limit{Rounds: rounds}, By: "test",
		Set: []event.Setting{{Knob: "ell", Expr: "2"}, {Knob: "batch", Expr: "8"}}}
}

func prepare(t *testing.T, o host.Options) *host.Job {
	t.Helper()
	j, err := host.Prepare(o)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func newKey(t *testing.T) *identity.Key {
	t.Helper()
	k, err := identity.New()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// served is a run with a server on the loopback interface.
type served struct {
	t       *testing.T
	srv     *Server
	run     *host.Run
	dir     string
	notes   notes
	hash    string // of the newest commit
	sum     event.Commit
	plans   []event.Plan
	watch   func(event.Record) // called with each record; may be nil
	workers sync.WaitGroup
}

type notes struct {
	sync.Mutex
	all []string
}

func (n *notes) add(s string) {
	n.Lock()
	defer n.Unlock()
	n.all = append(n.all, s)
}

func (n *notes) text() string {
	n.Lock()
	defer n.Unlock()
	return strings.Join(n.all, "\n")
}

// serve prepares a job that joining workers train; o.Workers is the number that it waits for.
func serve(t *testing.T, j *host.Job, from *host.Restored, dir string, watch func(event.Record)) *served {
	t.Helper()
	s := &served{t: t}
	var err error
	if s.srv, err = Listen(Config{
		Key:     newKey(t),
		Address: "127.0.0.1:0",
		Enrol:   4,
		Guests:  4,
		Note:    s.notes.add,
	}); err != nil {
		t.Fatal(err)
	}
	s.begin(j, from, dir, watch)
	return s
}

// begin starts the job on the server.
func (s *served) begin(j *host.Job, from *host.Restored, dir string, watch func(event.Record)) {
	s.t.Helper()
	s.dir, s.watch, s.sum = dir, watch, event.Commit{Sent: map[collective.Op]int64{}, Predicted: map[collective.Op]int64{}}
	open := session.Create
	if from != nil {
		open = session.Open
	}
	sess, err := open(dir)
	if err != nil {
		s.t.Fatal(err)
	}
	if s.run, err = s.srv.Serve(j, sess, from, s.record, 0); err != nil {
		s.t.Fatal(err)
	}
}

// hosted returns the single run of a server.
func (s *Server) hosted() *run {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs[0]
}

func (s *served) record(r event.Record) {
	if c := r.Commit; c != nil {
		s.hash, s.sum.To = c.Hash, c.To
		for op, n := range c.Sent {
			s.sum.Sent[op] += n
		}
		for op, n := range c.Predicted {
			s.sum.Predicted[op] += n
		}
		s.sum.Overhead += c.Overhead
	}
	if r.Plan != nil {
		s.plans = append(s.plans, *r.Plan)
	}
	if s.watch != nil {
		s.watch(r)
	}
}

func (s *served) config() Worker {
	join, err := identity.ParseJoin(s.srv.Join(wire.Worker))
	if err != nil {
		s.t.Fatal(err)
	}
	return Worker{
		Key:      newKey(s.t),
		Join:     join,
		Listen:   "127.0.0.1:0",
		Threads:  1,
		Patience: testutil.Timeout,
		Note:     s.notes.add,
	}
}

// work starts a worker. The channel receives its result.
func (s *served) work(ctx context.Context, cfg Worker) <-chan error {
	end := make(chan error, 1)
	s.workers.Go(func() { end <- Work(ctx, cfg) })
	return end
}

// train runs to the end and closes everything.
func (s *served) train() coordinator.Exit {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testutil.Timeout)
	defer cancel()
	exit, err := s.run.Train(ctx)
	if err := errors.Join(err, s.srv.Close(), s.run.Close()); err != nil {
		s.t.Error(err)
	}
	testutil.Wait(s.t, &s.workers, "end of all workers")
	return exit
}

// endsAfter interrupts the run at the first commit after its nth plan.
func (s *served) endsAfter(n int) {
	watch, over := s.watch, false
	s.watch = func(r event.Record) {
		if watch(r); r.Commit != nil && len(s.plans) >= n && !over {
			over = true
			s.run.Interrupt()
		}
	}
}

// checkLocalHash compares the hash of the committed rounds with that of a run in this process.
func (s *served) checkLocalHash() {
	s.t.Helper()
	if want := localHash(s.t, small(s.sum.To)); s.hash != want {
		s.t.Errorf("after %d rounds the hash is %s, in one process %s", s.sum.To, s.hash, want)
	}
}

// verifies verifies the session and compares its last hash.
func verifies(t *testing.T, dir, want string) {
	t.Helper()
	v, err := host.Verify(context.Background(), dir, 1, nil)
	if err != nil || v.Last.Hash != want {
		t.Errorf("verify: %v, %+v, want %s", err, v.Last, want)
	}
}

// localHash runs the job in this process and returns its last hash.
func localHash(t *testing.T, o host.Options) (hash string) {
	t.Helper()
	sess, err := session.Create(filepath.Join(t.TempDir(), "alone"))
	if err != nil {
		t.Fatal(err)
	}
	run, err := host.Start(prepare(t, o), sess, nil, func(r event.Record) {
		if r.Commit != nil {
			hash = r.Commit.Hash
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := run.Train(testutil.Context(t)); err != nil {
		t.Fatal(err)
	}
	if err := run.Close(); err != nil {
		t.Fatal(err)
	}
	return hash
}

// series is a server of several runs, and its workers.
type series struct {
	served // its run is nil
	root   string
}

func newSeries(t *testing.T, root string, enrol int) *series {
	t.Helper()
	s := &series{served: served{t: t}, root: root}
	var err error
	if s.srv, err = Listen(Config{
		Address: "127.0.0.1:0",
		Dir:     filepath.Join(root, "fleet"),
		Series:  true,
		Enrol:   enrol,
		Note:    s.notes.add,
	}); err != nil {
		t.Fatal(err)
	}
	return s
}

// begin starts a run of the series in a new directory.
func (s *series) begin(name string, o host.Options, watch func(event.Record)) *served {
	s.t.Helper()
	one := &served{t: s.t, srv: s.srv}
	one.begin(prepare(s.t, o), nil, filepath.Join(s.root, name), watch)
	return one
}

// resume resumes a run that was interrupted.
func (s *series) resume(name string, workers int) *served {
	s.t.Helper()
	dir := filepath.Join(s.root, name)
	from, err := host.Restore(s.t.Context(), dir, 0, nil, 1, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := from.Continue(host.Options{Workers: workers, Threads: 1, Limit: from.Limit, By: "test"}); err != nil {
		s.t.Fatal(err)
	}
	one := &served{t: s.t, srv: s.srv}
	one.begin(from.Job, from, dir, nil)
	return one
}

// toEnd trains one run of a series.
func (s *served) toEnd() coordinator.Exit {
	ctx, cancel := context.WithTimeout(context.Background(), testutil.Timeout)
	defer cancel()
	exit, err := s.run.Train(ctx)
	if err := errors.Join(err, s.run.Close()); err != nil {
		s.t.Error(err)
	}
	return exit
}

// check compares the hash with the same run in this process, and the bytes with their prediction, and verifies the
// session.
func (s *served) check(o host.Options) {
	s.t.Helper()
	o.Workers = 1
	if want := localHash(s.t, o); s.hash != want {
		s.t.Errorf("%s ends with %s, in one process with %s", s.dir, s.hash, want)
	}
	if !maps.Equal(s.sum.Sent, s.sum.Predicted) {
		s.t.Errorf("%s: sent %v, predicted %v", s.dir, s.sum.Sent, s.sum.Predicted)
	}
	verifies(s.t, s.dir, s.hash)
}

// until waits until the notes contain the texts in this order.
func (s *series) until(texts ...string) {
	s.t.Helper()
	testutil.Eventually(s.t, fmt.Sprintf("noted, in this order: %q", texts), func() bool {
		rest, all := s.notes.text(), true
		for _, text := range texts {
			_, after, ok := strings.Cut(rest, text)
			rest, all = after, all && ok
		}
		return all
	})
}

// close closes the server. Every worker must end without an error.
func (s *series) close(ends ...<-chan error) {
	s.t.Helper()
	began := time.Now()
	if err := s.srv.Close(); err != nil {
		s.t.Error(err)
	}
	s.t.Logf("the server takes %s to close", time.Since(began).Round(time.Millisecond))
	testutil.Wait(s.t, &s.workers, "end of all workers")
	for _, end := range ends {
		if err := testutil.Receive(s.t, end, "end of a worker"); err != nil {
			s.t.Errorf("a worker ends with %v", err)
		}
	}
}

func seeded(rounds, seed uint64, workers int) host.Options {
	o := small(rounds)
	o.Seed, o.Workers = seed, workers
	return o
}
