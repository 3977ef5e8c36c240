package tui

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"brood/runtime/compare"
	"brood/runtime/event"
	"brood/runtime/library"
	"brood/runtime/session"
)

// runs is the state of the Runs screen: the rail of all runs, and what is laid over each other beside it.
type runs struct {
	found  map[string][]library.Entry // by folder; "" are the sessions themselves
	known  map[string]*known          // by directory
	open   map[string]bool            // folders
	err    error
	loaded bool

	chosen  string   // directory
	awaited string   // directory of a branch that was not listed yet
	marks   []string // directories, in the order of marking: the first is a
	sort    sorting

	rows   []runRow // that are shown, in their order: see sorted
	stale  bool     // rows are to be made again
	wanted string   // the filter that they were made for
	first  int      // row at the top, as last drawn
	height int      // rows that were drawn

	reader  reader
	overlay laid
}

// runRow is a line of the rail.
type runRow struct {
	library.Entry
	depth int // 1: below its folder
}

// known is what was read of a run.
type known struct {
	library.Summary
	text  string // what a filter looks at, in lower case
	spark string
	bytes int64     // of the log that it was read of
	when  time.Time // it was written, of a folder
	at    time.Time
	took  time.Duration
}

// sorting is what the rail is sorted by.
type sorting int

const (
	byTime sorting = iota
	byName
	byError
	byLoss
	byState
)

// sortings are how the rail's title says it.
var sortings = []string{"live, then last written", "by name", "by test error", "by loss", "by state"}

func newRuns() *runs {
	return &runs{found: map[string][]library.Entry{}, known: map[string]*known{}, open: map[string]bool{},
		overlay: laid{at: -1, seeds: true, held: map[string]*held{}}}
}

// Standing is a session's state in a word: its phase, or what has become of it.
func Standing(x session.Info) string {
	switch {
	case x.Err != "":
		return "broken"
	case x.Running && x.Phase == "":
		return "begins"
	case x.Phase == "": // nothing came of it, not even a round to go on from
		return "empty"
	case !x.Running && (x.Phase == event.Training || x.Phase == event.Waiting || x.Phase == event.Paused):
		return "killed"
	}
	_, word, _ := phase(x.Phase)
	return word
}

// summary is what is known of an entry so far; nil before it was read.
func (r *runs) summary(e library.Entry) *known {
	k := r.known[e.Dir]
	if k != nil {
		k.Running = e.Running
	}
	return k
}

// name is what a run is called: as a person named it, else by its directory without the day, which commands find too.
func (r *runs) name(e library.Entry) string {
	if k := r.known[e.Dir]; k != nil && k.About.Name != "" {
		return k.About.Name
	}
	if n := len("2006-01-02-"); len(e.Name) > n {
		if _, err := time.Parse("2006-01-02-", e.Name[:n]); err == nil {
			return e.Name[n:]
		}
	}
	return e.Name
}

// sorted are the lines of the rail: folders that are open have their runs below them. By time what is under way stands
// first: runs here, and those of other machines, whether their folders are open or not. A run of a sweep or a study
// here stays in its folder, which nobody lists while it is closed. Made again only where something has changed.
func (r *runs) sorted(m *model) []runRow {
	want := strings.ToLower(m.filters.text["runs"])
	if !r.stale && want == r.wanted {
		return r.rows
	}
	var abroad, rest []runRow
	r.stale, r.wanted, r.rows = false, want, r.rows[:0]
	for _, e := range r.order(r.found[""]) {
		switch {
		case e.Folder != "":
			live, row := r.folderRows(e, want)
			abroad, rest = append(abroad, live...), append(rest, row...)
		case !r.passes(e, want):
		case r.hoisted(e):
			abroad = append(abroad, runRow{e, 0})
		case r.sort == byTime && e.Running:
			r.rows = append(r.rows, runRow{e, 0})
		default:
			rest = append(rest, runRow{e, 0})
		}
	}
	// All of these are written to now: by that they would change places under the cursor from look to look.
	slices.SortStableFunc(abroad,
		func(a, b runRow) int { return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Name, b.Name)) })
	r.rows = append(append(r.rows, abroad...), rest...)
	return r.rows
}

// passes says whether a run holds every word of what the filter wants, in its name or in what is known of it.
func (r *runs) passes(e library.Entry, want string) bool {
	text := strings.ToLower(e.Name)
	if k := r.summary(e); k != nil {
		text = k.text
		if e.Folder == "" {
			text += "\x00" + Standing(k.Info)
		}
	}
	return !slices.ContainsFunc(strings.Fields(want), func(word string) bool { return !strings.Contains(text, word) })
}

// order sorts entries, which come as a scan has them.
func (r *runs) order(entries []library.Entry) []library.Entry {
	if r.sort == byTime {
		return entries
	}
	out := slices.Clone(entries)
	slices.SortStableFunc(out, func(a, b library.Entry) int {
		if a.Folder != b.Folder && (a.Folder == "" || b.Folder == "") && r.sort != byName { // folders last
			return cmp.Compare(a.Folder, b.Folder)
		}
		switch r.sort {
		case byName:
			return cmp.Compare(strings.ToLower(r.name(a)), strings.ToLower(r.name(b)))
		case byError:
			return last(r.tested(a), r.tested(b))
		case byLoss:
			return last(r.loss(a), r.loss(b))
		}
		return cmp.Compare(r.rank(a), r.rank(b))
	})
	return out
}

// last orders figures, those that are none behind all others.
func last(a, b float64) int {
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

func (r *runs) tested(e library.Entry) float64 {
	if k := r.known[e.Dir]; k != nil && k.Score != nil && k.Score.More {
		return -k.Score.Value
	} else if k != nil && k.Score != nil {
		return k.Score.Value
	}
	return math.NaN()
}

func (r *runs) loss(e library.Entry) float64 {
	if k := r.known[e.Dir]; k != nil {
		return k.Loss
	}
	return math.NaN()
}

// rank puts what needs a person first: what runs, was killed or failed, before what ended as it should.
func (r *runs) rank(e library.Entry) int {
	k := r.summary(e)
	if k == nil {
		return 9
	}
	order := []string{"training", "paused", "waiting", "killed", "failed", "broken", "stopped", "empty", "finished"}
	return slices.Index(order, Standing(k.Info))
}

// at is the row under the cursor; -1 without any.
func (r *runs) at(m *model) int {
	rows := r.sorted(m)
	if len(rows) == 0 {
		return -1
	}
	return max(0, slices.IndexFunc(rows, func(x runRow) bool { return x.Dir == r.chosen }))
}

// on is the entry under the cursor, or why there is none.
func (r *runs) on(m *model) (e library.Entry, why string) {
	i := r.at(m)
	if i < 0 {
		return e, "there is no run to choose"
	}
	return r.rows[i].Entry, ""
}

func (r *runs) move(m *model, d int) {
	if i := r.at(m); i >= 0 {
		r.choose(r.rows[min(max(0, i+d), len(r.rows)-1)].Dir)
	}
}

func (r *runs) choose(dir string) {
	r.chosen = dir
	if len(r.marks) == 0 {
		r.overlay.stale = true
	}
}

// entry finds a run by its directory.
func (r *runs) entry(dir string) (library.Entry, bool) {
	for _, list := range r.found {
		if i := slices.IndexFunc(list, func(e library.Entry) bool { return e.Dir == dir }); i >= 0 {
			return list[i], true
		}
	}
	return library.Entry{}, false
}

// picked are the runs that are laid over each other: those that are marked, else the one under the cursor.
func (r *runs) picked(m *model) (out []library.Entry) {
	for _, dir := range r.marks {
		if e, ok := r.entry(dir); ok {
			out = append(out, e)
		}
	}
	if len(r.marks) > 0 {
		return out
	}
	if e, why := r.on(m); why == "" && e.Folder == "" {
		out = append(out, e)
	}
	return out
}

// held is a run that was read for the overlay.
type held struct {
	run   *compare.Run // nil where it has no curve
	err   error
	bytes int64 // of the log that it was read of
	at    time.Time
	took  time.Duration
}
