package tui

import (
	"cmp"
	"slices"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/view"
	"brood/tui/cell"
)

// panelID names a panel: the focus is one, and a layout places one. Each is a constant beside its panel.
type panelID string

// panel is a part of the workbench as a value: what it shows and all that a person can do there. Its functions close
// over a state of its own, which the model knows nothing of. id, title and draw are required; what else is nil is
// left out.
type panel struct {
	id     panelID
	title  func(*model) (title, note string)
	draw   func(m *model, g *cell.Grid, r cell.Rect) // within its border, whose inside is r
	line   func(m *model, g *cell.Grid, r cell.Rect) // in less than a border takes; nil: nothing is shown there
	screen *screen                                   // that it leads; nil: others' screens place it

	group    string                                // heading of its keys in help; panels that share keys share it
	keys     []binding                             // while it has the focus
	typing   func() *typing                        // while text is typed into it, whatever has the focus
	hints    func(*model) [][2]string              // keys that matter now; nil: those of the workbench
	point    func(m *model, r cell.Rect, x, y int) // a click at x, y on it; its inside is r
	back     func(*model) bool                     // esc: says whether there was something to take back
	list     *list                                 // what / filters and the wheel moves in
	commands []command                             // words of the command line that are about it

	export   func(*model) func(*view.View) rows         // makes the table behind it; the inner one runs beside Update
	poll     func(*model) tea.Cmd                       // at each tick of the clock, and when a screen is opened
	branched func(m *model, parent, dir string) tea.Cmd // a branch of the run that was shown has begun
	reset    func()                                     // another session is shown, and nothing of the one before may stay
}

// screen is one page of the workbench, with a panel that leads it: it has the focus at first.
type screen struct {
	digit  int
	name   string
	short  string                              // its name where all have no room; "": the same
	place  func(*model, cell.Rect) []placement // between the screen line and the key line; nil: the leading panel alone
	badge  func(*model) string                 // beside its name, of what waits there; nil or "": nothing does
	charts bool                                // of rounds: arrows move a cursor through them
	home   bool                                // it needs no run: esc leads back to it, and it is where one begins
	// what the key w puts in the place of its panels, by a name of its own, and takes away again; "": nothing
	instead string
	show    func(*model) tea.Cmd // it, or the panels again; it asks for nothing
	lead    panelID              // its panel's own id, as screens tells it
}

// list is the entries that a panel shows. Panels may share one.
type list struct {
	name    string // of its filter
	entries string // what they are
	stays   bool   // its filter, when another session is shown
	top     func() // goes to the first one, since others pass; nil: the cursor is on an entry and not in a row
}

// typing takes all keys and pasted text.
type typing struct {
	key   func(m *model, name, text string) tea.Cmd
	hints [][2]string
}

// reply is what a command of a panel came to: Update calls it, so that it may change the panel's state.
type reply func(*model) tea.Cmd

// newPanels is the registry: a further panel is a file, and a line here. Help has the groups of keys in this order.
func newPanels(m *model) []panel {
	geometry, exam, log, stage := newPlaces(), newExam(), newLogView(), &stage{}
	all := slices.Concat(
		[]panel{newLoss(exam, stage), newFitness(), newBandwidth(), newScore(), newReplicas(), newPopulation(), newTraffic(),
			newLinkPast().panel()},
		newTraits(geometry),
		geometry.panels(),
		exam.panels(),
		[]panel{stage.panel()},
		m.rail.panels(),
		[]panel{newLane().panel()},
		newAlarms(log).panels(),
		newFleet().panels(),
		[]panel{newCharts().panel()},
	)
	begin := newLaunch().panel()
	if m.opt.Library == nil { // its command says why not
		begin.keys, begin.group = nil, ""
	}
	all = append(all, begin)
	if m.opt.Library != nil { // else there are no runs to list
		all = append(all, newRuns().panels()...)
	}
	return all
}

// panel is the registered one of an id; without one it has nothing.
func (m *model) panel(id panelID) panel {
	if i := slices.IndexFunc(m.panels, func(p panel) bool { return p.id == id }); i >= 0 {
		return m.panels[i]
	}
	return panel{}
}

// typing is that of the panel which is typed into, nil for none.
func (m *model) typing() *typing {
	for _, p := range m.panels {
		if p.typing == nil {
			continue
		}
		if t := p.typing(); t != nil {
			return t
		}
	}
	return nil
}

// screens are the pages in the order of their digits; the digits between are kept for pages to come.
func (m *model) screens() (all []screen) {
	for _, p := range m.panels {
		if p.screen != nil {
			s := *p.screen
			s.lead = p.id
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b screen) int { return cmp.Compare(a.digit, b.digit) })
	return all
}

// leads says whether the screen that is shown is the panel's.
func (m *model) leads(id panelID) bool { return m.screens()[m.screen].lead == id }

// home is the number of the screen that needs no run, -1 without one.
func (m *model) home() int {
	return slices.IndexFunc(m.screens(), func(s screen) bool { return s.home })
}

// poll lets every panel ask for what it shows.
func (m *model) poll() tea.Cmd {
	var all []tea.Cmd
	for _, p := range m.panels {
		if p.poll != nil {
			all = append(all, p.poll(m))
		}
	}
	return tea.Batch(all...)
}
