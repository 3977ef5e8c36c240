package conformance

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"brood/models/engine"
	"brood/optim"
	"brood/optim/catalog"
	"brood/optim/collective"
	"brood/runtime/coordinator"
	"brood/runtime/event"
	"brood/runtime/fleet"
	"brood/runtime/verify"
	"brood/runtime/worker"
	"brood/transport/local"
)

// Rig describes a run on the toy engine.
type Rig struct {
	Algorithm string
	Members   int
	Workers   int
	Rounds    uint64
	Target    string // what ends the run before, if anything
	Seed      uint64
	Set       map[string]string // knobs
	Order     []string          // of Set
	OnLoss    string
	Stats     bool
	Direct    int
	Save      time.Duration
	Keep      int64 // see coordinator.Config
	Resume    *event.Checkpoint
	Epoch     uint32
	Poison    func(m engine.Member, cursor uint64) bool
	Link      func(hub *local.Hub, id int) collective.Link // nil: the hub's own
	Engine    func(*Toy) engine.Engine                     // nil: the toy itself
	Respawn   time.Duration
	Lookup    func(string) (*optim.Algorithm, error)
	Store     *Memory
	Probe     uint64
	JoinAfter int // commits after which another worker joins; 0 never
	// OnRecord sees every record in the event loop's order and may answer with commands.
	OnRecord func(event.Record) []event.Command
}

// Log is a log in memory.
type Log struct {
	mu      sync.Mutex
	Records []event.Record
	Fail    error
}

// Append implements fleet.Recorder.
func (l *Log) Append(r ...event.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Records = append(l.Records, r...)
	return l.Fail
}

// Reader reads a copy of the log from its start.
func (l *Log) Reader() *Reader {
	l.mu.Lock()
	defer l.mu.Unlock()
	return &Reader{rest: append([]event.Record(nil), l.Records...)}
}

// Reader is a verify.Source.
type Reader struct{ rest []event.Record }

// Next implements verify.Source.
func (r *Reader) Next() (event.Record, error) {
	if len(r.rest) == 0 {
		return event.Record{}, io.EOF
	}
	x := r.rest[0]
	r.rest = r.rest[1:]
	return x, nil
}

// Memory keeps checkpoints in memory.
type Memory struct {
	mu   sync.Mutex
	rows map[string]map[string]engine.Host // file -> row
}

// Save implements worker.Store.
func (m *Memory) Save(round uint64, epoch uint32, id int, rows []worker.Row) (event.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rows == nil {
		m.rows = map[string]map[string]engine.Host{}
	}
	name := fmt.Sprintf("%d/%d/%d", round, epoch, id)
	m.rows[name] = map[string]engine.Host{}
	for _, r := range rows {
		kept := r.Record.Clone()
		if r.Pull != nil {
			p := make([]byte, 4*r.Cols)
			if err := r.Pull(p, 0); err != nil {
				return event.File{}, err
			}
			kept = engine.NewHost(1, r.Cols, engine.F32)
			engine.ReadRow(kept, 0, p)
		}
		m.rows[name][r.Name] = kept
	}
	return event.File{Path: name}, nil
}

// Load implements worker.Store.
func (m *Memory) Load(cp event.Checkpoint, want func(string) bool) (map[string]engine.Host, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[string]engine.Host{}
	for _, f := range cp.Files {
		for name, row := range m.rows[f.Path] {
			if want(name) {
				out[name] = row
			}
		}
	}
	return out, nil
}

// Outcome is what a run left behind.
type Outcome struct {
	Log     *Log
	Exit    coordinator.Exit
	Toy     *Toy
	Store   *Memory
	Replies []event.Receipt
}

func (r Rig) edits() (out []event.Edit) {
	for _, name := range r.Order {
		out = append(out, event.Edit{Algorithm: r.Algorithm, Knob: name, Expr: r.Set[name], By: "rig"})
	}
	return
}

// With sets a knob.
func (r Rig) With(name, expr string) Rig {
	set := map[string]string{name: expr}
	for k, v := range r.Set {
		if k != name {
			set[k] = v
		}
	}
	r.Set, r.Order = set, append(append([]string(nil), r.Order...), name)
	return r
}

func (r Rig) lookup() func(string) (*optim.Algorithm, error) {
	if r.Lookup != nil {
		return r.Lookup
	}
	return catalog.Lookup
}

// computes is the toy as a worker sees it.
func (r Rig) computes(toy *Toy) engine.Engine {
	if r.Engine != nil {
		return r.Engine(toy)
	}
	return toy
}

// toy is an engine of the kind that the algorithm trains.
func (r Rig) toy() (*Toy, error) {
	a, err := r.lookup()(r.Algorithm)
	return newToy(r.Stats, err == nil && a.Needs&optim.Whole != 0)
}

// worker of a run, or, without measuring, of an execution of its record.
func (r Rig) worker(id int, toy *Toy, link collective.Link, store *Memory, measure bool) *worker.Worker {
	return worker.New(worker.Config{
		ID:       id,
		Seed:     r.Seed,
		Layout:   toy.Layout(),
		Init:     toy.Init(r.Seed),
		Engine:   r.computes(toy),
		Data:     toy,
		Test:     toy.Test(),
		Link:     link,
		Direct:   r.Direct,
		Probe:    r.Probe,
		Evaluate: 1 << 40,
		Lookup:   r.lookup(),
		Store:    store,
		Measure:  measure,
		Clock:    func() int64 { return time.Now().UnixNano() },
	})
}

// Run trains to the end, or for at most a minute.
func (r Rig) Run(ctx context.Context) (*Outcome, error) {
	toy, err := r.toy()
	if err != nil {
		return nil, err
	}
	toy.Poison = r.Poison
	o := &Outcome{Log: &Log{}, Toy: toy, Store: r.Store}
	if o.Store == nil {
		o.Store = &Memory{}
	}
	hub := &local.Hub{}
	var fl *fleet.Fleet
	var commands sync.WaitGroup
	var mu sync.Mutex
	commits := 0
	said := make(chan struct{}) // closed once the command before is answered: an operator's next one does not overtake it
	close(said)
	watch := func(rec event.Record) {
		if rec.Commit != nil {
			if commits++; commits == r.JoinAfter {
				commands.Go(fl.Join)
			}
		}
		if r.OnRecord == nil {
			return
		}
		for _, c := range r.OnRecord(rec) {
			before, answered := said, make(chan struct{})
			said = answered
			commands.Go(func() {
				defer close(answered)
				<-before
				rc, err := fl.Command(ctx, c)
				if err == nil {
					mu.Lock()
					o.Replies = append(o.Replies, rc)
					mu.Unlock()
				}
			})
		}
	}
	fl, err = fleet.New(fleet.Config{
		Core: coordinator.Config{Algorithm: r.Algorithm, Members: r.Members, Wait: r.Workers, Layout: toy.Layout(),
			Data: optim.DataSize{Train: toyTrain,
				Validation: toyValid}, Tests: toyTest, Direct: r.Direct, OnLoss: coordinator.LossPolicy(r.OnLoss),
			Limit: event.Limit{Rounds: r.Rounds,
				Target: r.Target}, Edits: r.edits(), Lookup: r.lookup(), SavePeriod: r.Save, Keep: r.Keep, Resume: r.Resume, Epoch: r.Epoch},
		Log: o.Log, Workers: r.Workers, Watch: watch, Respawn: r.Respawn,
		Spawn: func(id int) (*worker.Worker, error) {
			var link collective.Link = hub.Link(id)
			if r.Link != nil {
				link = r.Link(hub, id)
			}
			own, err := r.toy() // an engine is used by one worker
			if err != nil {
				return nil, err
			}
			own.Poison = r.Poison
			return r.worker(id, own, link, o.Store, true), nil
		},
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	o.Exit, err = fl.Run(ctx)
	cancel()
	commands.Wait()
	return o, err
}

// Verify executes the log again.
func (r Rig) Verify(ctx context.Context, o *Outcome) (verify.Result, error) {
	return r.VerifyFrom(ctx, o, nil)
}

// VerifyFrom executes the log from one of its checkpoints on.
func (r Rig) VerifyFrom(ctx context.Context, o *Outcome, cp *event.Checkpoint) (verify.Result, error) {
	toy, err := r.toy()
	if err != nil {
		return verify.Result{}, err
	}
	w := r.worker(0, toy, (&local.Hub{}).Link(0), o.Store, false)
	defer w.Free()
	return verify.Run(ctx, verify.Config{
		Worker:   w,
		From:     cp,
		Measured: true,
		Limit:    event.Limit{Rounds: r.Rounds, Target: r.Target},
		Tests:    toyTest,
	}, o.Log.Reader(), 0)
}

// Last is the last commit, nil when there is none.
func (o *Outcome) Last() (c *event.Commit) {
	for _, r := range o.Log.Records {
		if r.Commit != nil {
			c = r.Commit
		}
	}
	return
}

// Checkpoint is the last checkpoint.
func (o *Outcome) Checkpoint() (c *event.Checkpoint) {
	for _, r := range o.Log.Records {
		if r.Checkpoint != nil {
			c = r.Checkpoint
		}
	}
	return
}

// Hash of the last commit.
func (o *Outcome) Hash() string {
	if c := o.Last(); c != nil {
		return c.Hash
	}
	return ""
}

// Bytes sums the ledgers of all commits.
func (o *Outcome) Bytes() (sent, predicted collective.Ledger) {
	sent, predicted = collective.Ledger{}, collective.Ledger{}
	for _, r := range o.Log.Records {
		if r.Commit != nil {
			sent.Add(r.Commit.Sent)
			predicted.Add(r.Commit.Predicted)
		}
	}
	return
}

// Series lists the values of a series, by round.
func (o *Outcome) Series(name string) (rounds []uint64, means []float64) {
	for _, r := range o.Log.Records {
		if p := r.Points; p != nil && p.Series == name {
			var s float64
			for _, v := range p.Values {
				s += v
			}
			rounds, means = append(rounds, p.Round), append(means, s/float64(len(p.Values)))
		}
	}
	return
}
