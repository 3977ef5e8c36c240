package runs

import (
	"fmt"
	"path/filepath"
	"slices"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/archive"
	"brood/tui/cell"
	"brood/tui/panel"
)

// atTop reports whether a run of another machine is listed at the top, among the running runs, instead of in its
// folder.
func atTop(order panel.RunList, e archive.Entry) bool {
	return order.Sort == "" && e.Host != "" && e.Running
}

// folderRows returns the row of a folder followed by those of its runs, and the rows of its runs that are listed at the
// top. Both are nil if neither the folder nor a run of it passes the filter.
func (r *Runs) folderRows(order panel.RunList, e archive.Entry) (top, rows []runRow) {
	within := r.within(order, e)
	if len(within) == 0 && !r.passes(e) {
		return nil, nil
	}
	rows = append(rows, runRow{e, 0})
	for _, x := range within {
		switch {
		case atTop(order, x):
			top = append(top, runRow{x, 0})
		case r.expanded(e):
			rows = append(rows, runRow{x, 1})
		}
	}
	return top, rows
}

// within returns the runs of a folder that pass the filter, or all of them if the folder itself passes.
func (r *Runs) within(order panel.RunList, folder archive.Entry) (out []archive.Entry) {
	named := r.passes(folder)
	for _, x := range r.order(order, r.Found[folder.Dir]) {
		if named || r.passes(x) {
			out = append(out, x)
		}
	}
	return out
}

// expanded reports whether the runs of a folder are listed below it: it is open, or shown only for runs that pass the
// filter.
func (r *Runs) expanded(folder archive.Entry) bool {
	return r.Open[folder.Dir] || r.matchedInside(folder)
}

// matchedInside reports whether a folder is shown only because runs in it pass the filter.
func (r *Runs) matchedInside(folder archive.Entry) bool {
	return r.wanted != "" && !r.passes(folder)
}

// marksIn reports whether a run of a folder is marked.
func (r *Runs) marksIn(folder string) bool {
	return slices.ContainsFunc(r.Marks, func(dir string) bool { return filepath.Dir(dir) == folder })
}

// keepMarked adds closed folders with marked runs to the result of a scan that started before the runs were marked,
// with the entries of the scan before.
func (r *Runs) keepMarked(found map[string][]archive.Entry) {
	for _, e := range found[""] {
		if _, listed := found[e.Dir]; e.Folder != "" && !listed && r.marksIn(e.Dir) {
			found[e.Dir] = r.Found[e.Dir]
		}
	}
}

// markFolder marks the runs of a folder that pass the filter. If all are marked, or no more marks are possible, it
// removes their marks. It first scans a folder that was not scanned yet.
func (r *Runs) markFolder(m *panel.Host, e archive.Entry) tea.Cmd {
	if _, listed := r.Found[e.Dir]; listed {
		return r.markAll(m, e)
	}
	ctx, lib := m.Ctx, m.Opt.Library
	return m.Job(func() tea.Msg {
		list, err := lib.Scan(ctx, e.Dir)
		return panel.Reply(func(m *panel.Host) tea.Cmd {
			if err != nil {
				m.Say(cell.Alert, err.Error())
				return nil
			}
			r.Found[e.Dir] = list
			return r.markAll(m, e)
		})
	})
}

func (r *Runs) markAll(m *panel.Host, e archive.Entry) tea.Cmd {
	list := r.within(m.Opt.Settings.Runs, e)
	fresh := slices.DeleteFunc(slices.Clone(list), func(x archive.Entry) bool {
		return slices.Contains(r.Marks, x.Dir)
	})
	room := MaxMarks - len(r.Marks)
	switch {
	case len(list) == 0:
		m.Say(cell.Warn, e.Name+" has no runs")
	case len(fresh) == len(list) && room <= 0:
		m.Say(cell.Warn, tooMany)
	case len(fresh) == 0 || room <= 0:
		r.Marks = slices.DeleteFunc(r.Marks, func(dir string) bool {
			return slices.ContainsFunc(list, func(x archive.Entry) bool { return x.Dir == dir })
		})
	default:
		if n := len(fresh); n > room {
			m.Say(cell.Warn, fmt.Sprintf("%d of %d runs are marked: more could not be distinguished", len(list)-n+room,
				len(list)))
		}
		for _, x := range fresh[:min(room, len(fresh))] {
			r.Marks = append(r.Marks, x.Dir)
		}
	}
	r.Overlay.Stale = true
	return r.Poll(m)
}
