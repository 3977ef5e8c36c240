package tui

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/event"
	"brood/runtime/view"
	"brood/tui/cell"
)

// fleet is the state of the panels of the Fleet screen. It requests the workers of a live run while the screen is
// shown.
type fleet struct {
	now       view.Fleet // last answer
	updatedAt time.Time  // of now; zero: no answer yet
	asked     time.Time  // time of the last request
	asking    bool       // a request is pending
	answered  bool       // a request has ended, perhaps with an error
	err       error      // of the last request

	chosen int // worker under the cursor
	marked map[int]bool
	order  int  // index in fleetOrders
	turned bool // reversed

	from, to int // the link under the cursor; event.Every is all workers
	measure  int // index in linkMeasures

	process int // worker whose history the Machines screen shows, or event.Here
}

const (
	surveyEvery = 900 * time.Millisecond // less than two ticks of the clock
	surveyWait  = 3 * time.Second        // timeout of a request
)

// measured reports whether the state of workers can be requested. A recording and a run that ended only have the
// placement of members.
func (m *model) measured() bool {
	_, ok := m.opt.Source.(Surveyor)
	return ok && m.replay == nil && !m.gone()
}

// survey requests the workers if a screen shows them or the run waits for them, and the last answer is old.
func (f *fleet) survey(m *model) tea.Cmd {
	now := m.opt.Clock()
	seen := m.has(fleetPanel) || m.has(linksPanel) || m.has(machinesPanel) || m.stale()
	if !seen || !m.measured() || f.asking {
		return nil
	}
	if f.answered && (m.frozen() || now.Sub(f.asked) < surveyEvery) {
		return nil
	}
	f.asking, f.asked = true, now
	gen, ctx, src := m.feed.gen, m.reading.ctx, m.opt.Source.(Surveyor)
	return m.task(func() tea.Msg {
		ctx, cancel := context.WithTimeout(ctx, surveyWait)
		defer cancel()
		now, err := src.Fleet(ctx)
		return reply(func(m *model) tea.Cmd { f.storeSurvey(m, gen, now, err); return nil })
	})
}

// storeSurvey stores an answer, unless the feed has another generation than the request. The cursor stays on its
// worker, or in its row if the worker has left. Marks of workers that have left are removed.
func (f *fleet) storeSurvey(m *model, gen int, now view.Fleet, err error) {
	if gen != m.feed.gen {
		return
	}
	first := !f.answered
	f.asking, f.answered, f.err = false, true, err
	if err != nil || m.frozen() && !first {
		return
	}
	_, at := f.rows(m)
	f.now, f.updatedAt = now, m.opt.Clock()
	m.activity, m.activityAt = now.Doing, f.updatedAt
	if m.awaited = ""; now.Wait > len(now.Workers) {
		m.awaited = fmt.Sprintf(": %d of the %d that it begins with", len(now.Workers), now.Wait)
	}
	if rows, _ := f.rows(m); len(rows) > 0 &&
		!slices.ContainsFunc(rows, func(x fleetRow) bool { return x.ID == f.chosen }) {
		f.chosen = rows[min(at, len(rows)-1)].ID
	}
	for id := range f.marked {
		if !slices.ContainsFunc(now.Workers, func(x view.Worker) bool { return x.ID == id }) {
			delete(f.marked, id)
		}
	}
}

// pace returns the rate of the run with its unit: gradient steps; samples for an algorithm without gradient steps;
// rounds for a run without data, whose samples are meetings.
func (m *model) pace() (x float64, unit string) {
	switch r := m.shown.Rates; {
	case m.shown.Config != nil && !m.scores():
		return r.Rounds, "rounds/s"
	case r.Steps == 0 && r.Samples > 0:
		return r.Samples, "samples/s"
	default:
		return r.Steps, "steps/s"
	}
}

// fleetRow is a worker in the table.
type fleetRow struct {
	view.Worker
	measured bool    // false: only its members are known, from a plan
	over     bool    // the run has ended
	missing  int     // workers that the first round still waits for
	rate     float64 // share of [model.pace]; NaN while the run does not train
}

// workers returns all workers: those of the last answer, or else those of the plan in view.
func (f *fleet) workers(m *model) (out []fleetRow) {
	roster, measured := m.shown.Members(), m.measured() && !f.updatedAt.IsZero()
	all := f.now.Workers
	if !measured {
		all = nil
		for _, w := range roster.Workers() {
			all = append(all, view.Worker{ID: w, State: event.Hosting, Members: roster.Hosted(w)})
		}
	}
	for _, w := range all {
		x := fleetRow{Worker: w, measured: measured, over: m.gone(), missing: f.missing(m), rate: math.NaN()}
		if pace, _ := m.pace(); m.running() && m.shown.Rates.Weight > 0 && len(roster.Members) > 0 {
			x.rate = pace * float64(len(w.Members)) / float64(len(roster.Members))
		}
		out = append(out, x)
	}
	return out
}

// rows returns the workers that pass the filter, sorted, and the index of the chosen one.
func (f *fleet) rows(m *model) (rows []fleetRow, at int) {
	for _, x := range f.workers(m) {
		if _, word, _ := x.standing(); m.passes("fleet", label(x.ID), x.Name, word, x.Kernels, x.Device, x.Address,
			x.Software) {
			rows = append(rows, x)
		}
	}
	o := fleetOrders()[f.order]
	slices.SortStableFunc(rows, func(a, b fleetRow) int {
		c := o.cmp(a, b)
		if o.down != f.turned {
			c = -c
		}
		return cmp.Or(c, cmp.Compare(a.ID, b.ID))
	})
	return rows, max(0, slices.IndexFunc(rows, func(x fleetRow) bool { return x.ID == f.chosen }))
}

// fleetOrder is a way to sort the workers.
type fleetOrder struct {
	name string
	down bool // descending
	cmp  func(a, b fleetRow) int
}

func fleetOrders() []fleetOrder {
	by := func(f func(fleetRow) float64) func(a, b fleetRow) int {
		return func(a, b fleetRow) int { return cmp.Compare(f(a), f(b)) }
	}
	return []fleetOrder{
		{"worker", false, by(func(x fleetRow) float64 { return float64(x.ID) })},
		{"machine", false, func(a, b fleetRow) int { return strings.Compare(a.Name, b.Name) }},
		{"state", false, func(a, b fleetRow) int { return strings.Compare(string(a.State), string(b.State)) }},
		{"members", true, by(func(x fleetRow) float64 { return float64(len(x.Members)) })},
		{"rate", true, by(func(x fleetRow) float64 { return x.rate })},
		{"tx", true, by(func(x fleetRow) float64 { return x.Sent })},
		{"rx", true, by(func(x fleetRow) float64 { return x.Received })},
		{"RTT", true, by(func(x fleetRow) float64 { return float64(x.RTT) })},
		{"silent", true, by(func(x fleetRow) float64 { return float64(x.Silent) })},
	}
}

// standing returns the state of a worker as a glyph, a word and a colour role.
func (x fleetRow) standing() (glyph, word string, role cell.Role) {
	switch {
	case x.over:
		return "○", "hosted", cell.Faint
	case x.State == event.Cordoned && len(x.Members) == 0:
		return "□", "drained", cell.Warn
	case x.State == event.Cordoned:
		return "‖", "cordoned", cell.Warn
	case x.State == event.Leaving:
		return "→", "leaving", cell.Warn
	case x.State == event.Joining:
		return "◇", "joining", cell.Key
	case x.State == event.Idle:
		return "○", "idle", cell.Faint
	}
	return "●", "hosting", cell.Good
}

// late reports whether a worker has been silent for longer than the heartbeat period explains.
func (x fleetRow) late() bool { return x.Silent > time.Second }

func (f *fleet) move(m *model, d int) {
	if rows, at := f.rows(m); len(rows) > 0 {
		f.chosen = rows[min(max(0, at+d), len(rows)-1)].ID
	}
}

// point selects the worker under the mouse.
func (f *fleet) point(m *model, in cell.Rect, _, y int) {
	rows, chosen := f.rows(m)
	if i, ok := tableAt(in, y, len(rows), chosen, fleetFoot); ok {
		f.chosen = rows[i].ID
	}
}

// mark toggles the mark of the chosen worker and moves to the next one.
func (f *fleet) mark(m *model) {
	rows, at := f.rows(m)
	if len(rows) == 0 {
		return
	}
	if id := rows[at].ID; f.marked[id] {
		delete(f.marked, id)
	} else {
		f.marked[id] = true
	}
	f.move(m, 1)
}

// markAll marks all workers that pass the filter, or removes their marks if all are marked.
func (f *fleet) markAll(m *model) {
	rows, _ := f.rows(m)
	all := !slices.ContainsFunc(rows, func(x fleetRow) bool { return !f.marked[x.ID] })
	for _, x := range rows {
		if delete(f.marked, x.ID); !all {
			f.marked[x.ID] = true
		}
	}
}

func (f *fleet) reorder(d int) { f.order, f.turned = (f.order+d)%len(fleetOrders()), false }

// unmark removes all marks. It reports whether there were any.
func (f *fleet) unmark(*model) bool {
	some := len(f.marked) > 0
	clear(f.marked)
	return some
}

func newFleet() *fleet {
	return &fleet{marked: map[int]bool{}, from: event.Every, to: event.Every, process: event.Here}
}

const (
	fleetPanel  panelID = "fleet"
	linksPanel  panelID = "links"
	workerPanel panelID = "worker"
)

// panels returns the panels of the Fleet screen.
func (f *fleet) panels() []panel {
	const group = "workers (on their screen)"
	table, worker := f.keys()
	return append([]panel{
		{
			id: fleetPanel, title: f.title, draw: f.draw, screen: &screen{digit: 2, name: "Fleet", place: placeFleet},
			group: group, keys: table, hints: f.hints, point: f.point, back: f.unmark,
			list: &list{name: "fleet", entries: "workers"}, commands: f.commands(), poll: f.survey,
			reset: func() { *f = *newFleet() },
		},
		{
			id: linksPanel, title: f.linksTitle, draw: f.drawLinks,
			group: "links (focus on the matrix)", keys: f.linkKeys(), hints: f.hints, point: f.pointLink,
		},
		{
			id: workerPanel, title: f.workerTitle, draw: f.drawWorker,
			group: group, keys: worker, hints: f.hints,
		},
	}, f.machinePanels()...)
}
