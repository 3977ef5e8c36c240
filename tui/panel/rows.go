package panel

import (
	"brood/runtime/event"
	"brood/runtime/view"
	"brood/tui/textfmt"
)

// Rows is a table of text. The first row holds the column names.
type Rows = [][]string

// NoRows is the error that a panel has no rows to export.
type NoRows struct{ Panel string }

func (e NoRows) Error() string {
	return e.Panel + ": no data to export yet, no file was written"
}

// ViewExport returns an Export function for a table that only needs the view.
func ViewExport(table func(*view.View) Rows) func(*Host) func(*view.View) Rows {
	return func(*Host) func(*view.View) Rows { return table }
}

// SeriesExport returns an Export function for the points of the named series.
func SeriesExport(names ...string) func(*Host) func(*view.View) Rows {
	return ViewExport(func(v *view.View) Rows { return SeriesRows(v, names...) })
}

// SeriesRows returns the points of the named series for an export.
func SeriesRows(v *view.View, names ...string) Rows {
	var all []*view.Series
	for _, name := range names {
		all = append(all, v.Find(name))
	}
	return PointRows(all...)
}

// PointRows returns the points of series for an export: of all members together, their median, and each member. It
// skips nil series. A row covers several rounds if the view merged them into one point.
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
					out = append(out, []string{s.Name, member, textfmt.Uint(from), textfmt.Uint(min(from+w, hi) - 1),
						textfmt.Uint(b.Count), textfmt.Exact(b.Min),
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
