package remote

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"brood/optim"
	"brood/runtime/coordinator"
	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/session"
	"brood/transport/identity"
	"brood/transport/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// small is a job of about a second.
func small(rounds uint64) host.Options {
	return host.Options{Model: "mlp-small", Data: "glyphs", Algorithm: "parle", Members: 4, Workers: 1, Threads: 1, Seed: 3, Limit: event.Limit{Rounds: rounds}, By: "test",
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
	watch   func(event.Record) // besides; may be nil
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

// serve readies a job to be trained by workers that join; o.Workers says how many are waited for.
func serve(t *testing.T, j *host.Job, from *host.Restored, dir string, watch func(event.Record)) *served {
	t.Helper()
	s := &served{t: t, dir: dir, watch: watch, sum: event.Commit{Sent: map[optim.Op]int64{}, Predicted: map[optim.Op]int64{}}}
	var err error
	if s.srv, err = Listen(Config{Key: newKey(t), Address: "127.0.0.1:0", Enrol: 3, Guests: 4, Note: s.notes.add}); err != nil {
		t.Fatal(err)
	}
	open := session.Create
	if from != nil {
		open = session.Open
	}
	sess, err := open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if s.run, err = host.Serve(j, sess, from, s.record, s.srv.Doors(0)); err != nil {
		t.Fatal(err)
	}
	if err := s.srv.Open(s.run); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *served) record(r event.Record) {
	if c := r.Commit; c != nil {
		s.hash = c.Hash
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
	return Worker{Key: newKey(s.t), Join: join, Listen: "127.0.0.1:0", Threads: 1, Patience: 20 * time.Second, Note: s.notes.add}
}

// work starts a worker whose end is sent on the channel.
func (s *served) work(ctx context.Context, cfg Worker) <-chan error {
	end := make(chan error, 1)
	s.workers.Go(func() { end <- Work(ctx, cfg) })
	return end
}

// train runs to the end and closes everything.
func (s *served) train() coordinator.Exit {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	exit, err := s.run.Train(ctx)
	if err := errors.Join(err, s.srv.Close(), s.run.Close()); err != nil {
		s.t.Error(err)
	}
	s.workers.Wait()
	return exit
}

// verifies executes the session again and wants the hash.
func verifies(t *testing.T, dir, want string) {
	t.Helper()
	v, err := host.Verify(context.Background(), dir, 1, nil)
	if err != nil || v.Last.Hash != want {
		t.Errorf("verify: %v, %+v, want %s", err, v.Last, want)
	}
}

// alone is the last hash of the job in this process.
func alone(t *testing.T, o host.Options) (hash string) {
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
	if _, err := run.Train(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := run.Close(); err != nil {
		t.Fatal(err)
	}
	return hash
}
