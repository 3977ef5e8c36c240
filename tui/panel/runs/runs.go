// Package runs has the Runs screen: recorded sessions, overlays of their curves, and the launcher of new runs.
package runs

import (
	"cmp"
	"math"
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
	Sort    sorting

	rows   []runRow // shown rows in order, see sorted
	Stale  bool     // rows have to be recomputed
	wanted string   // filter for which rows were computed
	first  int      // top row of the last frame
	height int      // number of rows of the last frame

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
	text  string        // searched by the filter, in lower case
	spark string        // sparkline of the loss
	bytes int64         // size of the log when it was read
	when  time.Time     // modification time of a folder when it was read
	at    time.Time     // time of reading
	took  time.Duration // duration of reading
}

// sorting is the sort key of the list.
type sorting int

const (
	byTime sorting = iota
	byName
	byError
	byLoss
	byState
)

// Sortings holds the text of each sort key for the title of the list.
var Sortings = []string{"live, then last written", "by name", "by test error", "by loss", "by state"}

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

// name returns the display name of a run: the name that the user gave it, else its directory without the date, which
// commands accept too.
func (r *Runs) name(e archive.Entry) string {
	if k := r.summaries[e.Dir]; k != nil && k.About.Name != "" {
		return k.About.Name
	}
	if n := len("2006-01-02-"); len(e.Name) > n {
		if _, err := time.Parse("2006-01-02-", e.Name[:n]); err == nil {
			return e.Name[n:]
		}
	}
	return e.Name
}

// SortedRows returns the rows of the list. Runs of open folders follow their folder. When sorted by time, running runs
// come first: runs of this machine, then those of other machines, even if their folder is closed. Runs of a sweep or
// study on this machine stay in their folder, which is not scanned while it is closed. The rows are cached until Stale
// is set or the filter changes.
func (r *Runs) SortedRows(m *panel.Host) []runRow {
	want := strings.ToLower(m.Filters.Text["runs"])
	if !r.Stale && want == r.wanted {
		return r.rows
	}
	var remote, rest []runRow
	r.Stale, r.wanted, r.rows = false, want, r.rows[:0]
	for _, e := range r.order(r.Found[""]) {
		switch {
		case e.Folder != "":
			live, row := r.folderRows(e, want)
			remote, rest = append(remote, live...), append(rest, row...)
		case !r.passes(e, want):
		case r.atTop(e):
			remote = append(remote, runRow{e, 0})
		case r.Sort == byTime && e.Running:
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
	return r.rows
}

// passes reports whether the name or the summary of a run contains every word of the filter want, in lower case.
func (r *Runs) passes(e archive.Entry, want string) bool {
	text := strings.ToLower(e.Name)
	if k := r.summary(e); k != nil {
		text = k.text
		if e.Folder == "" {
			text += "\x00" + panel.SessionState(k.Info)
		}
	}
	return !slices.ContainsFunc(strings.Fields(want), func(word string) bool { return !strings.Contains(text, word) })
}

// order returns entries in the order of the sort key. Scans are already sorted by time.
func (r *Runs) order(entries []archive.Entry) []archive.Entry {
	if r.Sort == byTime {
		return entries
	}
	out := slices.Clone(entries)
	slices.SortStableFunc(out, func(a, b archive.Entry) int {
		if a.Folder != b.Folder && (a.Folder == "" || b.Folder == "") && r.Sort != byName { // folders last
			return cmp.Compare(a.Folder, b.Folder)
		}
		switch r.Sort {
		case byName:
			return cmp.Compare(strings.ToLower(r.name(a)), strings.ToLower(r.name(b)))
		case byError:
			return compareNaNLast(r.testMetric(a), r.testMetric(b))
		case byLoss:
			return compareNaNLast(r.loss(a), r.loss(b))
		}
		return cmp.Compare(r.rank(a), r.rank(b))
	})
	return out
}

// compareNaNLast compares numbers and orders NaN after all others.
func compareNaNLast(a, b float64) int {
	switch {
	case math.IsNaN(a) && math.IsNaN(b):
		return 0
	case math.IsNaN(a):
		return 1
	case math.IsNaN(b):
		return -1
	}
	return cmp.Compare(a, b)
}

// testMetric returns the test metric of a run with lower as better; NaN if there is none.
func (r *Runs) testMetric(e archive.Entry) float64 {
	if k := r.summaries[e.Dir]; k != nil && k.Score != nil && k.Score.More {
		return -k.Score.Value
	} else if k != nil && k.Score != nil {
		return k.Score.Value
	}
	return math.NaN()
}

// loss returns the last loss of a run; NaN if there is none.
func (r *Runs) loss(e archive.Entry) float64 {
	if k := r.summaries[e.Dir]; k != nil {
		return k.Loss
	}
	return math.NaN()
}

// rank orders runs by state: running, killed and failed runs, which may need attention, before finished ones.
func (r *Runs) rank(e archive.Entry) int {
	k := r.summary(e)
	if k == nil {
		return 9
	}
	order := []string{"training", "paused", "waiting", "killed", "failed", "broken", "stopped", "empty", "finished"}
	return slices.Index(order, panel.SessionState(k.Info))
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
