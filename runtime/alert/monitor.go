// Package alert raises alerts on a run that trains although nothing is broken: a loss that diverges, a population that
// collapses, rounds that have become slow, a run that stalls. [Monitor] holds the rules. It has no clock: time is that
// of the records and of Tick. [Dispatcher] feeds a Monitor, ticks every five seconds and runs the user's command.
//
//	var m alert.Monitor
//	for _, note := range m.Take(record) { ... }
//
// Every rule has two bounds: beyond one it raises a warning, within the other it reports that the warning is over. A
// value that oscillates about one bound is reported once.
package alert

import (
	"fmt"
	"time"

	"brood/models/engine"
	"brood/optim/population"
	"brood/runtime/event"
)

// Note is the message of a rule: a warning, or in level info that the warning is over.
type Note struct {
	Level event.Level
	Kind  event.AlertKind
	Text  string
}

// The bounds.
const (
	inARow       = 3    // values beyond a bound before it counts
	diverged     = 3    // times the least centre loss so far
	rise         = 0.1  // of the first one, at least
	recovered    = 1.5  // times the least: it is over
	collapsed    = 1e-4 // of the greatest diversity so far: training alone brings members near each other
	diverse      = 1e-3
	slow         = 8 // times the usual time of a sample, or of a round that has none
	quick        = 2
	slowFor      = 5 * time.Second // together, at least
	usualCommits = 64
	leastCommits = 8 // before anything is usual
	stallFor     = 60 * time.Second
	stallRounds  = 20 // usual commits, at least
	stallSlowest = 3  // times the slowest commit so far, at least
)

// Rules describes each rule, by kind.
var Rules = map[event.AlertKind]string{
	event.AlertDiverged: fmt.Sprintf("the centre's loss is %d times its least, %d probes in a row", diverged, inARow),
	event.AlertCollapse: fmt.Sprintf("the diversity of members that breed is below %g %% of its greatest", 100*collapsed),
	event.AlertFlat:     fmt.Sprintf("all candidates have the same fitness, %d rounds in a row", inARow),
	event.AlertSlow: fmt.Sprintf("a round takes %d times as long as before, for its samples, for %g s and more", slow,
		slowFor.Seconds()),
	event.AlertStall: fmt.Sprintf("no round is finished for %g s, nor for %d times what is usual", stallFor.Seconds(),
		stallRounds),
}

// Monitor is the state of the rules. The zero Monitor has seen nothing.
type Monitor struct {
	training bool
	heard    int64 // Unix nanoseconds of the newest commit, or of the beginning of training

	loss   trip
	first  float64 // centre loss; 0: none
	best   float64 // the least; 0: none
	bestAt uint64

	diversity trip
	most      float64

	evaluates bool // candidates are evaluated to be ranked
	flat      flat

	pace    trip
	usual   pace
	ends    string        // the last alert on programs that are restarted
	late    time.Duration // of the rounds in a row that were slow
	done    event.Progress
	slowest int64 // nanoseconds of a commit

	stalled bool
}

// trip is a bound with hysteresis.
type trip struct {
	beyond int // values in a row
	on     bool
}

// next takes a value that lies beyond the bound, or within the other, or between them. It says what has changed.
func (t *trip) next(beyond, within bool) (raised, over bool) {
	switch {
	case beyond:
		t.beyond++
	case within || !t.on:
		t.beyond = 0
	}
	switch {
	case !t.on && t.beyond >= inARow:
		t.on = true
		return true, false
	case t.on && within:
		t.on = false
		return false, true
	}
	return false, false
}

// Take applies the rules to the next record.
func (m *Monitor) Take(r event.Record) []Note {
	switch {
	case r.State != nil:
		m.training = r.State.Phase == event.Training
		m.heard = r.At
	case r.Plan != nil:
		m.heard = r.At
		return m.plan(r.Plan)
	case r.Edit != nil: // another batch or period makes other rounds usual
		return m.forget("a knob was turned")
	case r.Commit != nil:
		m.heard, m.evaluates = r.At, r.Commit.Progress.Evaluations > 0
		return append(m.goesOn(r.Commit), m.commit(r.Commit)...)
	case r.Alert != nil && r.Alert.Kind == event.AlertRestarts:
		m.ends = r.Alert.Text
	case r.Points != nil && r.Points.Series == event.SeriesCentre:
		return m.centre(r.Points)
	case r.Points != nil && r.Points.Series == population.SeriesDiversity.Name:
		return m.diverse(r.Points)
	case r.Points != nil && r.Points.Series == event.SeriesFitness && m.evaluates:
		return m.flat.next(r.Points)
	}
	return nil
}

// plan forgets what another population, algorithm or way made usual.
func (m *Monitor) plan(p *event.Plan) (out []Note) {
	out = m.forget("members are placed anew")
	m.done, m.slowest = event.Progress{}, 0
	if p.From == event.Saved || p.OldAlg != p.Algorithm {
		m.first, m.best, m.most = 0, 0, 0
		if m.flat.on {
			out = append(out, end(event.AlertFlat, "members are placed anew: whether fitness differs is found out again")...)
		}
		m.flat = flat{}
	}
	return out
}

// forget finds out again what is usual, and says why.
func (m *Monitor) forget(why string) (out []Note) {
	if m.pace.on {
		out = end(event.AlertSlow, "%s: what a round takes is found out again", why)
	}
	m.usual, m.pace, m.late = pace{}, trip{}, 0
	return out
}

func (m *Monitor) centre(p *event.Points) []Note {
	x := p.Values[len(p.Values)-1]
	if x-x != 0 { // another rule's
		return nil
	}
	if m.first == 0 {
		m.first = x
	}
	raised, over := m.loss.next(m.best > 0 && x > max(diverged*m.best, m.best+rise*m.first), m.best == 0 ||
		x <= recovered*m.best)
	if x > 0 && (m.best == 0 || x < m.best) {
		m.best, m.bestAt = x, p.Round
	}
	switch {
	case raised:
		return warn(event.AlertDiverged,
			"the loss of the centre is %.4g, %.4g times its least (%.4g after round %d): turn back what was turned last, or branch off before it rose", x, x/m.best, m.best, m.bestAt)
	case over:
		return end(event.AlertDiverged, "the loss of the centre is %.4g again", x)
	}
	return nil
}

func (m *Monitor) diverse(p *event.Points) []Note {
	sum, n := 0.0, 0.0
	for i, x := range p.Values {
		if x-x == 0 && p.Members[i] != engine.None {
			sum, n = sum+x, n+1
		}
	}
	if n == 0 {
		return nil
	}
	x := sum / n
	m.most = max(m.most, x)
	raised, over := m.diversity.next(x < collapsed*m.most, x > diverse*m.most)
	switch {
	case raised:
		return warn(event.AlertCollapse,
			"the diversity is %.4g, %.2f %% of what it was: the members are nearly one, and selection has nothing left to choose from", x, 100*x/m.most)
	case over:
		return end(event.AlertCollapse, "the diversity is %.4g again", x)
	}
	return nil
}

func (m *Monitor) commit(c *event.Commit) []Note {
	if c.Rounds == 0 || c.Nanos <= 0 {
		return nil
	}
	before := m.done
	m.done, m.slowest = c.Progress, max(m.slowest, c.Nanos)
	now := seen{round: float64(c.Nanos) / float64(c.Rounds), all: float64(c.Nanos)}
	now.each = now.round
	if work := c.Progress.Samples - before.Samples + c.Progress.Evaluations - before.Evaluations; before.Rounds > 0 &&
		c.Progress.Samples >= before.Samples && work > 0 {
		now.each = float64(c.Nanos) / float64(work)
	} else if c.Progress.Samples+c.Progress.Evaluations > 0 { // nobody knows yet how many
		return nil
	}
	for _, n := range c.Sent {
		now.bytes += n
	}
	now.rate = float64(now.bytes) / (float64(c.Nanos) / 1e9)
	usual, known := m.usual.median()
	beyond := known && now.each > slow*usual.each
	if m.late += time.Duration(c.Nanos); !beyond {
		m.late = 0
	}
	row := m.pace.beyond
	raised, over := m.pace.next(beyond, known && now.each < quick*usual.each)
	if raised && m.late < slowFor { // not yet
		m.pace, raised = trip{beyond: row}, false
	}
	if !beyond {
		m.usual.add(now)
	}
	switch {
	case raised:
		text := fmt.Sprintf("a round takes %s, %.4g times as long as before (%s)", brief(now.round), now.each/usual.each,
			brief(now.round*usual.each/now.each))
		if now.bytes > 0 {
			text += fmt.Sprintf(", and %s are exchanged in place of %s", speed(now.rate), speed(usual.rate))
		}
		if m.ends != "" {
			return warn(event.AlertSlow, "%s: a program that ends delays its worker (%s)", text, m.ends)
		}
		return warn(event.AlertSlow, "%s: look for a slow worker or link (Fleet, Network)", text)
	case over:
		return end(event.AlertSlow, "a round takes %s again", brief(now.round))
	}
	return nil
}

// Tick is told the time, in Unix nanoseconds.
func (m *Monitor) Tick(now int64) []Note {
	limit := max(stallFor, stallSlowest*time.Duration(m.slowest))
	if usual, known := m.usual.median(); known {
		limit = max(limit, time.Duration(stallRounds*usual.all))
	}
	if silent := time.Duration(now - m.heard); m.training && !m.stalled && m.heard > 0 && silent > limit {
		m.stalled = true
		return warn(event.AlertStall, "no round was finished for %.0f s: look for a worker that hangs (Fleet)",
			silent.Seconds())
	}
	return nil
}

// goesOn ends a stall.
func (m *Monitor) goesOn(c *event.Commit) []Note {
	if !m.stalled {
		return nil
	}
	m.stalled = false
	return end(event.AlertStall, "rounds are finished again, up to %d", c.To)
}

func warn(kind event.AlertKind, text string, args ...any) []Note {
	return []Note{{event.LevelWarning, kind, fmt.Sprintf(text, args...)}}
}

func end(kind event.AlertKind, text string, args ...any) []Note {
	return []Note{{event.LevelInfo, kind, fmt.Sprintf(text, args...)}}
}

// speed is a rate of bytes with three digits.
func speed(rate float64) string {
	if rate < 1e6 {
		return fmt.Sprintf("%.3g kB/s", rate/1e3)
	}
	return fmt.Sprintf("%.3g MB/s", rate/1e6)
}

// brief is a time in nanoseconds with three digits.
func brief(nanos float64) string {
	d := time.Duration(nanos)
	for _, to := range []time.Duration{time.Second, time.Millisecond, time.Microsecond} {
		if d >= 100*to {
			return d.Round(to).String()
		}
		if d >= to {
			return d.Round(to / 100).String()
		}
	}
	return d.String()
}
