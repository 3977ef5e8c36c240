package archive

import (
	"path/filepath"
	"slices"
	"strings"

	"brood/runtime/axis"
)

// Join makes runs a set, once: a fork whose parent is among them is drawn from its fork point on, and counts the
// seconds and bytes that its parent had spent there as its own; and runs of one name get names that differ.
func Join(runs []*Run) {
	for _, r := range runs {
		r.parent = r.parentAmong(runs)
	}
	joined := map[*Run]bool{}
	var join func(r *Run)
	join = func(r *Run) {
		if joined[r] || r.parent == nil {
			return
		}
		joined[r] = true
		join(r.parent)
		for _, a := range []axis.Axis{axis.Bytes, axis.Seconds} {
			r.clock.Shift(a, r.parent.clock.At(a, axis.Rounds, float64(r.ParentAt)))
		}
		r.whole = r.parent.Whole()
	}
	for _, r := range runs {
		join(r)
	}
	distinguish(runs)
}

// parentAmong finds the run that r was forked from: by its directory where the log has that, and else by its name, what
// a fork shares with its parent, and whether it got so far. Of several of those it is the one beside r, or none.
func (r *Run) parentAmong(runs []*Run) *Run {
	if r.Parent == "" {
		return nil
	}
	path := r.Parent != filepath.Base(r.Parent)
	c := r.View.Config
	var found, beside []*Run
	for _, p := range runs {
		o := p.View.Config
		switch {
		case p == r || p.clock.End()[axis.Rounds] < float64(r.ParentAt):
		case path && p.Dir != filepath.Clean(r.Parent):
		case !path && (p.Name != r.Parent || o.Seed != c.Seed || o.Model != c.Model || o.Data != c.Data):
		default:
			if found = append(found, p); filepath.Dir(p.Dir) == filepath.Dir(r.Dir) {
				beside = append(beside, p)
			}
		}
	}
	for _, list := range [][]*Run{found, beside} {
		if len(list) == 1 {
			return list[0]
		}
	}
	return nil
}

// Joined says whether the run is a fork whose parent is among the runs that it was joined with.
func (r *Run) Joined() bool { return r.parent != nil }

// Whole says whether the run's seconds and bytes are counted from where its training began: not those of a fork whose
// parent is not among the runs, which are of the fork alone.
func (r *Run) Whole() bool { return r.Parent == "" || r.whole }

// Metric is a figure that the run came to, with what its parent had spent where the two are joined; ok is false where
// it did not come to it.
func (r *Run) Metric(name string) (x float64, ok bool) {
	x, ok = r.Figures[name]
	if i := slices.Index(spent, name); i >= 0 && ok {
		x += r.clock.Ticks[0][[]axis.Axis{axis.Bytes, axis.Seconds}[i]]
	}
	return x, ok
}

// Aged is the round that a result on the test set is of, where the run has done more since; else 0.
func (r *Run) Aged(name string) uint64 {
	if e := r.View.Evaluation; e != nil && strings.HasPrefix(name, "test_") && e.Round < r.Rounds {
		return e.Round
	}
	return 0
}

// spent are the metrics that only whole runs can be compared by.
var spent = []string{"bytes", "seconds"}

// ranked are the runs that are compared by a metric.
func ranked(runs []*Run, metric string) (out []*Run) {
	for _, r := range runs {
		if r.Whole() || !slices.Contains(spent, metric) {
			out = append(out, r)
		}
	}
	return out
}

// distinguish names runs of equal names, which lie in different directories, by as much of those as it takes.
func distinguish(runs []*Run) {
	for parts := 2; ; parts++ {
		count := map[string]int{}
		for _, r := range runs {
			count[r.Name]++
		}
		longer := false
		for _, r := range runs {
			if name := tail(r.Dir, parts); count[r.Name] > 1 && len(name) > len(r.Name) {
				r.Name, longer = name, true
			}
		}
		if !longer {
			return
		}
	}
}

// tail is the end of a path, so many names long; with fewer names it is the path.
func tail(path string, parts int) string {
	at := len(path)
	for range parts {
		if at = strings.LastIndexByte(path[:at], filepath.Separator); at < 0 {
			return path
		}
	}
	return path[at+1:]
}
