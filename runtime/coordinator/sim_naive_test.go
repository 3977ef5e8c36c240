package coordinator

import (
	"fmt"
	"math"
	"slices"

	"brood/models/engine"
	"brood/optim"
	"brood/optim/collective"
	"brood/runtime/event"
	"brood/runtime/message"
	"brood/runtime/timeline"
)

// naive executes the log alone, in the simplest way: all members in one place, the knobs of a round looked up in the
// list of all edits, the position of each round stored. Its state must match every commit.
type naive struct {
	cfg     Config
	alg     *optim.Algorithm
	roster  collective.Roster
	epoch   uint32
	kept    hash // blocks of this epoch
	state   symbols
	round   uint64
	alive   bool
	edits   []event.Edit                 // in effect or for later rounds
	planned []event.Edit                 // of the newest plan
	where   map[uint64]timeline.Position // of the rounds that led to the current one
	past    map[meeting]symbols          // states by epoch and round
	saved   []*event.Checkpoint
	parsed  map[string]timeline.Schedule
	shapes  map[hash]hash
}

func newNaive(cfg Config) *naive {
	return &naive{
		cfg:    cfg,
		where:  map[uint64]timeline.Position{},
		past:   map[meeting]symbols{},
		parsed: map[string]timeline.Schedule{},
		shapes: map[hash]hash{},
	}
}

func (t *naive) record(r event.Record) error {
	switch {
	case r.Plan != nil:
		return t.plan(*r.Plan)
	case r.Edit != nil:
		t.edits = append(t.edits, *r.Edit)
	case r.Commit != nil:
		return t.commit(*r.Commit)
	case r.Checkpoint != nil:
		cp := *r.Checkpoint
		if _, ok := t.past[meeting{epoch: cp.Epoch, from: cp.Round}]; !ok {
			return fmt.Errorf("round %d was never committed in epoch %d", cp.Round, cp.Epoch)
		}
		t.saved = append(t.saved, &cp)
	}
	return nil
}

func (t *naive) plan(p event.Plan) error {
	alg, err := t.cfg.Lookup(p.Algorithm)
	if err != nil {
		return err
	}
	switch p.From {
	case event.Fresh:
		t.state = freshSymbols(p.Algorithm, p.New.Members)
	case event.Saved:
		cp := checkpointAt(t.saved, p)
		if cp == nil {
			return fmt.Errorf("the log has no checkpoint of round %d", p.At)
		}
		t.state = t.past[meeting{epoch: cp.Epoch, from: cp.Round}].clone()
	default:
		if !t.alive || p.At != t.round || p.OldAlg != t.alg.Name || !slices.Equal(p.Old.Members, t.roster.Members) {
			return fmt.Errorf("it starts from %d members of %s at round %d, the log has %d of %s at round %d",
				len(p.Old.Members), p.OldAlg, p.At, len(t.roster.Members), t.alg.Name, t.round)
		}
		left := t.state.clone()
		for _, m := range p.Lost {
			delete(left.rows, m)
		}
		t.state = carry(left, t.blocks(p.OldAlg, p.Timeline, p.At), t.blocks(p.Algorithm, p.Timeline, p.At), p.New.Members)
	}
	t.where[p.At] = timeline.Position{Round: p.At, Epochs: t.state.prog.Epochs, Steps: t.state.prog.Steps}
	t.alg, t.roster, t.round, t.alive, t.edits = alg, p.New, p.At, true, slices.Clone(p.Timeline)
	t.kept, t.planned = t.blocks(p.Algorithm, p.Timeline, p.At), p.Timeline
	t.past[meeting{epoch: p.Epoch, from: p.At}] = t.state.clone()
	t.epoch = p.Epoch
	return nil
}

func (t *naive) commit(c event.Commit) error {
	if !t.alive || c.To <= t.round || c.Rounds != c.To-t.round {
		return fmt.Errorf("%d rounds to %d after round %d", c.Rounds, c.To, t.round)
	}
	for t.round < c.To {
		t.where[t.round] = timeline.Position{Round: t.round, Epochs: t.state.prog.Epochs, Steps: t.state.prog.Steps}
		v := t.values(t.alg, t.edits, t.round)
		if err := CheckShape(t.alg, optim.Shape{
			Roster: t.roster,
			Layout: t.cfg.Layout,
			K:      v,
			Direct: t.cfg.Direct,
			Data:   t.cfg.Data,
		}); err != nil {
			return fmt.Errorf("round %d has a shape that the algorithm rejects: %w", t.round, err)
		}
		if t.shape(t.alg, v) != t.kept {
			return fmt.Errorf("round %d needs other blocks than its epoch has", t.round)
		}
		t.state.advance(t.alg, v, t.roster.Members)
		t.round++
	}
	t.where[t.round] = timeline.Position{Round: t.round, Epochs: t.state.prog.Epochs, Steps: t.state.prog.Steps}
	if got := message.Root(message.DigestsOf(t.state.digests())); got != c.Hash {
		return fmt.Errorf("its hash is %.20s, the log alone gives %.20s", c.Hash, got)
	}
	if c.Progress != t.state.prog {
		return fmt.Errorf("its progress is %+v, the log alone gives %+v", c.Progress, t.state.prog)
	}
	t.past[meeting{epoch: t.epoch, from: t.round}] = t.state.clone()
	return nil
}

// values returns the knob values of a round: of several edits at or before the round, the last one in the list is in
// effect.
func (t *naive) values(alg *optim.Algorithm, edits []event.Edit, round uint64) optim.Values {
	set := map[string]float64{}
	for _, k := range alg.Knobs {
		for _, e := range edits {
			if e.Algorithm != alg.Name || e.Knob != k.Name || e.At > round {
				continue
			}
			s, ok := t.parsed[alg.Name+k.Name+"="+e.Expr]
			if !ok {
				s, _ = timeline.Parse(k, e.Expr)
				t.parsed[alg.Name+k.Name+"="+e.Expr] = s
			}
			at, now := t.where[e.At], t.where[round]
			at.Round, now.Round = e.At, round
			x := s.At(now, at)
			if k.Integer {
				x = math.Round(x)
			}
			lo, hi := k.Bounds()
			set[k.Name] = min(max(x, lo), hi)
		}
	}
	return alg.Values(set)
}

// blocks returns a hash of the blocks that an algorithm has at a round.
func (t *naive) blocks(alg string, edits []event.Edit, round uint64) hash {
	a, err := t.cfg.Lookup(alg)
	if err != nil {
		return 0
	}
	return t.shape(a, t.values(a, edits, round))
}

func (t *naive) shape(a *optim.Algorithm, v optim.Values) hash {
	key := mixText(0, a.Name)
	for _, k := range a.Knobs {
		key = mix(key, math.Float64bits(v.Get(k.Name)))
	}
	h, ok := t.shapes[key]
	if !ok {
		h = mixText(0, a.Name)
		for _, b := range a.Blocks(v, t.cfg.Layout) {
			if b.Cols > 0 {
				h = mix(mixText(h, b.Name), uint64(b.Cols), uint64(b.Type))
			}
		}
		t.shapes[key] = h
	}
	return h
}

var simLayout = engine.Layout{Params: 10, Stats: 2}
