package runs

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/archive"
	"brood/runtime/axis"
	"brood/runtime/event"
	"brood/runtime/session"
	"brood/tui/cell"
	"brood/tui/chart"
	"brood/tui/panel"
	"brood/tui/textfmt"
)

// MaxMarks is the largest number of runs that can be distinguished in an overlay.
const MaxMarks = 16

// tooMany is the message that no further run can be marked.
var tooMany = fmt.Sprintf("%d runs are marked: more could not be distinguished", MaxMarks)

// keys returns the key bindings of the list of runs and of the overlay.
func (r *Runs) keys() []panel.Binding {
	move := func(d int) func(*panel.Host) tea.Cmd {
		return func(m *panel.Host) tea.Cmd { r.move(m, d); return r.Poll(m) }
	}
	side := func(d int) func(*panel.Host) tea.Cmd {
		return func(*panel.Host) tea.Cmd { r.Overlay.step(d); return nil }
	}
	return []panel.Binding{
		{Keys: []string{"j", "down"}, Title: "next run", Do: move(1)},
		{Keys: []string{"k", "up"}, Title: "previous run", Do: move(-1)},
		{Keys: []string{"pgdown"}, Title: "next page",
			Do: func(m *panel.Host) tea.Cmd { r.move(m, max(1, r.height-1)); return r.Poll(m) }},
		{Keys: []string{"pgup"}, Title: "previous page",
			Do: func(m *panel.Host) tea.Cmd { r.move(m, -max(1, r.height-1)); return r.Poll(m) }},
		{Keys: []string{"g", "home"}, Title: "first run", Do: move(-1 << 30)},
		{Keys: []string{"G", "end"}, Title: "last run", Do: move(1 << 30)},
		{Keys: []string{"enter"}, Title: "attach, replay, open a folder", Why: r.WhyNotOpen, Do: r.enter},
		{Keys: []string{"space"}, Title: "mark it, or a folder's runs", Why: r.WhyNotMark, Do: r.mark},
		{Keys: []string{"U"}, Title: "remove all marks", Do: func(m *panel.Host) tea.Cmd {
			r.Marks, r.Overlay.Stale = nil, true
			return r.Poll(m)
		}},
		{Keys: []string{"s"}, Title: "sort by the next column", Do: r.sortNext},
		{Keys: []string{"i"}, Title: "reverse the order", Why: whyNotReverse, Do: r.reverse},
		{Keys: []string{"c"}, Title: "choose columns", Do: r.chooseColumns},
		{Keys: []string{"F"}, Title: "follow the newest run, or not", Do: r.followNewest},
		{Keys: []string{"r"}, Title: "resume it, with more rounds", Why: r.whyNotResume, Do: r.resume},
		{Keys: []string{"X"}, Title: "stop it (asks)", Why: r.whyNotStop, Do: r.stop},
		{Keys: []string{"d"}, Title: "delete it (asks)", Why: r.whyNotDelete, Do: r.remove},
		{Keys: []string{"w"}, Title: "write its model to a file", Why: r.whyNotWrite, Do: r.write},
		{Keys: []string{"R"}, Title: "rename it", Why: r.whyNotDescribe, Do: r.rename},
		{Keys: []string{"t"}, Title: "tag it", Why: r.whyNotDescribe, Do: r.tag},
		{Keys: []string{"n"}, Title: "write a note on it", Why: r.whyNotDescribe, Do: r.note},
		{Keys: []string{"left", "h"}, Title: "cursor in the charts, left", Do: side(-1)},
		{Keys: []string{"right", "l"}, Title: "cursor in the charts, right", Do: side(1)},
		{Keys: []string{"v"}, Title: "settings and results, full screen", Do: r.wholeTable},
		{Keys: []string{"a", "O"}, Title: "x axis: round, step, sample, ...", Do: r.turnAxis},
		{Keys: []string{"0"}, Title: "from the fork, or the whole runs", Why: r.whyNoFork, Do: r.toggleSinceFork},
		{Keys: []string{"S"}, Title: "seeds as mean and band, or each", Do: func(*panel.Host) tea.Cmd {
			r.Overlay.Seeds, r.Overlay.Stale = !r.Overlay.Seeds, true
			return nil
		}},
	}
}

// wholeTable toggles between the table of settings and results alone and the normal layout.
func (r *Runs) wholeTable(m *panel.Host) tea.Cmd {
	if m.Expanded = m.Focus != panel.Figures || !m.Expanded; m.Expanded {
		m.Focus = panel.Figures
	} else {
		m.Focus = panel.Runs
	}
	return nil
}

// closeTable leaves the table if it is shown alone; otherwise it goes back as in the list. It reports whether anything
// changed.
func (r *Runs) closeTable(m *panel.Host) bool {
	if !m.Expanded {
		return r.back(m)
	}
	r.wholeTable(m)
	return true
}

// turnAxis selects the next axis on which at least one of the runs has an extent.
func (r *Runs) turnAxis(m *panel.Host) tea.Cmd {
	o := &r.Overlay
	n := axis.Axis(len(axis.Names))
	for i := range n {
		next := (o.Axis + 1 + i) % n
		if lo, hi := archive.Spanned(o.Set, next); hi > lo {
			o.Axis, o.Stale, o.At = next, true, -1
			return nil
		}
	}
	m.Say(cell.Warn, "there is no curve to draw over another axis")
	return nil
}

// back removes the cursor of the charts, else the marks. It reports whether there was anything to remove.
func (r *Runs) back(*panel.Host) bool {
	switch {
	case r.Overlay.At >= 0:
		r.Overlay.At = -1
	case len(r.Marks) > 0:
		r.Marks, r.Overlay.Stale = nil, true
	default:
		return false
	}
	return true
}

// WhyNotOpen returns why the chosen entry cannot be opened; "" if it can.
func (r *Runs) WhyNotOpen(m *panel.Host) string {
	e, why := r.chosenEntry(m)
	if why != "" {
		return why
	}
	return r.whyNotOpen(m, e)
}

func (r *Runs) whyNotOpen(m *panel.Host, e archive.Entry) string {
	if _, there := m.Opt.Library.(panel.Traveller); there && e.Host != "" && !e.Asked && m.Opt.ReadOnly {
		return panel.ReadOnlyText + "; the view that " + e.Host + " opens could change its runs"
	}
	if e.Folder != "" && r.matchedInside(e) {
		return "the runs that match the filter are shown: esc clears the filter"
	}
	if k := r.summary(e); k != nil && k.Err != "" && e.Folder == "" && !e.Asked {
		return r.name(e) + " cannot be read: " + k.Err
	}
	return ""
}

func (r *Runs) enter(m *panel.Host) tea.Cmd {
	e, _ := r.chosenEntry(m)
	return r.open(m, e)
}

// open opens or closes a folder, attaches to an active run, or replays any other.
func (r *Runs) open(m *panel.Host, e archive.Entry) tea.Cmd {
	switch {
	case e.Folder != "":
		r.Open[e.Dir], r.Stale = !r.Open[e.Dir], true
		return r.rescan(m)
	case e.Dir == m.Opt.Session && m.Opt.Source != nil && e.Running == (m.Replay == nil):
		return m.OpenScreen(0)
	}
	if v, ok := m.Opt.Library.(panel.Traveller); ok && e.Host != "" {
		if c := v.Travel(e); c != nil {
			return m.OpenRemote(e, c)
		}
	}
	return m.Open(e.Dir)
}

// RemoteNote returns the message that a run of another machine can only be opened or overlaid from here.
func RemoteNote(e archive.Entry) string {
	switch {
	case e.Folder != "":
		return e.Name + " is not a run: choose one below it"
	case e.Asked:
		return e.Name + " is recorded on another machine: enter attaches to it, space overlays its curves"
	}
	return e.Name + " is on " + e.Host + ": enter opens it there, space overlays its curves"
}

// WhyNotMark returns why the chosen entry cannot be marked; "" if it can.
func (r *Runs) WhyNotMark(m *panel.Host) string {
	e, why := r.chosenEntry(m)
	switch {
	case why != "":
		return why
	case e.Host != "" && e.Folder != "":
		return RemoteNote(e)
	case e.Folder == "" && len(r.Marks) >= MaxMarks && !slices.Contains(r.Marks, e.Dir):
		return tooMany
	}
	return ""
}

func (r *Runs) mark(m *panel.Host) tea.Cmd {
	e, _ := r.chosenEntry(m)
	if e.Folder != "" {
		return r.markFolder(m, e)
	}
	if i := slices.Index(r.Marks, e.Dir); i >= 0 {
		r.Marks = slices.Delete(r.Marks, i, i+1)
	} else {
		r.Marks = append(r.Marks, e.Dir)
	}
	r.Overlay.Stale = true
	r.move(m, 1)
	return r.Poll(m)
}

// letter returns the letter and colour role of a marked run in the charts; 0 for an unmarked run.
func (r *Runs) letter(dir string) (rune, cell.Role) {
	i := slices.Index(r.Marks, dir)
	if i < 0 {
		return 0, cell.Plain
	}
	return chart.KindLetter(i)
}

// Changeable returns the chosen run with its summary. why is a message if it cannot be changed, else "".
func (r *Runs) Changeable(m *panel.Host) (e archive.Entry, k *loadedSummary, why string) {
	e, why = r.chosenEntry(m)
	k = r.summary(e)
	switch {
	case why != "":
	case m.Opt.ReadOnly:
		why = panel.ReadOnlyText
	case e.Host != "":
		why = RemoteNote(e)
	case m.Keeper() == nil:
		why = "these runs are read-only from here"
	case e.Folder != "":
		why = e.Name + " is a folder: enter opens it, choose a run in it"
	case k == nil:
		why = e.Name + " is still being read"
	}
	return e, k, why
}

func (r *Runs) whyNotResume(m *panel.Host) string {
	e, k, why := r.Changeable(m)
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
func (r *Runs) resume(m *panel.Host) tea.Cmd {
	e, _ := r.chosenEntry(m)
	k := r.summary(e)
	about := fmt.Sprintf("It has done %s. At which round shall it stop? Empty: at its present limit.",
		textfmt.Count(int(k.Round), "round"))
	done := k.Phase == event.Finished
	if done {
		about = fmt.Sprintf("It has done %s and reached its limit. At which round shall it stop?",
			textfmt.Count(int(k.Round), "round"))
	}
	m.Popup = &panel.TextDialog{Title: "resume " + r.name(e), About: about,
		Do: func(m *panel.Host, text string) (tea.Cmd, error) {
			text = strings.TrimSpace(text)
			var limit event.Limit
			if text != "" || done {
				n, err := strconv.ParseUint(strings.ReplaceAll(text, " ", ""), 10, 48)
				if err != nil || n <= k.Round {
					return nil, fmt.Errorf("%q: give a round after %s", text, textfmt.Grouped(k.Round))
				}
				limit.Rounds = n
			}
			m.Say(cell.Plain, "resuming "+r.name(e))
			keeper, ctx := m.Keeper(), m.Ctx
			return m.Job(func() tea.Msg {
				o, err := keeper.Resume(ctx, e.Dir, limit)
				return panel.OpenedMsg{Opened: o, Message: filepath.Base(e.Dir) + " resumed", Err: err}
			}), nil
		}}
	return nil
}

func (r *Runs) whyNotStop(m *panel.Host) string {
	e, _, why := r.Changeable(m)
	if why == "" && !e.Running {
		return r.name(e) + " is not running"
	}
	return why
}

func (r *Runs) stop(m *panel.Host) tea.Cmd {
	e, _ := r.chosenEntry(m)
	m.Popup = &panel.Question{Text: fmt.Sprintf("Stop %s? It finishes its round, saves and ends; it can be resumed later.",
		r.name(e)), Yes: "stop it",
		Do: func(m *panel.Host) tea.Cmd {
			keeper := m.Keeper()
			return r.change(m, "stopped "+r.name(e), func(ctx context.Context) error { return keeper.Stop(ctx, e.Dir) })
		}}
	return nil
}

// change runs f, which changes a run, in a job. It then shows done or the error and scans the runs again.
func (r *Runs) change(m *panel.Host, done string, f func(context.Context) error) tea.Cmd {
	ctx := m.Ctx
	return m.Job(func() tea.Msg {
		err := f(ctx)
		return panel.Reply(func(m *panel.Host) tea.Cmd {
			m.SayDone(err, cell.Plain, done)
			return r.rescan(m)
		})
	})
}

func (r *Runs) whyNotDelete(m *panel.Host) string {
	e, why := r.chosenEntry(m)
	switch {
	case why != "":
		return why
	case m.Opt.ReadOnly:
		return panel.ReadOnlyText
	case e.Host != "":
		return RemoteNote(e)
	case e.Folder != "":
		return e.Name + " is a folder: remove its directory yourself"
	case e.Running:
		return r.name(e) + " is running: stop it first"
	case e.Dir == m.Opt.Session:
		return r.name(e) + " is open: open another run first"
	}
	return ""
}

func (r *Runs) remove(m *panel.Host) tea.Cmd {
	e, _ := r.chosenEntry(m)
	bytes := ""
	if k := r.summary(e); k != nil {
		bytes = ", " + textfmt.Size(k.Size) + ","
	}
	lib, name := m.Opt.Library, r.name(e)
	m.Popup = &panel.Question{
		Text: fmt.Sprintf("Delete %s? Its log and its checkpoints%s cannot be restored.", name, bytes),
		Yes:  "delete it",
		No:   "keep it",
		Do: func(m *panel.Host) tea.Cmd {
			r.move(m, 1)
			if r.Chosen == e.Dir { // it was the last one
				r.move(m, -1)
			}
			return r.change(m, "deleted "+name, func(ctx context.Context) error { return lib.Delete(ctx, e.Dir) })
		},
	}
	return nil
}

func (r *Runs) whyNotWrite(m *panel.Host) string {
	e, k, why := r.Changeable(m)
	switch {
	case why != "":
		return why
	case m.Opt.NoFiles:
		return "no file can be written on the host of this viewer: run brood export there"
	case k.Data == "":
		return r.name(e) + " trains no model"
	case k.Round == 0:
		return r.name(e) + " has done no round yet"
	}
	return ""
}

func (r *Runs) write(m *panel.Host) tea.Cmd {
	e, _ := r.chosenEntry(m)
	keeper, ctx := m.Keeper(), m.Ctx
	m.Say(cell.Plain, "writing the model of "+r.name(e))
	return m.Job(func() tea.Msg {
		written, err := keeper.Export(ctx, e.Dir)
		return panel.Reply(func(m *panel.Host) tea.Cmd {
			m.SayDone(err, cell.Good, written)
			return nil
		})
	})
}

func (r *Runs) whyNotDescribe(m *panel.Host) string {
	_, _, why := r.Changeable(m)
	return why
}

// describe asks for a line of text and stores the description of the run that change makes of it, in a file of its
// session.
func (r *Runs) describe(m *panel.Host, title, about, text string, change func(a *session.About, text string)) tea.Cmd {
	e, _ := r.chosenEntry(m)
	before := r.summary(e).About
	d := &panel.TextDialog{Title: title + " " + r.name(e), About: about,
		Do: func(m *panel.Host, text string) (tea.Cmd, error) {
			after := before
			change(&after, strings.TrimSpace(text))
			if err := after.Check(); err != nil { // the dialog stays open with the text
				return nil, err
			}
			keeper := m.Keeper()
			if k := r.summaries[e.Dir]; k != nil { // force a new read
				k.bytes, k.took = -1, 0
			}
			return r.change(m, "saved in session "+e.Name, func(ctx context.Context) error {
				return keeper.Describe(ctx, e.Dir, after)
			}), nil
		}}
	d.SetText(text)
	m.Popup = d
	return nil
}

func (r *Runs) rename(m *panel.Host) tea.Cmd {
	e, _ := r.chosenEntry(m)
	return r.describe(m, "rename",
		"Its directory remains "+e.Name+", which commands use. Empty: the name of the directory.",
		r.summary(e).About.Name,
		func(a *session.About, text string) { a.Name = text })
}

func (r *Runs) tag(m *panel.Host) tea.Cmd {
	e, _ := r.chosenEntry(m)
	return r.describe(m, "tags of", "Words, separated by blanks or commas. / finds them.",
		strings.Join(r.summary(e).About.Tags, " "),
		func(a *session.About, text string) {
			a.Tags = strings.FieldsFunc(text, func(c rune) bool { return c == ',' || unicode.IsSpace(c) })
		})
}

func (r *Runs) note(m *panel.Host) tea.Cmd {
	e, _ := r.chosenEntry(m)
	return r.describe(m, "note of", "It is saved in the session; the log is unchanged.", r.summary(e).About.Note,
		func(a *session.About, text string) { a.Note = text })
}
