package tui

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"brood/runtime/archive"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/axis"
	"brood/runtime/event"
	"brood/runtime/session"
	"brood/tui/cell"
	"brood/tui/chart"
)

// maxMarks is the largest number of runs that can be distinguished in an overlay.
const maxMarks = 16

// tooMany is the message that no further run can be marked.
var tooMany = fmt.Sprintf("%d runs are marked: more cannot be told from each other", maxMarks)

// keys returns the key bindings of the list of runs and of the overlay.
func (r *runs) keys() []binding {
	move := func(d int) func(*model) tea.Cmd {
		return func(m *model) tea.Cmd { r.move(m, d); return r.poll(m) }
	}
	side := func(d int) func(*model) tea.Cmd {
		return func(*model) tea.Cmd { r.overlay.step(d); return nil }
	}
	return []binding{
		{keys: []string{"j", "down"}, title: "next run", do: move(1)},
		{keys: []string{"k", "up"}, title: "run before", do: move(-1)},
		{keys: []string{"pgdown"}, title: "a page on",
			do: func(m *model) tea.Cmd { r.move(m, max(1, r.height-1)); return r.poll(m) }},
		{keys: []string{"pgup"}, title: "a page back",
			do: func(m *model) tea.Cmd { r.move(m, -max(1, r.height-1)); return r.poll(m) }},
		{keys: []string{"g", "home"}, title: "first run", do: move(-1 << 30)},
		{keys: []string{"G", "end"}, title: "last run", do: move(1 << 30)},
		{keys: []string{"enter"}, title: "attach, replay, open a folder", why: r.mayOpen, do: r.enter},
		{keys: []string{"space"}, title: "mark it, or a folder's runs", why: r.mayMark, do: r.mark},
		{keys: []string{"U"}, title: "take all marks away", do: func(m *model) tea.Cmd {
			r.marks, r.overlay.stale = nil, true
			return r.poll(m)
		}},
		{keys: []string{"s"}, title: "sort by the next key", do: func(m *model) tea.Cmd {
			r.sort, r.stale = (r.sort+1)%sorting(len(sortings)), true
			return nil
		}},
		{keys: []string{"r"}, title: "resume it, with more rounds", why: r.mayResume, do: r.resume},
		{keys: []string{"X"}, title: "stop it (asks)", why: r.mayStop, do: r.stop},
		{keys: []string{"d"}, title: "delete it (asks)", why: r.mayDelete, do: r.remove},
		{keys: []string{"w"}, title: "write its model to a file", why: r.mayWrite, do: r.write},
		{keys: []string{"R"}, title: "rename it", why: r.mayDescribe, do: r.rename},
		{keys: []string{"t"}, title: "tag it", why: r.mayDescribe, do: r.tag},
		{keys: []string{"n"}, title: "note something of it", why: r.mayDescribe, do: r.note},
		{keys: []string{"left", "h"}, title: "cursor in the charts, left", do: side(-1)},
		{keys: []string{"right", "l"}, title: "cursor in the charts, right", do: side(1)},
		{keys: []string{"v"}, title: "settings and figures, whole", do: r.wholeTable},
		{keys: []string{"a", "O"}, title: "x axis: round, step, sample, ...", do: r.turnAxis},
		{keys: []string{"0"}, title: "from the fork on, or all of it", why: r.mayRace, do: r.turnRace},
		{keys: []string{"S"}, title: "seeds as mean and band, or each", do: func(*model) tea.Cmd {
			r.overlay.seeds, r.overlay.stale = !r.overlay.seeds, true
			return nil
		}},
	}
}

// wholeTable toggles between the table of settings and results alone and the normal layout.
func (r *runs) wholeTable(m *model) tea.Cmd {
	if m.expanded = m.focus != figuresPanel || !m.expanded; m.expanded {
		m.focus = figuresPanel
	} else {
		m.focus = runsPanel
	}
	return nil
}

// closeTable leaves the table if it is shown alone; otherwise it goes back as in the list. It reports whether anything
// changed.
func (r *runs) closeTable(m *model) bool {
	if !m.expanded {
		return r.back(m)
	}
	r.wholeTable(m)
	return true
}

// turnAxis selects the next axis on which at least one of the runs has an extent.
func (r *runs) turnAxis(m *model) tea.Cmd {
	o := &r.overlay
	n := axis.Axis(len(axis.Names))
	for i := range n {
		next := (o.axis + 1 + i) % n
		if lo, hi := archive.Spanned(o.set, next); hi > lo {
			o.axis, o.stale, o.at = next, true, -1
			return nil
		}
	}
	m.say(cell.Warn, "there is no curve to draw over another axis")
	return nil
}

// back removes the cursor of the charts, else the marks. It reports whether there was anything to remove.
func (r *runs) back(*model) bool {
	switch {
	case r.overlay.at >= 0:
		r.overlay.at = -1
	case len(r.marks) > 0:
		r.marks, r.overlay.stale = nil, true
	default:
		return false
	}
	return true
}

func (r *runs) mayOpen(m *model) string {
	e, why := r.on(m)
	if _, there := m.opt.Library.(Traveller); why == "" && there && e.Host != "" && !e.Asked && m.opt.ReadOnly {
		return readOnly + ", and what " + e.Host + " shows could change its runs"
	}
	if why == "" && e.Folder != "" && r.matchedInside(e, r.wanted) {
		return "those of its runs that pass the filter are shown: esc takes the filter away"
	}
	if k := r.summary(e); why == "" && k != nil && k.Err != "" && e.Folder == "" && !e.Asked {
		return r.name(e) + " cannot be read: " + k.Err
	}
	return why
}

func (r *runs) enter(m *model) tea.Cmd {
	e, _ := r.on(m)
	switch {
	case e.Folder != "":
		r.open[e.Dir], r.stale = !r.open[e.Dir], true
		return r.rescan(m)
	case e.Dir == m.opt.Session && m.opt.Source != nil && e.Running == (m.replay == nil):
		return m.openScreen(0)
	}
	if v, ok := m.opt.Library.(Traveller); ok && e.Host != "" {
		if c := v.Travel(e); c != nil {
			return m.travel(e, c)
		}
	}
	return m.open(e.Dir)
}

// remoteNote returns the message that a run of another machine can only be opened or overlaid from here.
func remoteNote(e archive.Entry) string {
	switch {
	case e.Folder != "":
		return e.Name + " is no run: choose one below it"
	case e.Asked:
		return e.Name + " is recorded elsewhere: enter attaches to it, space lays its curves over others"
	}
	return e.Name + " is on " + e.Host + ": enter opens it there, space lays its curves over others"
}

func (r *runs) mayMark(m *model) string {
	e, why := r.on(m)
	switch {
	case why != "":
		return why
	case e.Host != "" && e.Folder != "":
		return remoteNote(e)
	case e.Folder == "" && len(r.marks) >= maxMarks && !slices.Contains(r.marks, e.Dir):
		return tooMany
	}
	return ""
}

func (r *runs) mark(m *model) tea.Cmd {
	e, _ := r.on(m)
	if e.Folder != "" {
		return r.markFolder(m, e)
	}
	if i := slices.Index(r.marks, e.Dir); i >= 0 {
		r.marks = slices.Delete(r.marks, i, i+1)
	} else {
		r.marks = append(r.marks, e.Dir)
	}
	r.overlay.stale = true
	r.move(m, 1)
	return r.poll(m)
}

// letter returns the letter and colour role of a marked run in the charts; 0 for an unmarked run.
func (r *runs) letter(dir string) (rune, cell.Role) {
	i := slices.Index(r.marks, dir)
	if i < 0 {
		return 0, cell.Plain
	}
	return chart.Letter(i)
}

// keeper returns the library's Keeper, which can change runs; nil if the library has none.
func (m *model) keeper() Keeper {
	k, _ := m.opt.Library.(Keeper)
	return k
}

// mayChange returns the run under the cursor with its summary. why is a message if it cannot be changed, else "".
func (r *runs) mayChange(m *model) (e archive.Entry, k *known, why string) {
	e, why = r.on(m)
	k = r.summary(e)
	switch {
	case why != "":
	case m.opt.ReadOnly:
		why = readOnly
	case e.Host != "":
		why = remoteNote(e)
	case m.keeper() == nil:
		why = "these runs can only be looked at from here"
	case e.Folder != "":
		why = e.Name + " is a folder: enter opens it, choose a run in it"
	case k == nil:
		why = e.Name + " is still being read"
	}
	return e, k, why
}

func (r *runs) mayResume(m *model) string {
	e, k, why := r.mayChange(m)
	switch {
	case why != "":
		return why
	case e.Running:
		return r.name(e) + " is running: enter attaches to it"
	case k.Err != "":
		return r.name(e) + " cannot be read: " + k.Err
	}
	return ""
}

// resume asks for the round at which to stop. For a killed or stopped run the answer may be empty: it keeps its limit.
func (r *runs) resume(m *model) tea.Cmd {
	e, _ := r.on(m)
	k := r.summary(e)
	about := fmt.Sprintf("It has done %s. Until which round shall it train? Empty: until the end that it was given.",
		count(int(k.Round), "round"))
	done := k.Phase == event.Finished
	if done {
		about = fmt.Sprintf("It has done %s, and ended as it was told. Until which round shall it train?",
			count(int(k.Round), "round"))
	}
	m.popup = &ask{title: "resume " + r.name(e), about: about, do: func(m *model, text string) (tea.Cmd, error) {
		text = strings.TrimSpace(text)
		var limit event.Limit
		if text != "" || done {
			n, err := strconv.ParseUint(strings.ReplaceAll(text, " ", ""), 10, 48)
			if err != nil || n <= k.Round {
				return nil, fmt.Errorf("%q: give a round beyond %s", text, round(k.Round))
			}
			limit.Rounds = n
		}
		m.say(cell.Plain, "resuming "+r.name(e))
		keeper, ctx := m.keeper(), m.ctx
		return m.job(func() tea.Msg {
			o, err := keeper.Resume(ctx, e.Dir, limit)
			return openedMsg{o, filepath.Base(e.Dir) + " goes on", err}
		}), nil
	}}
	return nil
}

func (r *runs) mayStop(m *model) string {
	e, _, why := r.mayChange(m)
	if why == "" && !e.Running {
		return r.name(e) + " does not run: there is nothing to stop"
	}
	return why
}

func (r *runs) stop(m *model) tea.Cmd {
	e, _ := r.on(m)
	m.popup = &question{text: fmt.Sprintf("Stop %s? It finishes its round, saves and ends; it can be resumed later.",
		r.name(e)), yes: "stop it",
		do: func(m *model) tea.Cmd {
			keeper := m.keeper()
			return r.change(m, "stopped "+r.name(e), func(ctx context.Context) error { return keeper.Stop(ctx, e.Dir) })
		}}
	return nil
}

// change runs f, which changes a run, in a job. It then shows done or the error and scans the runs again.
func (r *runs) change(m *model, done string, f func(context.Context) error) tea.Cmd {
	ctx := m.ctx
	return m.job(func() tea.Msg {
		err := f(ctx)
		return reply(func(m *model) tea.Cmd {
			if err != nil {
				m.say(cell.Alert, err.Error())
			} else {
				m.say(cell.Plain, done)
			}
			return r.rescan(m)
		})
	})
}

func (r *runs) mayDelete(m *model) string {
	e, why := r.on(m)
	switch {
	case why != "":
		return why
	case m.opt.ReadOnly:
		return readOnly
	case e.Host != "":
		return remoteNote(e)
	case e.Folder != "":
		return e.Name + " is a folder: remove its directory yourself"
	case e.Running:
		return r.name(e) + " is running: stop it first"
	case e.Dir == m.opt.Session:
		return "you are looking at " + r.name(e) + ": open another run first"
	}
	return ""
}

func (r *runs) remove(m *model) tea.Cmd {
	e, _ := r.on(m)
	bytes := ""
	if k := r.summary(e); k != nil {
		bytes = ", " + Size(float64(k.Size)) + ","
	}
	lib, name := m.opt.Library, r.name(e)
	m.popup = &question{
		text: fmt.Sprintf("Delete %s? Its log and its checkpoints%s are gone for good.", name, bytes),
		yes:  "delete it",
		no:   "keep it",
		do: func(m *model) tea.Cmd {
			r.move(m, 1)
			if r.chosen == e.Dir { // it was the last one
				r.move(m, -1)
			}
			return r.change(m, "deleted "+name, func(ctx context.Context) error { return lib.Delete(ctx, e.Dir) })
		},
	}
	return nil
}

func (r *runs) mayWrite(m *model) string {
	e, k, why := r.mayChange(m)
	switch {
	case why != "":
		return why
	case m.opt.NoFiles:
		return "no file is written at the other end: brood export on that machine writes one"
	case k.Data == "":
		return r.name(e) + " trains no model: there is none to write"
	case k.Round == 0:
		return r.name(e) + " has done no round yet"
	}
	return ""
}

func (r *runs) write(m *model) tea.Cmd {
	e, _ := r.on(m)
	keeper, ctx := m.keeper(), m.ctx
	m.say(cell.Plain, "writing the model of "+r.name(e))
	return m.job(func() tea.Msg {
		written, err := keeper.Export(ctx, e.Dir)
		return reply(func(m *model) tea.Cmd {
			if err != nil {
				m.say(cell.Alert, err.Error())
			} else {
				m.say(cell.Good, written)
			}
			return nil
		})
	})
}

func (r *runs) mayDescribe(m *model) string {
	_, _, why := r.mayChange(m)
	return why
}

// describe asks for a line of text and stores the description of the run that change makes of it, in a file of its
// session.
func (r *runs) describe(m *model, title, about, text string, change func(a *session.About, text string)) tea.Cmd {
	e, _ := r.on(m)
	before := r.summary(e).About
	d := &ask{title: title + " " + r.name(e), about: about, do: func(m *model, text string) (tea.Cmd, error) {
		after := before
		change(&after, strings.TrimSpace(text))
		if err := after.Check(); err != nil { // the dialog stays open with the text
			return nil, err
		}
		keeper := m.keeper()
		if k := r.known[e.Dir]; k != nil { // force a new read
			k.bytes, k.took = -1, 0
		}
		return r.change(m, "saved in session "+e.Name, func(ctx context.Context) error {
			return keeper.Describe(ctx, e.Dir, after)
		}), nil
	}}
	d.set(text)
	m.popup = d
	return nil
}

func (r *runs) rename(m *model) tea.Cmd {
	e, _ := r.on(m)
	return r.describe(m, "rename", "Its directory stays "+e.Name+", by which commands know it. Empty: that name again.",
		r.summary(e).About.Name,
		func(a *session.About, text string) { a.Name = text })
}

func (r *runs) tag(m *model) tea.Cmd {
	e, _ := r.on(m)
	return r.describe(m, "tags of", "Words, with blanks or commas between them. / finds them.",
		strings.Join(r.summary(e).About.Tags, " "),
		func(a *session.About, text string) {
			a.Tags = strings.FieldsFunc(text, func(c rune) bool { return c == ',' || unicode.IsSpace(c) })
		})
}

func (r *runs) note(m *model) tea.Cmd {
	e, _ := r.on(m)
	return r.describe(m, "note of", "It is saved beside the log; the log is unchanged.", r.summary(e).About.Note,
		func(a *session.About, text string) { a.Note = text })
}
