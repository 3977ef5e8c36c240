package conformance

import (
	"cmp"
	"context"
	"errors"
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
	Target    string // target that may end the run earlier; "" for none
	Seed      uint64
	Set       map[string]string // values of knobs
	Order     []string          // order of the knobs in Set
	OnLoss    string
	Audit     float64 // see coordinator.Config
	Stats     bool
	Direct    int
	Save      time.Duration
	Keep      int64 // see coordinator.Config
	Resume    *event.Checkpoint
	Epoch     uint32
	Poison    func(m engine.Member, cursor uint64) bool
	Link      func(hub *local.Hub, id int) collective.Link // nil: the link of the hub
	Engine    func(*Toy) engine.Engine                     // nil: the toy itself
	Respawn   time.Duration
	Lookup    func(string) (*optim.Algorithm, error)
	Store     *Memory
	Probe     uint64
	JoinAfter int // number of commits after which another worker joins; 0 means never
	// OnRecord is called with every record, in the order of the event loop. It may return commands. Without it a run in
	// trouble, which waits for a command, ends as failed.
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

// Memory stores checkpoints in memory.
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

// Outcome is the result of a run.
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

// With returns the rig with a knob set.
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

// engineFor returns the engine of a worker: the toy or that of Rig.Engine.
func (r Rig) engineFor(toy *Toy) engine.Engine {
	if r.Engine != nil {
		return r.Engine(toy)
	}
	return toy
}

// toy returns a toy of the kind that the algorithm trains.
func (r Rig) toy() (*Toy, error) {
	a, err := r.lookup()(r.Algorithm)
	return newToy(r.Stats, err == nil && a.Needs&optim.Whole != 0)
}

// worker returns a worker of a run, or, without measure, a worker to verify it.
func (r Rig) worker(id int, toy *Toy, link collective.Link, store *Memory, measure bool) *worker.Worker {
	return worker.New(worker.Config{
		ID:       id,
		Seed:     r.Seed,
		Layout:   toy.Layout(),
		Init:     toy.Init(r.Seed),
		Engine:   r.engineFor(toy),
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

// maxSilence is the time without a record after which Run ends.
const maxSilence = 20 * time.Second

// Run trains to the end. It returns an error once no record arrives for maxSilence, or if no worker is left and none
// will come.
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
	onTrouble := coordinator.OnTroubleStop
	if r.OnRecord != nil {
		onTrouble = coordinator.OnTroubleWait
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	hub := &local.Hub{}
	silence := time.AfterFunc(maxSilence, func() { stop(r.stalled(hub, o)) })
	defer silence.Stop()
	var fl *fleet.Fleet
	var commands sync.WaitGroup
	var mu sync.Mutex
	commits := 0
	lastAnswered := make(chan struct{}) // closed when the previous command is answered, so that commands keep their order
	close(lastAnswered)
	watch := func(rec event.Record) {
		silence.Reset(maxSilence)
		if a := rec.Alert; a != nil && a.Kind == event.AlertLostWorker && a.Level == event.LevelError &&
			r.Respawn == 0 && r.OnRecord == nil {
			stop(o.lost())
		}
		if rec.Commit != nil {
			if commits++; commits == r.JoinAfter {
				commands.Go(fl.Join)
			}
		}
		if r.OnRecord == nil {
			return
		}
		for _, c := range r.OnRecord(rec) {
			before, answered := lastAnswered, make(chan struct{})
			lastAnswered = answered
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
			Data:  optim.DataSize{Train: toyTrain, Validation: toyValid, Classes: toyOut},
			Tests: toyTest, Direct: r.Direct, OnLoss: coordinator.LossPolicy(r.OnLoss), OnTrouble: onTrouble,
			Audit: r.Audit, Secret: r.Seed,
			Limit: event.Limit{Rounds: r.Rounds, Target: r.Target},
			Edits: r.edits(), Lookup: r.lookup(), SavePeriod: r.Save, Keep: r.Keep, Resume: r.Resume, Epoch: r.Epoch},
		Log: o.Log, Workers: r.Workers, Watch: watch, Respawn: r.Respawn,
		Spawn: func(id int) (*worker.Worker, error) {
			var link collective.Link = hub.Link(id)
			if r.Link != nil {
				link = r.Link(hub, id)
			}
			own, err := r.toy() // each worker has its own engine
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
	if o.Exit, err = fl.Run(ctx); err != nil {
		err = cmp.Or(context.Cause(ctx), err)
	}
	stop(nil)
	commands.Wait()
	return o, err
}

// stalled returns the reason why no record arrives: a deadlock of workers, the last lost worker, or a round that does not
// end.
func (r Rig) stalled(hub *local.Hub, o *Outcome) error {
	why := cmp.Or(o.lost(), errors.New("a round of the algorithm does not end"))
	for id := range r.Workers + 1 {
		why = cmp.Or(hub.Deadlock(id), why)
	}
	return fmt.Errorf("nothing happened for %v: %w", maxSilence, why)
}

// lost returns an error that says which worker was lost last; nil if none was.
func (o *Outcome) lost() (err error) {
	for _, rec := range o.Log.Reader().rest {
		if a := rec.Alert; a != nil && a.Kind == event.AlertLostWorker && a.Level == event.LevelWarning {
			err = errors.New(a.Text)
		}
	}
	return err
}

// Verify recomputes the log.
func (r Rig) Verify(ctx context.Context, o *Outcome) (verify.Result, error) {
	return r.VerifyFrom(ctx, o, nil)
}

// VerifyFrom recomputes the log from a checkpoint.
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

// Last returns the last commit, nil if there is none.
func (o *Outcome) Last() (c *event.Commit) {
	for _, r := range o.Log.Records {
		if r.Commit != nil {
			c = r.Commit
		}
	}
	return
}

// Checkpoint returns the last checkpoint, nil if there is none.
func (o *Outcome) Checkpoint() (c *event.Checkpoint) {
	for _, r := range o.Log.Records {
		if r.Checkpoint != nil {
			c = r.Checkpoint
		}
	}
	return
}

// Hash returns the hash of the last commit, "" if there is none.
func (o *Outcome) Hash() string {
	if c := o.Last(); c != nil {
		return c.Hash
	}
	return ""
}

// Bytes returns the sums of the ledgers of all commits.
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

// Series returns the means of a series over members, by round.
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
