// Package fleet has the panels of workers: their table, the matrix and the history of links, and machines.
package fleet

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
	"brood/tui/panel"
	"brood/tui/textfmt"
)

// Fleet is the state of the panels of the Fleet screen. It requests the workers of a live run while the screen is
// shown.
type Fleet struct {
	Now       view.Fleet // last answer
	updatedAt time.Time  // time of the last answer; zero: none yet
	asked     time.Time  // time of the last request
	asking    bool       // a request is pending
	Answered  bool       // a request has ended, perhaps with an error
	err       error      // of the last request

	Chosen   int // worker under the cursor
	Marked   map[int]bool
	order    int  // index in fleetOrders
	reversed bool // reversed

	From, To int // the link under the cursor; event.Every is all workers
	measure  int // index in linkMeasures

	process int // worker whose history the Machines screen shows, or event.Here
}

const (
	surveyPeriod  = 900 * time.Millisecond // less than two ticks of the clock
	SurveyTimeout = 3 * time.Second        // timeout of a request
)

// Survey requests the workers if a screen shows them or the run waits for them, and the last answer is old.
func (f *Fleet) Survey(m *panel.Host) tea.Cmd {
	now := m.Opt.Clock()
	seen := m.HasPanel(panel.Fleet) || m.HasPanel(panel.Links) || m.HasPanel(panel.Machines) || m.NeedsSurvey()
	if !seen || !m.CanSurvey() || f.asking {
		return nil
	}
	if f.Answered && (m.Frozen() || now.Sub(f.asked) < surveyPeriod) {
		return nil
	}
	f.asking, f.asked = true, now
	gen, ctx, src := m.Feed.Gen, m.Reading.Ctx, m.Opt.Source.(panel.Surveyor)
	return m.SessionJob(func() tea.Msg {
		ctx, cancel := context.WithTimeout(ctx, SurveyTimeout)
		defer cancel()
		now, err := src.Fleet(ctx)
		return panel.Reply(func(m *panel.Host) tea.Cmd { f.StoreSurvey(m, gen, now, err); return nil })
	})
}

// StoreSurvey stores an answer, unless the feed has another generation than the request. The cursor stays on its
// worker, or in its row if the worker has left. Marks of workers that have left are removed.
func (f *Fleet) StoreSurvey(m *panel.Host, gen int, now view.Fleet, err error) {
	if gen != m.Feed.Gen {
		return
	}
	first := !f.Answered
	f.asking, f.Answered, f.err = false, true, err
	if err != nil || m.Frozen() && !first {
		return
	}
	_, at := f.Rows(m)
	f.Now, f.updatedAt = now, m.Opt.Clock()
	m.Activity, m.ActivityAt = now.Doing, f.updatedAt
	if m.Awaited = ""; now.Wait > len(now.Workers) {
		m.Awaited = fmt.Sprintf(": %d of %d have joined", len(now.Workers), now.Wait)
	}
	if rows, _ := f.Rows(m); len(rows) > 0 &&
		!slices.ContainsFunc(rows, func(x fleetRow) bool { return x.ID == f.Chosen }) {
		f.Chosen = rows[min(at, len(rows)-1)].ID
	}
	for id := range f.Marked {
		if !slices.ContainsFunc(now.Workers, func(x view.Worker) bool { return x.ID == id }) {
			delete(f.Marked, id)
		}
	}
}

// runRate returns the rate of the run with its unit: gradient steps; samples for an algorithm without gradient steps;
// rounds for a run without data, whose samples are meetings.
func runRate(m *panel.Host) (x float64, unit string) {
	switch r := m.Shown.Rates; {
	case m.Shown.Config != nil && !m.HasTestSet():
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
	Rate     float64 // share of the rate of the run; NaN while the run does not train
}

// workers returns all workers: those of the last answer, or else those of the plan in view.
func (f *Fleet) workers(m *panel.Host) (out []fleetRow) {
	roster, measured := m.Shown.Members(), m.CanSurvey() && !f.updatedAt.IsZero()
	all := f.Now.Workers
	if !measured {
		all = nil
		for _, w := range roster.Workers() {
			all = append(all, view.Worker{ID: w, State: event.Hosting, Members: roster.Hosted(w)})
		}
	}
	for _, w := range all {
		x := fleetRow{Worker: w, measured: measured, over: m.Gone(), missing: f.missing(m), Rate: math.NaN()}
		if pace, _ := runRate(m); m.Running() && m.Shown.Rates.Weight > 0 && len(roster.Members) > 0 {
			x.Rate = pace * float64(len(w.Members)) / float64(len(roster.Members))
		}
		out = append(out, x)
	}
	return out
}

// Rows returns the workers that pass the filter, sorted, and the index of the chosen one.
func (f *Fleet) Rows(m *panel.Host) (Rows []fleetRow, at int) {
	for _, x := range f.workers(m) {
		if _, word, _ := x.status(); m.MatchesFilter("fleet", textfmt.WorkerLabel(x.ID), x.Name, word, x.Kernels,
			x.Device, x.Address,
			x.Software) {
			Rows = append(Rows, x)
		}
	}
	o := fleetOrders()[f.order]
	slices.SortStableFunc(Rows, func(a, b fleetRow) int {
		c := o.cmp(a, b)
		if o.down != f.reversed {
			c = -c
		}
		return cmp.Or(c, cmp.Compare(a.ID, b.ID))
	})
	return Rows, max(0, slices.IndexFunc(Rows, func(x fleetRow) bool { return x.ID == f.Chosen }))
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
		{"rate", true, by(func(x fleetRow) float64 { return x.Rate })},
		{"tx", true, by(func(x fleetRow) float64 { return x.Sent })},
		{"rx", true, by(func(x fleetRow) float64 { return x.Received })},
		{"RTT", true, by(func(x fleetRow) float64 { return float64(x.RTT) })},
		{"silent", true, by(func(x fleetRow) float64 { return float64(x.Silent) })},
	}
}

// status returns the state of a worker as a glyph, a word and a colour role.
func (x fleetRow) status() (glyph, word string, role cell.Role) {
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

func (f *Fleet) move(m *panel.Host, d int) {
	if rows, at := f.Rows(m); len(rows) > 0 {
		f.choose(m, rows[min(max(0, at+d), len(rows)-1)].ID)
	}
}

// choose selects a worker and its process.
func (f *Fleet) choose(m *panel.Host, worker int) {
	if f.Chosen, f.process = worker, event.Here; slices.Contains(m.Shown.Processes, worker) {
		f.process = worker
	}
}

// point selects the worker under the mouse.
func (f *Fleet) point(m *panel.Host, in cell.Rect, _, y int) {
	rows, chosen := f.Rows(m)
	if i, ok := panel.TableRowAt(in, y, len(rows), chosen, fleetFoot); ok {
		f.choose(m, rows[i].ID)
	}
}

// mark toggles the mark of the chosen worker and moves to the next one.
func (f *Fleet) mark(m *panel.Host) {
	rows, at := f.Rows(m)
	if len(rows) == 0 {
		return
	}
	if id := rows[at].ID; f.Marked[id] {
		delete(f.Marked, id)
	} else {
		f.Marked[id] = true
	}
	f.move(m, 1)
}

// markAll marks all workers that pass the filter, or removes their marks if all are marked.
func (f *Fleet) markAll(m *panel.Host) {
	rows, _ := f.Rows(m)
	all := !slices.ContainsFunc(rows, func(x fleetRow) bool { return !f.Marked[x.ID] })
	for _, x := range rows {
		if delete(f.Marked, x.ID); !all {
			f.Marked[x.ID] = true
		}
	}
}

func (f *Fleet) reorder(d int) { f.order, f.reversed = (f.order+d)%len(fleetOrders()), false }

// unmark removes all marks. It reports whether there were any.
func (f *Fleet) unmark(*panel.Host) bool {
	some := len(f.Marked) > 0
	clear(f.Marked)
	return some
}

// New returns the state of the panels of the Fleet screen.
func New() *Fleet {
	return &Fleet{Marked: map[int]bool{}, From: event.Every, To: event.Every, process: event.Here}
}

// Panels returns the panels of the Fleet screen.
func (f *Fleet) Panels() []panel.Panel {
	const group = "workers (on their screen)"
	table, worker := f.keys()
	return append([]panel.Panel{
		{
			ID: panel.Fleet, Title: f.title, Draw: f.draw, Screen: &panel.Screen{Digit: 2, Name: "Fleet",
				Place: f.place},
			Group:   group,
			Example: "j d: drain the second worker", Keys: table, Hints: f.hints, Point: f.point, Back: f.unmark,
			List: &panel.List{Name: "fleet", Entries: "workers"}, Commands: f.commands(), Poll: f.Survey,
			Reset: func() { *f = *New() },
		},
		{
			ID: panel.Links, Title: f.linksTitle, Draw: f.drawLinks,
			Group: "links (focus on the matrix)", Keys: f.linkKeys(), Hints: f.hints, Point: f.pointLink,
		},
		{
			ID: panel.Worker, Title: f.workerTitle, Draw: f.drawWorker,
			Group: group, Keys: worker, Hints: f.hints,
		},
	}, f.machinePanels()...)
}
