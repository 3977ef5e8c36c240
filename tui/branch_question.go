package tui

import (
	"path/filepath"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/archive"
	"brood/runtime/event"
	"brood/tui/cell"
	"brood/tui/panel"
	"brood/tui/textfmt"
)

// branchQuestion is the dialog that asks after which round a branch starts, with the cost of each choice.
type branchQuestion struct {
	m    *model
	text string
	at   uint64 // the shown round
	set  []event.Setting
}

// branchPoint is a round to branch after.
type branchPoint struct {
	key  string
	at   uint64
	cost string // what is recomputed before the branch starts
}

func (m *model) newBranchQuestion(at uint64, set []event.Setting) *branchQuestion {
	sets := " It keeps all knobs: to try others, change them first (k)."
	if len(set) > 0 {
		sets = " It sets " + panel.SettingsText(event.Command{Set: set}) + "."
	}
	q := &branchQuestion{m: m, at: at, set: set,
		text: "Start a new run from " + archive.ShortName(filepath.Base(m.Opt.Session)) + "?" + sets}
	if m.Replay == nil && !m.Live.Over() {
		q.text += " Its parent continues unchanged."
	}
	return q
}

// where returns the choices: the shown round, the stored checkpoint before it, and the next one if that is nearer. A
// live run removes old checkpoints while the question is open.
func (q *branchQuestion) where() []branchPoint {
	at, rounds := q.at, q.m.Checkpoints
	from, next := uint64(0), slices.IndexFunc(rounds, func(r uint64) bool { return r > at })
	if next < 0 {
		next = len(rounds)
	}
	if next > 0 {
		from = rounds[next-1]
	}
	where := []branchPoint{{"y", at, q.m.recomputeText(from, at)}}
	if 0 < from && from < at {
		where = append(where, branchPoint{"c", from, q.m.recomputeText(from, from)})
	}
	if next < len(rounds) && rounds[next]-at < at-from {
		where = append(where, branchPoint{"C", rounds[next], q.m.recomputeText(rounds[next], rounds[next])})
	}
	return where
}

// recomputeText returns how many rounds a branch after round at recomputes from the checkpoint of round from, 0 for the
// start of the run, and for how long.
func (m *model) recomputeText(from, at uint64) string {
	n := at - from
	if n == 0 {
		return "a checkpoint: recomputes nothing"
	}
	text := "recomputes " + textfmt.Count(int(n), "round")
	if r := m.Live.Rates; r.Weight > 0 && r.Rounds > 0 {
		if seconds := float64(n) / r.Rounds; seconds < 1 {
			text += ", < 1 s"
		} else {
			text += ", about " + textfmt.Duration(time.Duration(min(seconds, 1e9)*float64(time.Second)))
		}
	}
	return text
}

// branchTextW is the width of the text of the question.
const branchTextW = 56

func (q *branchQuestion) Key(_ *panel.Host, name, _ string) tea.Cmd {
	where := q.where()
	if i := slices.IndexFunc(where, func(p branchPoint) bool { return p.key == name }); i >= 0 {
		q.m.Popup = nil
		return q.m.startBranch(where[i].at, q.set)
	}
	if name == "n" || name == "esc" || name == "q" {
		q.m.Popup = nil
	}
	return nil
}

// rows returns the first row of the choices, counted from the inside of the dialog.
func (q *branchQuestion) rows() int { return len(textfmt.Wrap(q.text, branchTextW)) + 1 }

func (q *branchQuestion) Draw(_ *panel.Host, g *cell.Grid) cell.Rect {
	first, where := q.rows(), q.where()
	in := panel.Dialog(g, min(g.W, branchTextW+4), min(g.H, first+len(where)+3), "branch", "")
	for i, l := range textfmt.Wrap(q.text, branchTextW) {
		g.Text(in.X+1, in.Y+i, in.W-2, cell.Plain, l)
	}
	width := 0
	for _, p := range where {
		width = max(width, len(textfmt.Grouped(p.at)))
	}
	for i, p := range where {
		y := in.Y + first + i
		g.Text(in.X+1, y, 1, cell.Key, p.key)
		x := g.Text(in.X+3, y, in.W-4, cell.Plain, "after round "+textfmt.PadLeft(textfmt.Grouped(p.at), width))
		g.Text(x+2, y, in.W-2-(x+2-in.X), cell.Faint, p.cost)
	}
	y := in.Y + first + len(where)
	g.Text(in.X+1, y, 1, cell.Key, "n")
	g.Text(in.X+3, y, in.W-4, cell.Plain, "cancel")
	return in
}

// Point handles a click on one of the choices.
func (q *branchQuestion) Point(m *panel.Host, in cell.Rect, _, y int) tea.Cmd {
	where := q.where()
	switch i := y - in.Y - q.rows(); {
	case 0 <= i && i < len(where):
		return q.Key(m, where[i].key, "")
	case i == len(where):
		return q.Key(m, "n", "")
	}
	return nil
}
