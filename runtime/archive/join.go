package archive

import (
	"path/filepath"
	"slices"
	"strings"

	"brood/runtime/axis"
	"brood/runtime/event"
)

// Join makes runs a set. Call it once for a run. A fork whose parent is in the set starts at its fork point, and its
// seconds and bytes include those that the parent had spent there. Runs with equal names get different ones.
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

// parentAmong returns the run that r was forked from, or nil. It compares directories if the log of r has that of its
// parent, else the name and the settings that a fork shares with its parent; the run must have reached the fork point.
// If several fit, it returns the only one in the same directory as r, or nil.
func (r *Run) parentAmong(runs []*Run) *Run {
	if r.Parent == "" {
		return nil
	}
	var found, siblings []*Run
	for _, p := range runs {
		if p != r && p.MayBeParent(r.View.Config) {
			if found = append(found, p); filepath.Dir(p.Dir) == filepath.Dir(r.Dir) {
				siblings = append(siblings, p)
			}
		}
	}
	for _, list := range [][]*Run{found, siblings} {
		if len(list) == 1 {
			return list[0]
		}
	}
	return nil
}

// MayBeParent reports whether a fork with this configuration may have been forked from the run.
func (r *Run) MayBeParent(fork *event.Config) bool {
	o := r.View.Config
	switch {
	case r.clock.End()[axis.Rounds] < float64(fork.ParentAt):
		return false
	case fork.Parent != filepath.Base(fork.Parent):
		return r.Dir == filepath.Clean(fork.Parent)
	}
	return r.Name == fork.Parent && o.Seed == fork.Seed && o.Model == fork.Model && o.Data == fork.Data
}

// Joined reports whether the run is a fork whose parent is in its set.
func (r *Run) Joined() bool { return r.parent != nil }

// Whole reports whether the seconds and bytes of the run count from the start of its training. Those of a fork whose
// parent is not in its set are of the fork alone, and those of a log without its older records of the others alone.
func (r *Run) Whole() bool { return r.View.Config.Begins == nil && (r.Parent == "" || r.whole) }

// Metric returns a figure of the run; seconds and bytes include those of its parent if the two are joined. ok is false
// if the run does not have the figure.
func (r *Run) Metric(name string) (x float64, ok bool) {
	x, ok = r.Figures[name]
	if i := slices.Index(spent, name); i >= 0 && ok {
		x += r.clock.Ticks[0][[]axis.Axis{axis.Bytes, axis.Seconds}[i]]
	}
	return x, ok
}

// Aged returns the round of a result on the test set if the run has committed later rounds, else 0.
func (r *Run) Aged(name string) uint64 {
	if e := r.View.Evaluation; e != nil && strings.HasPrefix(name, "test_") && e.Round < r.Rounds {
		return e.Round
	}
	return 0
}

// spent are the metrics by which only whole runs can be compared.
var spent = []string{"bytes", "seconds"}

// ranked returns the runs that can be compared by a metric.
func ranked(runs []*Run, metric string) (out []*Run) {
	for _, r := range runs {
		if r.Whole() || !slices.Contains(spent, metric) {
			out = append(out, r)
		}
	}
	return out
}

// distinguish renames runs with equal names, which are in different directories, to the shortest different ends of
// their paths.
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

// tail returns the last parts names of a path, or the path if it has fewer.
func tail(path string, parts int) string {
	at := len(path)
	for range parts {
		if at = strings.LastIndexByte(path[:at], filepath.Separator); at < 0 {
			return path
		}
	}
	return path[at+1:]
}
