// Package alerts has the panels of events, alerts and the log.
package alerts

import (
	"fmt"
	"slices"
	"time"

	"brood/runtime/alert"
	"brood/runtime/event"
	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/panel"
	"brood/tui/textfmt"
)

// alertList is the state of the Alerts screen: the record of the selected alert; 0 selects the newest.
type alertList struct {
	at  view.Position
	log *logView
}

// NewAlertList returns the panels of the Alerts screen.
func NewAlertList() []panel.Panel {
	a := &alertList{log: newLogView()}
	move := panel.Steps(a.move)
	const group = "alerts (on their screen)"
	hints := func(*panel.Host) [][2]string {
		return [][2]string{{"↑↓", "alert"}, {"x", "acknowledge all"}, {"/", "filter"}, {"w", "log"}}
	}
	keys := []panel.Binding{
		{Keys: []string{"j", "down"}, Title: "older", Do: move(1)},
		{Keys: []string{"up"}, Title: "newer", Do: move(-1)},
		{Keys: []string{"g", "home"}, Title: "newest", Do: move(-1 << 30)},
		{Keys: []string{"G", "end"}, Title: "oldest", Do: move(1 << 30)},
		{Keys: []string{"w"}, Title: "log of the run and its processes", Do: a.log.turn},
	}
	return []panel.Panel{
		{
			ID: panel.Alerts, Title: a.title, Draw: a.draw, Export: panel.ViewExport(alertRows), Hints: hints, Group: group,
			Example: "j w: the log at an older alert",
			Screen: &panel.Screen{
				Digit:   8,
				Name:    "Alerts",
				Place:   a.log.place,
				Badge:   alertBadge,
				Charts:  true,
				Instead: "Log",
				Show:    a.log.Toggle,
			},
			Reset: func() { a.at = 0 },
			List:  &panel.List{Name: "alerts", Entries: "alerts", Top: func() { a.at = 0 }},
			Keys:  keys,
			Point: func(m *panel.Host, r cell.Rect, _, y int) {
				all := a.all(m)
				if i, ok := panel.TableRowAt(r, y, len(all), a.index(all), a.foot(r, all)); ok {
					a.at = all[i].At
				}
			},
		},
		{ID: panel.AlertRules, Title: func(*panel.Host) (string, string) { return "alert rules", "" },
			Draw: drawAlertRules, Hints: hints,
			Group: group, Keys: keys},
		a.log.panel(),
	}
}

// alertBadge returns the number of unacknowledged alerts as the badge of the screen.
func alertBadge(m *panel.Host) string {
	if n := m.AlertCount(); n > 0 {
		return fmt.Sprintf("!%d", n)
	}
	return ""
}

// all returns the alerts that pass the filter, the newest first. It skips informational entries, which only report that
// another alert is resolved.
func (a *alertList) all(m *panel.Host) (out []view.Entry) {
	for _, e := range slices.Backward(m.Shown.Lane) {
		if e.Kind == "alert" && e.Level != event.LevelInfo &&
			m.MatchesFilter("alerts", string(e.Level), string(e.Alert), e.Text) {
			out = append(out, e)
		}
	}
	return out
}

// index returns the index of the cursor; that of the newest if the selected alert is no longer among the events.
func (a *alertList) index(all []view.Entry) int {
	return max(0, slices.IndexFunc(all, func(e view.Entry) bool { return e.At == a.at }))
}

func (a *alertList) move(m *panel.Host, d int) {
	if all := a.all(m); len(all) > 0 {
		a.at = all[min(max(a.index(all)+d, 0), len(all)-1)].At
	}
}

func (a *alertList) title(m *panel.Host) (string, string) {
	return "alerts", m.FilterNote("alerts",
		fmt.Sprintf("%s, %d unacknowledged", textfmt.Count(len(a.all(m)), "alert"), m.AlertCount()))
}

// alertOutcome returns the state of an alert as a word and a colour role.
func alertOutcome(m *panel.Host, e view.Entry) (text string, role cell.Role) {
	switch {
	case e.Answered:
		return "resolved", cell.Faint
	case !m.Due(e):
		return "acked", cell.Faint
	case e.Level == event.LevelError:
		return "open", cell.Alert
	}
	return "open", cell.Warn
}

// alertFoot is the least number of lines below the table, for the text of the selected alert.
const alertFoot = 4

// foot returns the number of lines below the table: as many as the text needs, at most half of the panel or what the
// table leaves free.
func (a *alertList) foot(r cell.Rect, all []view.Entry) int {
	if r.H < 5 || len(all) == 0 {
		return 0
	}
	return min(max(alertFoot, 1+len(textfmt.Wrap(all[a.index(all)].Text, r.W-4))), max(r.H/2, r.H-1-len(all)))
}

func (a *alertList) draw(m *panel.Host, g *cell.Grid, r cell.Rect) {
	all := a.all(m)
	if len(all) == 0 {
		if m.Filters.Text["alerts"] != "" {
			panel.Explain(g, r, m.NoMatchText("alerts", "alert"))
			return
		}
		panel.Explain(g, r, "no alerts so far")
		return
	}
	at, foot := a.index(all), a.foot(r, all)
	cols := []panel.Column[view.Entry]{
		panel.FigureColumn("when", 8, 1,
			func(e view.Entry) string { return textfmt.Duration(time.Duration(e.Trained)) }),
		panel.FigureColumn("round", 10, 3, func(e view.Entry) string { return textfmt.Grouped(e.Round) }),
		{Title: "state", Width: 8, Weight: 4, Text: func(e view.Entry) string { s, _ := alertOutcome(m, e); return s },
			Role: func(e view.Entry) cell.Role { _, role := alertOutcome(m, e); return role }},
		{Title: "kind", Width: 11, Weight: 2, Text: func(e view.Entry) string { return string(e.Alert) }},
	}
	cols, room := panel.FitColumns(cols, r.W-4, 23, r.W)
	cols = append(cols, panel.Column[view.Entry]{Title: "text", Width: room,
		Text: func(e view.Entry) string { return e.Text }})
	first, n := panel.TableWindow(r, len(all), at, foot)
	panel.DrawTableHead(g, r.X+3, r.Y, cols)
	for i, e := range all[first : first+n] {
		y, role := r.Y+1+i, cell.Plain
		if e.Answered || !m.Due(e) {
			role = cell.Faint
		}
		glyph, colour := levelGlyph(e)
		g.Set(r.X+1, y, glyph, colour)
		if first+i == at {
			g.Set(r.X, y, '▸', cell.FocusTitle)
		}
		panel.DrawTableRow(g, r.X+3, y, cols, role, e)
	}
	panel.DrawMore(g, r.X+2, r.Y+1, first, n, len(all))
	if foot > 0 {
		for i, line := range textfmt.Wrap(all[at].Text, r.W-4) {
			if i < foot-1 {
				g.Text(r.X+3, r.Y+r.H-foot+1+i, r.W-4, cell.Plain, line)
			}
		}
	}
}

// drawAlertRules lists the alert rules and the other causes of alerts.
func drawAlertRules(m *panel.Host, g *cell.Grid, r cell.Rect) {
	y := r.Y
	put := func(head, text string) {
		for i, line := range textfmt.Wrap(text, r.W-15) {
			if y >= r.Y+r.H {
				return
			}
			if i == 0 {
				g.Text(r.X+1, y, 12, cell.Strong, head)
			}
			g.Text(r.X+13, y, r.W-14, cell.Plain, line)
			y++
		}
	}
	for _, k := range event.Watched {
		put(string(k), alert.Rules[k])
	}
	put("also", "NaN or infinity, workers that are lost or disagree, a full disk, rejected commands")
	put("forwarding",
		"--on-alert COMMAND of run, serve and fork passes each warning and error to a command as a line of JSON")
}

func alertRows(v *view.View) panel.Rows {
	out := panel.Rows{{"time", "trained_seconds", "round", "level", "kind", "over", "text"}}
	for _, e := range v.Lane {
		if e.Kind == "alert" {
			out = append(out, []string{time.Unix(0, e.When).UTC().Format(time.RFC3339Nano),
				textfmt.Exact(time.Duration(e.Trained).Seconds()),
				textfmt.Uint(e.Round), string(e.Level), string(e.Alert), fmt.Sprint(e.Answered), e.Text})
		}
	}
	return out
}

// placeAlerts lays out the Alerts screen. A high and wide one has the loss and the events of the run too: most runs
// have few alerts, and their marks are in the loss.
func placeAlerts(_ *panel.Host, b cell.Rect) []panel.Placement {
	if b.W >= panel.FullW && b.H >= 32 {
		main, side := b.Left(b.W - max(46, b.W/3))
		rules := 26 // lines of the rules
		switch {
		case b.W >= 240:
			rules = 16
		case b.W >= panel.WideW:
			rules = 21
		}
		watched, events := side.Top(rules)
		table, loss := main.Top(min(rules, b.H*2/5))
		return []panel.Placement{{Panel: panel.Alerts, Area: table}, {Panel: panel.AlertRules, Area: watched},
			{Panel: panel.Loss, Area: loss}, {Panel: panel.Events, Area: events}}
	}
	if b.W >= panel.FullW {
		table, watched := b.Left(b.W - max(46, b.W/4))
		return []panel.Placement{{Panel: panel.Alerts, Area: table}, {Panel: panel.AlertRules, Area: watched}}
	}
	table, watched := b.Top(b.H - 10)
	return []panel.Placement{{Panel: panel.Alerts, Area: table}, {Panel: panel.AlertRules, Area: watched}}
}
