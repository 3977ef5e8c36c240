package tui

import (
	"fmt"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/alert"
	"brood/runtime/event"
	"brood/runtime/view"
	"brood/tui/cell"
)

const (
	alertsPanel  panelID = "alerts"
	watchedPanel panelID = "watched"
)

// alertList is the state of the Alerts screen: the record of the selected alert; 0 selects the newest.
type alertList struct {
	at  view.Position
	log *logView
}

func newAlarms(log *logView) *alertList { return &alertList{log: log} }

func (a *alertList) panels() []panel {
	move := func(d int) func(*model) tea.Cmd {
		return func(m *model) tea.Cmd { a.move(m, d); return nil }
	}
	const group = "alerts (on their screen)"
	hints := func(*model) [][2]string {
		return [][2]string{{"↑↓", "alert"}, {"x", "acknowledge all"}, {"/", "filter"}, {"w", "log"}}
	}
	keys := []binding{
		{keys: []string{"j", "down"}, title: "older", do: move(1)},
		{keys: []string{"up"}, title: "newer", do: move(-1)},
		{keys: []string{"g", "home"}, title: "newest", do: move(-1 << 30)},
		{keys: []string{"G", "end"}, title: "oldest", do: move(1 << 30)},
		a.log.key(),
	}
	return []panel{
		{
			id: alertsPanel, title: a.title, draw: a.draw, export: plainly(alertRows), hints: hints, group: group,
			screen: &screen{
				digit:   8,
				name:    "Alerts",
				place:   a.log.place,
				badge:   badgeOfAlerts,
				instead: "Log",
				show:    a.log.show,
			},
			reset: func() { a.at = 0 },
			list:  &list{name: "alerts", entries: "alerts", top: func() { a.at = 0 }},
			keys:  keys,
			point: func(m *model, r cell.Rect, _, y int) {
				all := a.all(m)
				if i, ok := tableAt(r, y, len(all), a.index(all), a.foot(r, all)); ok {
					a.at = all[i].At
				}
			},
		},
		{id: watchedPanel, title: func(*model) (string, string) { return "watched for", "" }, draw: drawWatched, hints: hints,
			group: group, keys: keys},
		a.log.panel(),
	}
}

func badgeOfAlerts(m *model) string {
	if n := m.alerts(); n > 0 {
		return fmt.Sprintf("!%d", n)
	}
	return ""
}

// all returns the alerts that pass the filter, the newest first. It skips informational entries, which only say that
// another alert is over.
func (a *alertList) all(m *model) (out []view.Entry) {
	for _, e := range slices.Backward(m.shown.Lane) {
		if e.Kind == "alert" && e.Level != event.LevelInfo && m.passes("alerts", string(e.Level), string(e.Alert), e.Text) {
			out = append(out, e)
		}
	}
	return out
}

// index returns the index of the cursor; that of the newest if the selected alert is no longer among the events.
func (a *alertList) index(all []view.Entry) int {
	return max(0, slices.IndexFunc(all, func(e view.Entry) bool { return e.At == a.at }))
}

func (a *alertList) move(m *model, d int) {
	if all := a.all(m); len(all) > 0 {
		a.at = all[min(max(a.index(all)+d, 0), len(all)-1)].At
	}
}

func (a *alertList) title(m *model) (string, string) {
	return "alerts", m.filterNote("alerts", fmt.Sprintf("%d, of which %d due", len(a.all(m)), m.alerts()))
}

// alertOutcome returns what happened to an alert.
func (m *model) alertOutcome(e view.Entry) (text string, role cell.Role) {
	switch {
	case e.Answered:
		return "over", cell.Faint
	case !m.due(e):
		return "seen", cell.Faint
	case e.Level == event.LevelError:
		return "due", cell.Alert
	}
	return "due", cell.Warn
}

// alertFoot is the least number of lines below the table, for the text of the selected alert.
const alertFoot = 4

// foot returns the number of lines below the table: as many as the text needs, at most half of the panel or what the
// table leaves free.
func (a *alertList) foot(r cell.Rect, all []view.Entry) int {
	if r.H < 5 || len(all) == 0 {
		return 0
	}
	return min(max(alertFoot, 1+len(wrap(all[a.index(all)].Text, r.W-4))), max(r.H/2, r.H-1-len(all)))
}

func (a *alertList) draw(m *model, g *cell.Grid, r cell.Rect) {
	all := a.all(m)
	if len(all) == 0 {
		if m.filters.text["alerts"] != "" {
			explain(g, r, m.nothing("alerts", "alert"))
			return
		}
		explain(g, r, "nothing was raised so far")
		return
	}
	at, foot := a.index(all), a.foot(r, all)
	cols := []column[view.Entry]{
		{
			head:   "when",
			width:  8,
			weight: 1,
			text:   func(e view.Entry) string { return span(time.Duration(e.Trained)) },
			right:  true,
		},
		{head: "round", width: 10, weight: 3, text: func(e view.Entry) string { return round(e.Round) }, right: true},
		{head: "state", width: 5, weight: 4, text: func(e view.Entry) string { s, _ := m.alertOutcome(e); return s },
			role: func(e view.Entry) cell.Role { _, role := m.alertOutcome(e); return role }},
		{head: "kind", width: 11, weight: 2, text: func(e view.Entry) string { return string(e.Alert) }},
	}
	cols, room := fitColumns(cols, r.W-4, 20, r.W)
	cols = append(cols, column[view.Entry]{head: "what", width: room, text: func(e view.Entry) string { return e.Text }})
	first, n := tableWindow(r, len(all), at, foot)
	tableHead(g, r.X+3, r.Y, cols)
	for i, e := range all[first : first+n] {
		y, role := r.Y+1+i, cell.Plain
		if e.Answered || !m.due(e) {
			role = cell.Faint
		}
		glyph, colour := level(e)
		g.Set(r.X+1, y, glyph, colour)
		if first+i == at {
			g.Set(r.X, y, '▸', cell.FocusTitle)
		}
		tableRow(g, r.X+3, y, cols, role, e)
	}
	tableMore(g, r, r.X+2, first, n, len(all))
	if foot > 0 {
		for i, line := range wrap(all[at].Text, r.W-4) {
			if i < foot-1 {
				g.Text(r.X+3, r.Y+r.H-foot+1+i, r.W-4, cell.Plain, line)
			}
		}
	}
}

// drawWatched lists the alert rules, and what else raises an alert.
func drawWatched(m *model, g *cell.Grid, r cell.Rect) {
	y := r.Y
	put := func(head, text string) {
		for i, line := range wrap(text, r.W-15) {
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
	put("and", "NaN or infinity, workers that are lost or disagree, a disk that is full, rejected commands")
	put("elsewhere", "--on-alert COMMAND of run, serve and fork hands each warning and error to a command, as a line of JSON")
}

func alertRows(v *view.View) rows {
	out := rows{{"time", "trained_seconds", "round", "level", "kind", "over", "text"}}
	for _, e := range v.Lane {
		if e.Kind == "alert" {
			out = append(out, []string{time.Unix(0, e.When).UTC().Format(time.RFC3339Nano),
				exact(time.Duration(e.Trained).Seconds()),
				uints(e.Round), string(e.Level), string(e.Alert), fmt.Sprint(e.Answered), e.Text})
		}
	}
	return out
}
