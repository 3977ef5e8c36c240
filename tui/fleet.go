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

// fleet is the state of the Fleet screen's panels. A live run is asked for its workers while the screen is shown.
type fleet struct {
	now       view.Fleet // as it was told last
	updatedAt time.Time  // when; zero: never
	asked     time.Time
	asking    bool
	answered  bool  // once at least, if only by an error
	err       error // of the last question

	chosen int // worker
	marked map[int]bool
	order  int  // of fleetOrders
	turned bool // the other way round

	from, to int // the link under the cursor; event.Every is all of them
	measure  int // of linkMeasures

	process int // whose history the Machines screen shows: a worker, or event.Here
}

const (
	surveyEvery = 900 * time.Millisecond // less than two ticks of the clock
	surveyWait  = 3 * time.Second        // for the answer
)

// measured says whether there are workers to ask: a recording and a run that ended tell only who hosted what.
func (m *model) measured() bool {
	_, ok := m.opt.Source.(Surveyor)
	return ok && m.replay == nil && !m.gone()
}

// survey asks for the workers when their screen is shown, or the run waits for them, and what is known is old.
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

// surveyed takes the answer to a question that was asked in a generation of the feed. The cursor stays on its worker,
// or in its row when that has gone; marks of those that have gone go too.
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

// pace is what the run does in a second, and of what: gradient steps; samples, of a strategy that takes none; rounds,
// of a run without data, whose samples are meetings.
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
	measured bool    // else only what a plan says is known
	over     bool    // the run has ended
	missing  int     // workers that the first round still waits for
	rate     float64 // of what the run is measured by, see [model.pace]; NaN while the run does not train
}

// workers are all there are: as measured, else as the plan in view has it.
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

// rows are the workers that pass the filter, in their order, and which of them is chosen.
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
	down bool // the greatest first
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

// standing is a worker's state as a glyph, a word and a role.
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

// late says whether a worker is silent for longer than heartbeats explain.
func (x fleetRow) late() bool { return x.Silent > time.Second }

func (f *fleet) move(m *model, d int) {
	if rows, at := f.rows(m); len(rows) > 0 {
		f.chosen = rows[min(max(0, at+d), len(rows)-1)].ID
	}
}

// point chooses the worker under the mouse.
func (f *fleet) point(m *model, in cell.Rect, _, y int) {
	rows, chosen := f.rows(m)
	if i, ok := tableAt(in, y, len(rows), chosen, fleetFoot); ok {
		f.chosen = rows[i].ID
	}
}

// mark turns the chosen worker's mark over and goes on to the next.
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

// markAll marks all that pass the filter, or none where all are marked.
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

// unmark takes all marks away, if there are any.
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

// panels are those of the Fleet screen.
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
