package worker

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"unicode"
	"unicode/utf8"

	"brood/models/engine"
	"brood/optim"
	"brood/optim/collective"
	"brood/runtime/event"
	"brood/runtime/message"
	"brood/runtime/timeline"
)

// grant executes the granted rounds and returns their report.
func (w *Worker) grant(ctx context.Context, g message.Grant) (message.Done, error) {
	s := w.now
	t0 := w.cfg.Clock()
	for at, snap := range s.snaps {
		if at < g.Committed {
			delete(s.snaps, at)
			s.spare = append(s.spare, snap)
		}
	}
	maps.DeleteFunc(s.transcripts, func(at uint64, _ transcript) bool { return at < g.Committed })
	s.mirrors.dropBefore(g.Committed)
	if g.Onward {
		s.freeSpare()
	} else if err := s.snapshot(ctx); err != nil {
		return message.Done{}, err
	}
	s.dirty = true
	for _, e := range g.Edits {
		if err := s.time.Add(e); err != nil {
			return message.Done{}, err
		}
	}
	t1 := w.cfg.Clock()
	d := message.Done{
		Worker:     w.cfg.ID,
		Epoch:      g.Epoch,
		From:       g.From,
		Predicted:  collective.Ledger{},
		Evaluation: collective.Ledger{},
	}
	s.env.Comm.Ledger, s.env.Comm.Waited = collective.Ledger{}, 0
	before := w.overhead()
	points := &series{}
	if s.transcripts != nil {
		defer w.observe(message.OrderName{Epoch: g.Epoch, From: g.From})()
	}
	for s.round < g.To {
		w.beginRound(t0)
		held, err := w.step(ctx, g.Limit, &d, points)
		if err != nil {
			return d, fmt.Errorf("worker %d, round %d, %s: %w", w.cfg.ID, s.round, s.alg.Name, err)
		}
		if w.follow != nil {
			if err := w.callFollow(ctx); err != nil {
				return d, err
			}
		}
		if s.ended || held && g.Hold {
			break
		}
		if w.between != nil {
			w.between(ctx)
		}
	}
	if err := s.env.Engine.Wait(ctx); err != nil {
		return d, fmt.Errorf("worker %d, rounds up to %d, %s: %w", w.cfg.ID, s.round, s.alg.Name, err)
	}
	t2 := w.cfg.Clock()
	digests, bad, err := s.digests(ctx)
	if err != nil {
		return d, err
	}
	if s.transcripts != nil {
		all := w.link.End()
		w.last.With, d.Frames = all, collective.Sums(all)
		s.transcripts[g.From] = transcript{g, collective.Received(all)}
	}
	waited := int64(0)
	if s.mirrors.on() && (bad == nil || s.transcripts != nil) { // then the others wait for this one's rows
		if waited, err = w.grantMirror(ctx, &d); err != nil {
			return d, fmt.Errorf("worker %d, mirror of round %d: %w", w.cfg.ID, s.round, err)
		}
		if s.transcripts != nil {
			if d.Mirrored, err = s.mirroredDigests(ctx, s.round); err != nil {
				return d, err
			}
		}
	}
	if bad != nil {
		bad.From = g.From
		return d, &NonFiniteError{*bad, d.Frames}
	}
	s.dirty = false
	d.To, d.Ended, d.Sent, d.Digests, d.Progress = s.round, s.ended, s.env.Comm.Ledger, digests, s.progress()
	d.Points, d.Overhead, d.Notes = points.rows(), w.overhead()-before, w.notes(s.ended)
	d.Waited = s.env.Comm.Waited
	d.Nanos, d.Extra = t2-t1, t1-t0+w.cfg.Clock()-t2-waited
	return d, nil
}

// Noter is an engine that collects notes for the user about events that do not stop it.
type Noter interface{ Notes() []engine.Note }

// Ender is a Noter that holds minor notes back until it learns that the rounds have ended.
type Ender interface{ Ending() }

// notes returns the engine's notes since the last call, limited to what a report may contain. ended reports that no
// rounds follow.
func (w *Worker) notes(ended bool) (out []message.Note) {
	n, ok := w.cfg.Engine.(Noter)
	if !ok {
		return nil
	}
	if e, ok := n.(Ender); ok && ended {
		e.Ending()
	}
	for _, x := range n.Notes() {
		text := strings.Map(func(r rune) rune {
			if unicode.IsPrint(r) {
				return r
			}
			return -1
		}, strings.ToValidUTF8(x.Text, ""))
		for len(text) > message.MostNote {
			_, last := utf8.DecodeLastRuneInString(text)
			text = text[:len(text)-last]
		}
		if len(out) < message.MostNotes {
			out = append(out, message.Note{Kind: event.AlertKind(x.Kind), Text: text})
		}
	}
	return out
}

func (w *Worker) overhead() int64 {
	if w.cfg.Overhead == nil {
		return 0
	}
	return w.cfg.Overhead()
}

// targetPoints returns the fitness points as points of the series that a target is compared with.
func targetPoints(points []optim.Point) (out []optim.Point) {
	for _, p := range points {
		if p.Series == event.SeriesFitness {
			p.Series = event.SeriesJudged
			out = append(out, p)
		}
	}
	return out
}

// step executes one round, its probe and its test evaluation. held reports that it measured something that a target may
// wait for.
func (w *Worker) step(ctx context.Context, limit event.Limit, d *message.Done, points *series) (held bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	s := w.now
	before := s.progress()
	pos := timeline.Position{Round: s.round, Epochs: before.Epochs, Steps: before.Steps}
	s.time.Reach(pos)
	k := s.time.Values(pos)
	shape := s.env.Shape(k)
	s.env.Recycle()
	s.env.Deal(k)
	s.env.Probe(w.probeDue(s.round + 1))
	rep, err := s.alg.Program.Round(ctx, s.env, k, s.round)
	if err = rootCause(s.env, err); err != nil {
		return false, err
	}
	if s.env.Lead() && s.alg.Bytes != nil {
		shape.Drawn, shape.Edges = true, rep.Edges
		if w.byteRoster != nil {
			shape.Roster = *w.byteRoster
		}
		d.Predicted.Add(s.alg.Bytes(shape))
	}
	s.round++
	s.advance(rep)
	after := s.progress()
	points.add(s.round, rep.Points)
	judged := limit.Judged()
	if judged && s.measuresFitness() {
		held = rep.Evaluations > 0
		points.add(s.round, targetPoints(rep.Points))
	}
	s.ended = limit.Reached(after)
	last := s.ended && w.cfg.Evaluate != event.NoTest
	probe := w.probeDue(s.round) || w.cfg.Probe > 0 && last
	test := w.testDue(before, after) || last && len(w.cfg.Test) > 0
	if !probe && !test {
		return held, nil
	}
	return true, w.measure(ctx, k, probe, test, judged, d, points)
}

// probeDue reports whether a probe follows a round, regardless of whether the run ends with it.
func (w *Worker) probeDue(round uint64) bool {
	return w.cfg.Probe > 0 && (round%w.cfg.Probe == 0 || round == 1 && w.cfg.Evaluate != event.NoTest)
}

// rootCause returns the allocation failure of env instead of err, if there was one: tasks fail on scratch memory that
// could not be allocated.
func rootCause(env *optim.Env, err error) error {
	if full := env.Fault(); err != nil && full != nil {
		return full
	}
	return err
}

// testDue reports whether a test evaluation is due between two states of progress.
func (w *Worker) testDue(before, after event.Progress) bool {
	if len(w.cfg.Test) == 0 {
		return false
	}
	if w.cfg.Evaluate > 0 {
		return after.Rounds%w.cfg.Evaluate == 0
	}
	return int64(after.Epochs) > int64(before.Epochs)
}

// series collects the points of a grant. Some values are available only after Engine.Wait, see [optim.Point].
type series []roundPoints

// roundPoints is the points measured after a round.
type roundPoints struct {
	round  uint64
	points []optim.Point
}

func (s *series) add(round uint64, points []optim.Point) { *s = append(*s, roundPoints{round, points}) }

// rows returns the points grouped by round and series. Call it after Engine.Wait.
func (s series) rows() (out []event.Points) {
	for _, m := range s {
		for i := 0; i < len(m.points); {
			r := event.Points{Round: m.round, Series: m.points[i].Series}
			for i < len(m.points) && m.points[i].Series == r.Series {
				r.Members, r.Values = append(r.Members, m.points[i].Member), append(r.Values, m.points[i].Get())
				i++
			}
			out = append(out, r)
		}
	}
	return out
}
