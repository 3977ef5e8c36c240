// Package coordinator is the core of a run: membership, the timeline of knobs, grants, plans and commits. It is a
// deterministic state machine, [Coordinator.Step], from an event to effects, and has no goroutines, clock, files or
// sockets. A shell feeds it events, carries out its effects in order, and writes a record to the log before it sends
// the messages after it.
//
// Terms: a grant lets workers execute the next rounds; a commit makes them final; a plan starts a membership epoch,
// with another roster, algorithm or blocks.
//
// Invariants:
//   - at most Ahead grants are outstanding, all of one epoch; committed <= granted;
//   - a commit needs Done from every worker of the roster for the same rounds, and equal digests of shared blocks;
//   - a new epoch starts with an Abort to all workers, and only from a committed round;
//   - an edit is in the log before the grant that carries it is sent. It keeps its round if that grant is aborted: the
//     plan's timeline contains it.
package coordinator

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"brood/models/engine"
	"brood/optim"
	"brood/optim/collective"
	"brood/runtime/event"
	"brood/runtime/message"
	"brood/runtime/timeline"
)

// Config is the input of a core: the settings of the run and, if it resumes, what its log contains.
type Config struct {
	Algorithm  string
	Members    int
	Wait       int // number of workers to wait for before the first round
	MinWorkers int // no rounds are granted while fewer workers can host members
	Layout     engine.Layout
	Data       optim.DataSize
	Tests      int           // samples in the test set; 0: none
	Validation int           // validation samples that are scored with the test set; 0: none
	Scores     []event.Score // metrics of the test set that the centre is scored by
	Metrics    []string      // names of an objective's metrics, other than its fitness
	Maximises  bool          // an objective is maximized: its fitness may be any number
	Direct     int
	Audit      float64       // share of the grants of which a worker's part is executed again by another one
	Secret     uint64        // by which audits are chosen: unknown to workers
	OnLoss     LossPolicy    // "" means reseed
	OnTrouble  TroublePolicy // "" means wait
	Limit      event.Limit
	Edits      []event.Edit // in effect from the first round
	Lookup     func(string) (*optim.Algorithm, error)

	SavePeriod time.Duration // between checkpoints; 0: only at the end of the run; see also SaveByCost
	Ahead      int           // maximum number of outstanding grants; 0 means 2
	GrantMax   time.Duration // target for the longest grant; 0 means 1 s
	// maximum bytes of blocks at which a worker that hosts all members takes snapshots; 0 means KeepBytes
	Keep int64

	Resume   *event.Checkpoint // resume from this checkpoint instead of from the seed
	Reattach *Reattach         // continue from workers that hold the state of Resume; nil: from its files
	Epoch    uint32            // newest epoch in the log that is resumed
	Late     []event.Edit      // in the log, but not in effect at Resume's round: they take effect at once
	Asked    event.Pending     // commands accepted in the log without a round or plan: they are applied first
	Cause    event.Cause       // cause of the first plan: start, resume or fork; "" means start
	Met      string            // how the round of Resume met the target of the limit; "" if it did not
	LastGood LastGood          // the last good state, computed from the log that is resumed
	Faults   FaultRate         // the time between faults, computed from the same log
	Losses   Losses            // validation losses, computed from the same log
}

// Coordinator is the state of the core; see state.go for its parts. It is not safe for concurrent use. The shell
// changes it through Step alone.
type Coordinator struct {
	cfg Config
	life
	membership
	epochs
	knobs
	rounds
	saves
	suspicion
	losses   Losses // by which the patience of the limit is judged
	reattach reattachment
}

// New returns a core that waits for workers. It fails if the algorithm, a policy, the population or an edit is invalid.
func New(cfg Config) (*Coordinator, error) {
	alg, err := cfg.Lookup(cfg.Algorithm)
	if err != nil {
		return nil, err
	}
	cfg.Wait, cfg.Ahead = max(1, cfg.Wait, cfg.MinWorkers), cmp.Or(cfg.Ahead, 2)
	cfg.GrantMax, cfg.Keep = cmp.Or(cfg.GrantMax, time.Second), cmp.Or(cfg.Keep, KeepBytes)
	cfg.OnLoss, cfg.OnTrouble = cmp.Or(cfg.OnLoss, OnLossReseed), cmp.Or(cfg.OnTrouble, OnTroubleWait)
	cfg.Cause = cmp.Or(cfg.Cause, event.CauseStart)
	if err := validatePolicies(cfg); err != nil {
		return nil, err
	}
	c := &Coordinator{
		cfg:  cfg,
		life: life{phase: event.Waiting},
		membership: membership{
			excluded:  map[int]exclusion{},
			lost:      map[engine.Member]bool{},
			breaks:    map[[2]int]breaks{},
			keys:      map[int]string{},
			machines:  map[int]string{},
			evictions: map[string]breaks{},
		},
		epochs: epochs{epoch: cfg.Epoch, base: cfg.Epoch, alg: alg, bytesWarned: map[string]bool{}},
		knobs:  knobs{edits: slices.Clone(cfg.Edits)},
		rounds: rounds{batch: 1, maxRounds: 1, done: map[uint64]*outstanding{}},
		saves:  saves{lastGood: cfg.LastGood, faults: cfg.Faults},
		losses: Losses{slices.Clone(cfg.Losses.all)},
	}
	members := collective.IDs(cfg.Members)
	if cp := cfg.Resume; cp != nil {
		c.checkpoint, c.committed, c.granted, c.progress, c.hash = cp, cp.Round, cp.Round, cp.Progress, cp.Hash
		c.edits = slices.Clone(cp.Timeline)
		members = cp.Roster.Members
		if c.alg, err = cfg.Lookup(cp.Algorithm); err != nil {
			return nil, err
		}
	}
	c.setRoster(collective.Place(members, []int{0}))
	if cfg.Reattach != nil {
		c.awaitRows(cfg.Reattach)
	}
	c.restage(cfg.Late)
	if err := c.validateShape(c.alg, members, c.edits, c.committed); err != nil {
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

// Step applies an event and returns the effects, in the order in which the shell must carry them out. now must not go
// backwards. After the exit Step ignores every event.
func (c *Coordinator) Step(now time.Time, ev Event) []Effect {
	if c.over {
		return nil
	}
	c.now = now
	var fx []Effect
	switch e := ev.(type) {
	case Joined:
		fx = c.handleJoined(e)
	case Lost:
		fx = c.removeLost(e)
	case Report:
		if !c.here(e.Sender()) {
			return nil // its worker left or was evicted
		}
		fx = c.handleReport(e.Report)
	case Command:
		fx = c.command(e.Command)
	case Trouble:
		fx = c.handleTrouble(e)
	case Note:
		fx = []Effect{c.alert(cmp.Or(e.Level, event.LevelInfo), e.Kind, e.Text, engine.None)}
	case Recomputed:
		fx = c.handleRecomputed(e)
	case Measured:
		return []Effect{c.record(event.Record{Machines: &event.Machines{Round: c.committed, Of: e.Of}})}
	case Interrupt:
		fx = c.end(event.Stopped, "interrupted")
	case Tick:
		if l := c.cfg.Limit.Seconds; l > 0 && c.phase == event.Training &&
			(c.trained+now.Sub(c.since)).Seconds() >= l {
			fx = c.end(event.Finished, "time is up")
		}
		fx = append(fx, c.reattachTick()...)
		fx = append(fx, c.auditTick()...)
	default:
		panic(fmt.Sprintf("the core does not know the event %T", ev))
	}
	return append(fx, c.advance()...)
}

// handleReport checks and applies a report of a worker that is present. It evicts a worker whose report is invalid.
func (c *Coordinator) handleReport(r message.Report) []Effect {
	if err := c.check(r); err != nil {
		fx := c.evict(Lost{r.Sender(), err.Error()})
		if f, ok := errors.AsType[*Fault](err); ok {
			fx = append(fx, f)
		}
		return fx
	}
	switch m := r.(type) {
	case message.Ready:
		return c.handleReady(m)
	case message.Done:
		return c.handleDone(&m)
	case message.Failed:
		return c.handleFailed(m)
	case message.Saved:
		return c.handleSaved(m)
	case message.Leaving:
		return c.handleLeaving(m)
	case message.Audited:
		return c.handleAudited(m)
	default:
		panic(fmt.Sprintf("the core does not know the report %T", r))
	}
}

// Committed returns the newest committed round and the hash of its state.
func (c *Coordinator) Committed() (uint64, string) { return c.committed, c.hash }

// Phase returns the phase of the run.
func (c *Coordinator) Phase() event.Phase { return c.phase }

// record returns the effect that appends r to the log, stamped with the current time.
func (c *Coordinator) record(r event.Record) Append {
	r.At = c.now.UnixNano()
	c.lastGood.Take(r)
	c.faults.Take(r)
	c.losses.Take(r)
	return Append{r}
}

func (c *Coordinator) alert(level event.Level, kind event.AlertKind, text string, m engine.Member) Append {
	return c.record(event.Record{Alert: &event.Alert{Round: c.committed, Level: level, Kind: kind, Text: text, Member: m}})
}

// enter changes the phase and records it.
func (c *Coordinator) enter(p event.Phase, reason string) Append {
	if c.phase == event.Training {
		c.trained += c.now.Sub(c.since)
	}
	if p == event.Training {
		c.since = c.now
	}
	c.phase = p
	at := c.committed
	if !p.Over() { // the workers still execute the granted rounds
		at = c.granted
	}
	return c.record(event.Record{State: &event.State{Round: at, Phase: p, Reason: reason}})
}

// end asks for a last checkpoint and then the exit. Without workers, or before the first plan, the run exits at once.
func (c *Coordinator) end(p event.Phase, reason string) []Effect {
	if c.ending == nil {
		c.ending = &Exit{Phase: p, Reason: reason}
	}
	if c.base == c.cfg.Epoch && c.plan == nil || len(c.alive) == 0 { // nothing has begun, or no worker is left to save it
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

// advance does whatever is possible now: grants, the next plan, a checkpoint, or the exit.
func (c *Coordinator) advance() (fx []Effect) {
	idle := c.granted == c.committed && c.plan == nil
	// the limit was lowered, or was reached before the previous process was killed
	if idle && c.ending == nil && c.phase == event.Training {
		switch {
		case c.reached():
			c.ending = c.limited()
		case c.cfg.Met != "" && c.committed == c.cfg.Resume.Round:
			c.ending = &Exit{Phase: event.Finished, Reason: c.cfg.Met}
		default:
			c.ending = c.stalled()
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
	if c.phase == event.Training && c.short() {
		fx = c.awaitMore()
	}
	if idle && c.phase != event.Training {
		fx = append(fx, c.settle()...)
	}
	due := c.cfg.SavePeriod != 0 && c.now.Sub(c.savedAt) >= c.savePeriod() && !c.isSaved()
	if (c.snapshots || idle) && (c.wantSave || due) {
		fx = append(fx, c.save()...)
	}
	if c.phase != event.Training {
		return fx
	}
	ahead := c.cfg.Ahead
	if c.held = c.held && len(c.done) > 0; c.oneByOne || c.held || c.cfg.Limit.Measured() || !c.snapshots {
		ahead = 1
	}
	for n := len(c.done); n < ahead; n++ {
		fx = append(fx, c.grant()...)
	}
	return fx
}

// reached reports whether the committed rounds reach the limit of rounds or epochs.
func (c *Coordinator) reached() bool {
	return c.cfg.Limit.Reached(event.Progress{Rounds: c.committed, Epochs: c.progress.Epochs})
}

// isSaved reports whether the newest checkpoint holds the current state. A plan changes the state without a round, so
// the epoch is compared too.
func (c *Coordinator) isSaved() bool {
	cp := c.checkpoint
	return cp != nil && cp.Round == c.committed && cp.Hash == c.hash && cp.Epoch == c.base
}

// grant sends the next rounds, and the edits that take effect with them, to all workers that host members.
func (c *Coordinator) grant() (fx []Effect) {
	g := message.Grant{
		Epoch:     c.epoch,
		From:      c.granted,
		To:        c.granted + min(c.batch, c.maxRounds),
		Committed: c.committed,
		Limit:     c.cfg.Limit,
		Hold:      c.cfg.Limit.Measured(),
		Onward:    !c.snapshots,
	}
	if c.oneByOne {
		g.To = g.From + 1
	}
	if l := c.cfg.Limit.Rounds; l > 0 {
		if g.From >= l {
			return nil
		}
		g.To = min(g.To, l)
	}
	for _, e := range c.edits { // a schedule needs the progress of the commit at its first round
		if e.At > g.From {
			g.To = min(g.To, e.At)
		}
	}
	g.Edits, c.loose = c.loose, nil
	fx = c.takeStaged(g.From, &g.Edits)
	workers := c.hosting.Workers
	o := c.spare
	if c.spare = nil; o == nil || len(o.claimAt) != len(workers) || len(o.sums) != c.from[len(workers)] {
		o = &outstanding{claimAt: make([]int, len(workers)), sums: make([][32]byte, c.from[len(workers)])}
	}
	c.done[g.From] = &outstanding{Grant: g, sent: c.now, claimAt: o.claimAt, sums: o.sums,
		sum: sum{sent: collective.Ledger{}, predicted: collective.Ledger{}, evaluation: collective.Ledger{}}}
	c.granted, c.held = g.To, g.Hold
	var order message.Order = g // converted to the interface once for all workers
	fx = slices.Grow(fx, len(workers))
	for _, w := range workers {
		fx = append(fx, Send{w, order})
	}
	return fx
}

// settle logs the staged edits while no grant is being sent, so that every accepted edit is in the log.
func (c *Coordinator) settle() []Effect { return c.takeStaged(c.committed, &c.loose) }

// takeStaged assigns the staged edits their first round, logs them and appends them to into, unless it is nil.
func (c *Coordinator) takeStaged(at uint64, into *[]event.Edit) (fx []Effect) {
	for _, e := range c.staged {
		e = timeline.Begin(e, at)
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

// restage schedules edits that cannot take effect at their logged rounds for a separate plan, since some may be
// structural. Edits of another algorithm are dropped.
func (c *Coordinator) restage(late []event.Edit) {
	late = slices.DeleteFunc(slices.Clone(late), func(e event.Edit) bool { return e.Algorithm != c.target().alg })
	if len(late) > 0 {
		next := c.target()
		next.edits = append(late, next.edits...)
		next.cause, next.note = event.CauseKnob, "edits that came after the checkpoint take effect"
		c.change = &next
	}
}
