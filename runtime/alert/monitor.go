// Package alert raises alerts on a run that trains badly: a loss that diverges, a population that collapses, slow
// rounds, a run that stalls. [Monitor] has the rules. It reads no clock: it uses the times of the records and of Tick.
// [Dispatcher] feeds a Monitor, calls Tick every five seconds and runs the user's command.
//
//	var m alert.Monitor
//	for _, note := range m.Take(record) { ... }
//
// Each rule has two bounds: it raises a warning beyond one and ends the warning within the other, so that a value that
// oscillates about one bound is reported once.
package alert

import (
	"fmt"
	"time"

	"brood/optim/population"
	"brood/runtime/event"
)

// Note is the message of a rule: a warning, or the end of a warning in level info.
type Note struct {
	Level event.Level
	Kind  event.AlertKind
	Text  string
}

// Bounds of the rules.
const (
	inARow       = 3    // values beyond a bound that raise a warning
	diverged     = 3    // times the minimum of the centre loss
	rise         = 0.1  // of the first loss; a smaller rise is ignored
	recovered    = 1.5  // times the minimum; below it the warning ends
	collapsed    = 1e-4 // of the greatest diversity; training alone reduces it too
	diverse      = 1e-3
	together     = 5e-3 // of the greatest spread of replicas; their cosines are then 1 to seven digits
	distinct     = 2e-2
	growing      = 10  // probes in a row with the greatest spread so far; before that replicas that start equal move apart
	worse        = 1.2 // times the median loss of the members, that of the centre
	even         = 1.1
	slow         = 8 // times the median time of a sample, or of a round without samples
	quick        = 2
	slowFor      = 5 * time.Second // least total time of the slow rounds
	usualCommits = 64              // newest commits in the median
	leastCommits = 8               // least commits for a median
	stallFor     = 60 * time.Second
	stallRounds  = 20 // median commits, at least
	stallSlowest = 3  // times the slowest commit so far, at least
)

// Rules describes each rule, by kind.
var Rules = map[event.AlertKind]string{
	event.AlertDiverged: fmt.Sprintf("the centre's loss is %d times its least, %d probes in a row", diverged, inARow),
	event.AlertCollapse: fmt.Sprintf("the diversity of members that breed is below %g %% of its greatest, or the spread "+
		"of replicas below %g %%", 100*collapsed, 100*together),
	event.AlertApart: fmt.Sprintf("the spread of replicas grows for %d probes, and the centre's loss is %g times the "+
		"median member's", growing, worse),
	event.AlertFlat: fmt.Sprintf("all candidates have the same fitness, %d rounds in a row", inARow),
	event.AlertSlow: fmt.Sprintf("a round takes %d times as long as before, for its samples, for %g s and more", slow,
		slowFor.Seconds()),
	event.AlertStall: fmt.Sprintf("no round is finished for %g s, nor for %d times the usual time", stallFor.Seconds(),
		stallRounds),
}

// Monitor has the state of the rules. The zero value is ready to use.
type Monitor struct {
	training bool
	last     int64 // Unix nanoseconds of the newest commit, or of the start of training

	loss   trip
	first  float64 // centre loss; 0: none
	best   float64 // least centre loss; 0: none
	bestAt uint64

	diversity trip
	most      float64 // greatest diversity

	replicas replicas

	evaluates bool // the algorithm evaluates candidates
	flat      flat

	pace    trip
	usual   pace
	ends    string        // text of the last alert about restarted programs
	late    time.Duration // total time of the slow commits in a row
	done    event.Progress
	slowest int64 // nanoseconds of the slowest commit

	stalled bool
}

// trip is a bound with hysteresis.
type trip struct {
	beyond int  // values beyond the bound in a row
	on     bool // the warning was raised
}

// next counts a value that is beyond the outer bound, within the inner one, or between them. It returns whether the
// warning is raised or over.
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
		m.last = r.At
	case r.Plan != nil:
		m.last = r.At
		return m.plan(r.Plan)
	case r.Edit != nil: // rounds may take another time after an edit
		return m.resetPace("a knob was changed")
	case r.Commit != nil:
		m.last, m.evaluates = r.At, r.Commit.Progress.Evaluations > 0
		return append(m.endStall(r.Commit), m.commit(r.Commit)...)
	case r.Alert != nil && r.Alert.Kind == event.AlertRestarts:
		m.ends = r.Alert.Text
	case r.Points != nil && r.Points.Series == event.SeriesCentre:
		m.replicas.measured(r.Points)
		return m.centre(r.Points)
	case r.Points != nil && r.Points.Series == population.SeriesDiversity.Name:
		return m.diverse(r.Points)
	case r.Points != nil && r.Points.Series == event.SeriesFitness:
		m.replicas.measured(r.Points)
		if m.evaluates {
			return m.flat.next(r.Points)
		}
	case r.Points != nil && r.Points.Series == event.SeriesSpread && m.most == 0: // not members that breed
		return m.replicas.next(r.Points)
	}
	return nil
}

// plan resets the state that depends on the placement, the algorithm and the parameters. A resumed run has those of its
// last round.
func (m *Monitor) plan(p *event.Plan) (out []Note) {
	out = m.resetPace("the placement of members changed")
	m.done, m.slowest = event.Progress{}, 0
	if restarts(p) {
		m.first, m.best, m.most = 0, 0, 0
		if m.flat.on {
			out = append(out, end(event.AlertFlat, "the placement of members changed: the check of equal fitness starts "+
				"again")...)
		}
		m.flat = flat{}
		if m.replicas.together.on {
			out = append(out, end(event.AlertCollapse, "the placement of members changed: the spread is compared again")...)
		}
		if m.replicas.apart.on {
			out = append(out, end(event.AlertApart, "the placement of members changed: the spread is compared again")...)
		}
		m.replicas = replicas{}
	}
	return out
}

// restarts reports whether a plan changes the parameters or the algorithm, so that rules do not compare with the values
// before it.
func restarts(p *event.Plan) bool {
	return p.From == event.Saved && p.Cause != event.CauseResume || p.OldAlg != p.Algorithm
}

// resetPace discards the usual time of a round. It ends the warning of slow rounds, with the cause.
func (m *Monitor) resetPace(why string) (out []Note) {
	if m.pace.on {
		out = end(event.AlertSlow, "%s: the usual time of a round is measured again", why)
	}
	m.usual, m.pace, m.late = pace{}, trip{}, 0
	return out
}

func (m *Monitor) centre(p *event.Points) []Note {
	x := p.Values[len(p.Values)-1]
	if x-x != 0 { // the run pauses on NaN and infinity
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
			"the loss of the centre is %.4g, %.4g times its least (%.4g after round %d): revert the last edit, or branch from "+
				"a round before the loss rose", x, x/m.best, m.best, m.bestAt)
	case over:
		return end(event.AlertDiverged, "the loss of the centre is %.4g again", x)
	}
	return nil
}

func (m *Monitor) diverse(p *event.Points) []Note {
	x, ok := meanOf(p)
	if !ok {
		return nil
	}
	m.most = max(m.most, x)
	raised, over := m.diversity.next(x < collapsed*m.most, x > diverse*m.most)
	switch {
	case raised:
		return warn(event.AlertCollapse,
			"the diversity is %.4g, %.2f %% of its greatest: the members are nearly equal, so that selection has no effect",
			x, 100*x/m.most)
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
	now := cost{round: float64(c.Nanos) / float64(c.Rounds), all: float64(c.Nanos)}
	now.each = now.round
	if work := c.Progress.Samples - before.Samples + c.Progress.Evaluations - before.Evaluations; before.Rounds > 0 &&
		c.Progress.Samples >= before.Samples && work > 0 {
		now.each = float64(c.Nanos) / float64(work)
	} else if c.Progress.Samples+c.Progress.Evaluations > 0 { // the first commit has no previous counts
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
	if raised && m.late < slowFor {
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
			text += fmt.Sprintf(", and %s are exchanged instead of %s", speed(now.rate), speed(usual.rate))
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

// Tick applies the rule for a stall at the time now, in Unix nanoseconds.
func (m *Monitor) Tick(now int64) []Note {
	limit := max(stallFor, stallSlowest*time.Duration(m.slowest))
	if usual, known := m.usual.median(); known {
		limit = max(limit, time.Duration(stallRounds*usual.all))
	}
	if silent := time.Duration(now - m.last); m.training && !m.stalled && m.last > 0 && silent > limit {
		m.stalled = true
		return warn(event.AlertStall, "no round was finished for %.0f s: look for a worker that hangs (Fleet)",
			silent.Seconds())
	}
	return nil
}

// endStall ends the warning of a stall at the first commit after it.
func (m *Monitor) endStall(c *event.Commit) []Note {
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

// speed formats a rate, in bytes a second, with three digits.
func speed(rate float64) string {
	if rate < 1e6 {
		return fmt.Sprintf("%.3g kB/s", rate/1e3)
	}
	return fmt.Sprintf("%.3g MB/s", rate/1e6)
}

// brief formats a time, in nanoseconds, with three digits.
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
