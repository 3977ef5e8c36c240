// Package coordinator is the core of a run: membership, the timeline of knobs, grants, plans and commits, as one pure
// function from state and event to effects. It holds no goroutine, no clock, no file and no socket; a shell feeds it
// events, carries its effects out in their order, and writes a record before the messages after it leave.
//
// Invariants:
//   - at most Ahead grants are outstanding, all of one epoch; committed <= granted;
//   - a commit needs Done from every worker of the roster for the same rounds, and equal digests of shared blocks;
//   - a new epoch starts with an Abort to everybody and only from a committed round;
//   - an edit is in the log before the grant that carries it leaves, and keeps its round when that grant is aborted:
//     the plan's timeline brings it again.
package coordinator

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"brood/models/engine"
	"brood/optim"
	"brood/runtime/event"
	"brood/runtime/message"
	"brood/runtime/timeline"
)

// Config is what the core knows beforehand.
type Config struct {
	Algorithm string
	Members   int
	Wait      int // workers to wait for before the first round
	Layout    engine.Layout
	Data      optim.DataSize
	Tests     int           // samples of the test set
	Scores    []event.Score // that the centre is tested by
	Metrics   []string      // of an objective, beside its fitness
	Maximises bool          // an objective, whose fitness may be any number
	Direct    int
	OnLoss    LossPolicy    // "" means reseed
	OnTrouble TroublePolicy // "" means wait
	Limit     event.Limit
	Edits     []event.Edit // in force from the first round on
	Lookup    func(string) (*optim.Algorithm, error)

	SavePeriod time.Duration // between checkpoints; 0: only at the end
	Ahead      int           // grants outstanding; 0 means 2
	GrantMax   time.Duration // longest grant; 0 means 1 s
	// bytes of blocks up to which a worker that hosts everybody keeps snapshots; 0 means KeepBytes
	Keep int64

	Resume *event.Checkpoint // go on from here instead of from the seed
	Epoch  uint32            // newest epoch in the log that is resumed
	Late   []event.Edit      // in the log, but in force in no round up to Resume: they take effect at once
	Asked  event.Pending     // accepted in the log, without a round or plan: they are obeyed first
	Cause  event.Cause       // of the first plan: start, resume, fork; "" means start
	Met    string            // how the round that it goes on from met the target of the limit; "" where it did not
	Sane   Sane              // what the log that is resumed knows to be good
}

// Coordinator is the state of the core, by what it is about: see state.go. Use Step alone.
type Coordinator struct {
	cfg Config
	life
	crew
	epochs
	knobs
	rounds
	saves
}

// New is a core that waits for workers.
func New(cfg Config) (*Coordinator, error) {
	alg, err := cfg.Lookup(cfg.Algorithm)
	if err != nil {
		return nil, err
	}
	cfg.Wait, cfg.Ahead = max(1, cfg.Wait), cmp.Or(cfg.Ahead, 2)
	cfg.GrantMax, cfg.Keep = cmp.Or(cfg.GrantMax, time.Second), cmp.Or(cfg.Keep, KeepBytes)
	cfg.OnLoss, cfg.OnTrouble, cfg.Cause = cmp.Or(cfg.OnLoss, OnLossReseed), cmp.Or(cfg.OnTrouble, OnTroubleWait), cmp.Or(cfg.Cause, event.CauseStart)
	if err := known(cfg); err != nil {
		return nil, err
	}
	c := &Coordinator{cfg: cfg,
		life:   life{phase: event.Waiting},
		crew:   crew{rests: map[int]rest{}, lost: map[optim.Member]bool{}, cuts: map[[2]int]cuts{}, keys: map[int]string{}, aways: map[string]cuts{}},
		epochs: epochs{epoch: cfg.Epoch, base: cfg.Epoch, alg: alg, misjudged: map[string]bool{}},
		knobs:  knobs{edits: slices.Clone(cfg.Edits)},
		rounds: rounds{batch: 1, most: 1, done: map[uint64]*outstanding{}},
		saves:  saves{sane: cfg.Sane}}
	members := optim.IDs(cfg.Members)
	if cp := cfg.Resume; cp != nil {
		c.checkpoint, c.committed, c.granted, c.progress, c.hash = cp, cp.Round, cp.Round, cp.Progress, cp.Hash
		c.edits = slices.Clone(cp.Timeline)
		members = cp.Roster.Members
		if c.alg, err = cfg.Lookup(cp.Algorithm); err != nil {
			return nil, err
		}
	}
	c.place(optim.Place(members, []int{0}))
	c.again(cfg.Late)
	if err := c.admits(c.alg, members, c.edits, c.committed); err != nil {
		return nil, err
	}
	if _, err = c.structural(c.alg, c.edits, c.edits); err != nil {
		return nil, err
	}
	c.asked = cfg.Asked.Last
	for _, a := range cfg.Asked.Commands {
		if err := c.stage(a); err != nil {
			c.refused = append(c.refused, err.Error())
		}
	}
	return c, nil
}

// Step takes an event to its effects. now must not go backwards.
func (c *Coordinator) Step(now time.Time, ev Event) []Effect {
	if c.over {
		return nil
	}
	c.now = now
	var fx []Effect
	switch e := ev.(type) {
	case Joined:
		fx = c.joined(e)
	case Lost:
		fx = c.loses(e)
	case Report:
		if !c.here(e.Sender()) {
			return nil // it is gone, or was put out
		}
		fx = c.hears(e.Report)
	case *Alike:
		if !c.here(e.Worker) {
			return nil
		}
		fx = c.hears(e)
	case Command:
		fx = c.command(e.Command)
	case Trouble:
		fx = c.troubled(e)
	case Note:
		fx = []Effect{c.alert(cmp.Or(e.Level, event.LevelInfo), e.Kind, e.Text, engine.None)}
	case Measured:
		return []Effect{c.record(event.Record{Machines: &event.Machines{Round: c.committed, Of: e.Of}})}
	case Interrupt:
		fx = c.end(event.Stopped, "interrupted")
	case Tick:
		if l := c.cfg.Limit.Seconds; l > 0 && c.phase == event.Training && now.Sub(c.began).Seconds() >= l {
			fx = c.end(event.Finished, "time is up")
		}
	default:
		panic(fmt.Sprintf("the core does not know the event %T", ev))
	}
	return append(fx, c.push()...)
}

// hears takes what a worker that is there says, once it is checked. Whoever says what cannot be is put out.
func (c *Coordinator) hears(r said) []Effect {
	if err := c.check(r); err != nil {
		fx := c.fence(Lost{r.Sender(), err.Error()})
		if f, ok := errors.AsType[*Fault](err); ok {
			fx = append(fx, f)
		}
		return fx
	}
	switch m := r.(type) {
	case message.Ready:
		return c.isReady(m)
	case message.Done:
		return c.isDone(&m)
	case *Alike:
		return c.isAlike(m)
	case message.Failed:
		return c.failed(m)
	case message.Saved:
		return c.saved(m)
	case message.Leaving:
		return c.leaves(m)
	default:
		panic(fmt.Sprintf("the core does not know the report %T", r))
	}
}

// Committed is the newest committed round and its hash.
func (c *Coordinator) Committed() (uint64, string) { return c.committed, c.hash }

// Phase of the run.
func (c *Coordinator) Phase() event.Phase { return c.phase }

func (c *Coordinator) record(r event.Record) Append {
	r.At = c.now.UnixNano()
	c.sane.Take(r)
	return Append{r}
}

func (c *Coordinator) alert(level event.Level, kind event.AlertKind, text string, m optim.Member) Append {
	return c.record(event.Record{Alert: &event.Alert{Round: c.committed, Level: level, Kind: kind, Text: text, Member: m}})
}

func (c *Coordinator) enter(p event.Phase, reason string) Append {
	if p == event.Training && c.began.IsZero() {
		c.began = c.now
	}
	c.phase = p
	at := c.committed
	if p == event.Paused || p == event.Training { // after the rounds that workers are doing
		at = c.granted
	}
	return c.record(event.Record{State: &event.State{Round: at, Phase: p, Reason: reason}})
}

// end asks for a last checkpoint and then the exit.
func (c *Coordinator) end(p event.Phase, reason string) []Effect {
	if c.ending == nil {
		c.ending = &Exit{Phase: p, Reason: reason}
	}
	if c.base == c.cfg.Epoch && c.plan == nil || len(c.alive) == 0 { // nothing has begun, or nobody is left to save it
		return c.exit()
	}
	return nil
}

func (c *Coordinator) exit() []Effect {
	c.over = true
	fx := []Effect{c.enter(c.ending.Phase, c.ending.Reason)}
	for _, w := range c.alive {
		fx = append(fx, Send{w, message.Stop{}})
	}
	return append(fx, *c.ending)
}

// push does whatever may be done now: grants, the next plan, a checkpoint, the end.
func (c *Coordinator) push() (fx []Effect) {
	idle := c.granted == c.committed && c.plan == nil
	// by a limit that was given late, or before a process that was killed
	if idle && c.ending == nil && c.phase == event.Training {
		switch {
		case c.reached():
			c.ending = c.limited()
		case c.cfg.Met != "" && c.committed == c.cfg.Resume.Round:
			c.ending = &Exit{Phase: event.Finished, Reason: c.cfg.Met}
		}
	}
	switch {
	case c.over || c.plan != nil || c.base == c.cfg.Epoch:
		return nil
	case c.change != nil:
		if idle && !c.now.Before(c.retry) {
			return c.reshape()
		}
		return nil
	case c.ending != nil:
		if !idle {
			return nil
		}
		fx = c.settle()
		if c.isSaved() {
			return append(fx, c.exit()...)
		}
		return append(fx, c.save()...)
	}
	if idle && c.phase != event.Training {
		fx = c.settle()
	}
	if (c.keep || idle) && (c.wantSave || c.cfg.SavePeriod > 0 && c.now.Sub(c.savedAt) >= max(c.cfg.SavePeriod, saveShare*c.saveCost) && !c.isSaved()) {
		fx = append(fx, c.save()...)
	}
	if c.phase != event.Training {
		return fx
	}
	ahead := c.cfg.Ahead
	if c.held = c.held && len(c.done) > 0; c.held || c.cfg.Limit.Target != "" || !c.keep {
		ahead = 1
	}
	for n := len(c.done); n < ahead; n++ {
		fx = append(fx, c.grant()...)
	}
	return fx
}

// reached says whether the committed rounds are all that the limit asks for.
func (c *Coordinator) reached() bool {
	return c.cfg.Limit.Reached(event.Progress{Rounds: c.committed, Epochs: c.progress.Epochs})
}

// isSaved says whether the newest checkpoint is of this very state: a plan changes it without a round.
func (c *Coordinator) isSaved() bool {
	cp := c.checkpoint
	return cp != nil && cp.Round == c.committed && cp.Hash == c.hash && cp.Epoch == c.base
}

// grant gives out the next rounds and the edits that govern them: no vote, no race.
func (c *Coordinator) grant() (fx []Effect) {
	g := message.Grant{Epoch: c.epoch, From: c.granted, To: c.granted + min(c.batch, c.most), Committed: c.committed, Limit: c.cfg.Limit, Hold: c.cfg.Limit.Target != "", Onward: !c.keep}
	if l := c.cfg.Limit.Rounds; l > 0 {
		if g.From >= l {
			return nil
		}
		g.To = min(g.To, l)
	}
	for _, e := range c.edits { // a commit at an edit's round tells where its schedule begins
		if e.At > g.From {
			g.To = min(g.To, e.At)
		}
	}
	g.Edits, c.loose = c.loose, nil
	fx = c.takeStaged(g.From, &g.Edits)
	workers := c.hosting.Workers
	o := c.spare
	if c.spare = nil; o == nil || len(o.says) != len(workers) || len(o.sums) != c.from[len(workers)] {
		o = &outstanding{says: make([]int, len(workers)), sums: make([][32]byte, c.from[len(workers)])}
	}
	c.done[g.From] = &outstanding{Grant: g, sent: c.now, says: o.says, sums: o.sums,
		sum: sum{sent: optim.Ledger{}, predicted: optim.Ledger{}, evaluation: optim.Ledger{}}}
	c.granted, c.held = g.To, g.Hold
	var order message.Order = g // one for all
	fx = slices.Grow(fx, len(workers))
	for _, w := range workers {
		fx = append(fx, Send{w, order})
	}
	return fx
}

// settle logs staged edits while no grant is there to carry them: what was accepted is in the log.
func (c *Coordinator) settle() []Effect { return c.takeStaged(c.committed, &c.loose) }

// takeStaged gives staged edits their first round and logs them.
func (c *Coordinator) takeStaged(at uint64, into *[]event.Edit) (fx []Effect) {
	for _, e := range c.staged {
		e.At, e.Expr = at, timeline.Absolute(e.Expr, at)
		if at == c.committed {
			e.Epochs, e.Steps = c.progress.Epochs, c.progress.Steps
		}
		c.edits = append(c.edits, e)
		if into != nil {
			*into = append(*into, e)
		}
		fx = append(fx, c.record(event.Record{Edit: &e}))
	}
	c.staged = nil
	return fx
}

// again makes edits whose rounds are not to be reached as they were take effect with a plan of their own, since some
// may be structural.
func (c *Coordinator) again(late []event.Edit) {
	late = slices.DeleteFunc(slices.Clone(late), func(e event.Edit) bool { return e.Algorithm != c.target().alg })
	if len(late) > 0 {
		next := c.target()
		next.edits, next.cause, next.note = append(late, next.edits...), event.CauseKnob, "edits that came after the checkpoint take effect"
		c.change = &next
	}
}
