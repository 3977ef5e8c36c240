// Package runs has the Runs screen: recorded sessions, overlays of their curves, and the launcher of new runs.
package runs

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"brood/runtime/archive"
	"brood/tui/panel"
)

// Runs is the state of the Runs screen: the list of all runs and the overlay of the selected ones.
type Runs struct {
	Found     map[string][]archive.Entry // by folder; "" is the top level
	summaries map[string]*loadedSummary  // summaries by directory
	Open      map[string]bool            // folders by directory; present once the user or the program set it
	err       error                      // of the last scan
	Loaded    bool                       // a scan has ended

	Chosen  string   // directory of the run under the cursor
	awaited string   // directory of a new branch that no scan has listed yet
	Marks   []string // directories, in the order of marking: the first has the letter a
	follow  bool     // the newest run stays chosen
	unsaved bool     // the settings of the list have changed since they were saved

	rows     []runRow // shown rows in order, see SortedRows
	Stale    bool     // rows has to be recomputed, and what follows
	wanted   string   // filter for which they were computed
	typing   bool     // it was being typed
	tableW   int      // width of the terminal
	query    archive.Query
	QueryErr error // why the filter is invalid

	columns []panel.Column[archive.Row] // nil: to be computed, see setColumns
	around  int                         // the row around which they were computed
	widest  int                         // width of the widest label there

	first  int    // top row of the last frame
	height int    // number of rows of the last frame
	heads  []head // of the last frame

	Reader  reader
	Overlay OverlayState
}

// runRow is a row of the list.
type runRow struct {
	archive.Entry
	depth int // 0: top level; 1: below its folder
}

// loadedSummary is the summary of a run or folder.
type loadedSummary struct {
	archive.Summary
	spark string        // sparkline of the loss
	bytes int64         // size of the log when it was read
	when  time.Time     // modification time of a folder when it was read
	at    time.Time     // time of reading
	took  time.Duration // duration of reading
}

// New returns the state of the Runs screen.
func New() *Runs {
	return &Runs{Found: map[string][]archive.Entry{}, summaries: map[string]*loadedSummary{}, Open: map[string]bool{},
		Overlay: OverlayState{At: -1, Seeds: true, loaded: map[string]*loadedRun{}}}
}

// summary returns the summary of an entry, nil before it was read.
func (r *Runs) summary(e archive.Entry) *loadedSummary {
	k := r.summaries[e.Dir]
	if k != nil {
		k.Running = e.Running
	}
	return k
}

// row returns an entry with its summary.
func (r *Runs) row(e archive.Entry) archive.Row {
	x := archive.Row{Entry: e}
	if k := r.summary(e); k != nil {
		x.Summary = &k.Summary
	}
	return x
}

// name returns the display name of a run: the name that the user gave it, else its directory without the date, which
// commands accept too.
func (r *Runs) name(e archive.Entry) string {
	if k := r.summaries[e.Dir]; k != nil && k.About.Name != "" {
		return k.About.Name
	}
	return archive.ShortName(e.Name)
}

// SortedRows returns the rows of the list. Runs of open folders follow their folder. In the order of time, running runs
// come first: runs of this machine, then those of other machines, even if their folder is closed. Runs of a sweep or
// study on this machine stay in their folder, which is not scanned while it is closed. The rows are cached
// until Stale is set or the filter changes.
func (r *Runs) SortedRows(m *panel.Host) []runRow {
	want, typing := m.Filters.Text["runs"], m.Filters.Typing != nil
	if !r.Stale && want == r.wanted && typing == r.typing && m.W == r.tableW {
		return r.rows
	}
	r.Stale, r.wanted, r.typing, r.tableW = false, want, typing, m.W
	order := m.Opt.Settings.Runs
	r.filter(order, want)
	if last := strings.LastIndex(want, " ") + 1; typing && r.QueryErr == nil && len(r.rows) == 0 &&
		len(r.complete(m, want)) > 0 { // its last word is the beginning of a name, which a comparison will follow
		r.filter(order, want[:last])
	}
	r.columns = nil
	if r.follow {
		r.chooseNewest()
	}
	return r.rows
}

// filter sets the rows to those that a query selects.
func (r *Runs) filter(order panel.RunList, want string) {
	var remote, rest []runRow
	r.rows = r.rows[:0]
	if r.query, r.QueryErr = archive.ParseQuery(want); r.QueryErr != nil {
		return
	}
	for _, e := range r.order(order, r.Found[""]) {
		switch {
		case e.Folder != "":
			live, row := r.folderRows(order, e)
			remote, rest = append(remote, live...), append(rest, row...)
		case !r.passes(e):
		case atTop(order, e):
			remote = append(remote, runRow{e, 0})
		case order.Sort == "" && e.Running:
			r.rows = append(r.rows, runRow{e, 0})
		default:
			rest = append(rest, runRow{e, 0})
		}
	}
	// Sorting these by the time of the last write would reorder them on every scan, since all of them are being
	// written.
	slices.SortStableFunc(remote,
		func(a, b runRow) int { return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Name, b.Name)) })
	r.rows = append(append(r.rows, remote...), rest...)
}

// passes reports whether a run passes the filter.
func (r *Runs) passes(e archive.Entry) bool { return r.query.Match(r.row(e)) }

// chooseNewest chooses the run that was started last.
func (r *Runs) chooseNewest() {
	var newest archive.Row
	started := func(x archive.Row) time.Time {
		if x.Summary != nil {
			return x.Started
		}
		return x.Written // not read yet
	}
	for _, x := range r.rows {
		if row := r.row(x.Entry); x.Folder == "" && (newest.Dir == "" || started(row).After(started(newest))) {
			newest = row
		}
	}
	if newest.Dir != "" && newest.Dir != r.Chosen {
		r.choose(newest.Dir)
	}
}

// chosenIndex returns the index of the chosen row; -1 if there are no rows.
func (r *Runs) chosenIndex(m *panel.Host) int {
	rows := r.SortedRows(m)
	if len(rows) == 0 {
		return -1
	}
	return max(0, slices.IndexFunc(rows, func(x runRow) bool { return x.Dir == r.Chosen }))
}

// chosenEntry returns the chosen entry; why is a message if there is none, else "".
func (r *Runs) chosenEntry(m *panel.Host) (e archive.Entry, why string) {
	i := r.chosenIndex(m)
	if i < 0 {
		return e, "there is no run to choose"
	}
	return r.rows[i].Entry, ""
}

func (r *Runs) move(m *panel.Host, d int) {
	r.follow = false
	if i := r.chosenIndex(m); i >= 0 {
		r.choose(r.rows[min(max(0, i+d), len(r.rows)-1)].Dir)
	}
}

func (r *Runs) choose(dir string) {
	r.Chosen = dir
	if len(r.Marks) == 0 {
		r.Overlay.Stale = true
	}
}

// entry finds a run by its directory.
func (r *Runs) entry(dir string) (archive.Entry, bool) {
	for _, list := range r.Found {
		if i := slices.IndexFunc(list, func(e archive.Entry) bool { return e.Dir == dir }); i >= 0 {
			return list[i], true
		}
	}
	return archive.Entry{}, false
}

// selectedRuns returns the runs of the overlay: the marked ones, or the one under the cursor if none is marked.
func (r *Runs) selectedRuns(m *panel.Host) (out []archive.Entry) {
	for _, dir := range r.Marks {
		if e, ok := r.entry(dir); ok {
			out = append(out, e)
		}
	}
	if len(r.Marks) > 0 {
		return out
	}
	if e, why := r.chosenEntry(m); why == "" && e.Folder == "" {
		out = append(out, e)
	}
	return out
}

// loadedRun holds the curves of a run for the overlay.
type loadedRun struct {
	run   *archive.Run // nil after an error
	err   error
	bytes int64         // size of the log when it was read
	at    time.Time     // time of reading
	took  time.Duration // duration of reading
}
