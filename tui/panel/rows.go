package panel

import (
	"brood/runtime/event"
	"brood/runtime/view"
	"brood/tui/textfmt"
)

// Rows is a table: the heading first.
type Rows = [][]string

// NoRows says that a panel has nothing to write.
type NoRows struct{ Panel string }

func (e NoRows) Error() string {
	return "there is nothing to write of " + e.Panel + " yet: no file is made"
}

// ViewExport exports what asks nothing of the model.
func ViewExport(table func(*view.View) Rows) func(*Host) func(*view.View) Rows {
	return func(*Host) func(*view.View) Rows { return table }
}

// SeriesRows are the points of the series of some names.
func SeriesRows(v *view.View, names ...string) Rows {
	var all []*view.Series
	for _, name := range names {
		all = append(all, v.Find(name))
	}
	return PointRows(all...)
}

// PointRows are the points of some series, nil for one that there is not: of all members together, their median, and
// each. Where a view has thinned them out a row is several rounds.
func PointRows(all ...*view.Series) Rows {
	out := Rows{{"series", "member", "round", "to", "points", "min", "mean", "max"}}
	for _, s := range all {
		lo, hi := s.Rounds()
		if hi == lo {
			continue
		}
		w := s.Width()
		n := int((hi - lo + w - 1) / w)
		put := func(member string, cols []view.Bucket) {
			for i, b := range cols {
				if !b.Empty() {
					from := lo + uint64(i)*w
					out = append(out, []string{s.Name, member, textfmt.Uint(from), textfmt.Uint(min(from+w, hi) - 1), textfmt.Uint(b.Count), textfmt.Exact(b.Min),
						textfmt.Exact(b.Mean()), textfmt.Exact(b.Max)})
				}
			}
		}
		end := lo + uint64(n)*w
		put("all", s.Band(view.Even(lo, end, n)))
		if len(s.Members) == 0 {
			continue
		}
		put("median", s.Median(view.Even(lo, end, n)))
		for _, id := range s.Members {
			put(textfmt.MemberID(id), s.Columns(id, view.Even(lo, end, n)))
		}
	}
	return out
}

// MachineRows returns the points of each process for an export, without the sum over processes.
func MachineRows(v *view.View) Rows {
	out := Rows{{"measure", "process", "round", "to", "points", "min", "mean", "max"}}
	for i := range v.Machines {
		s := &v.Machines[i]
		if s.Name == string(view.Between) {
			continue
		}
		process := map[string]string{}
		for _, id := range s.Members {
			process[textfmt.MemberID(id)] = ProcessName(int(id) - 1)
		}
		for _, r := range PointRows(s)[1:] {
			if name, ok := process[r[1]]; ok {
				r[1] = name
				out = append(out, r)
			}
		}
	}
	return out
}

// ProcessName returns the name of a process: "run" for the coordinator, w3 for worker 3.
func ProcessName(worker int) string {
	if worker == event.Here {
		return "run"
	}
	return textfmt.WorkerLabel(worker)
}
