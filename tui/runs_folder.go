package tui

import (
	"fmt"
	"path/filepath"
	"slices"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/library"
	"brood/tui/cell"
)

// hoisted says whether a run of another machine stands among what is under way, in place of below that machine.
func (r *runs) hoisted(e library.Entry) bool { return r.sort == byTime && e.Host != "" && e.Running }

// folderRows are the line of a folder with those below it, none where no part of it passes the filter, and its runs
// that stand elsewhere.
func (r *runs) folderRows(e library.Entry, want string) (hoisted, rows []runRow) {
	within := r.within(e, want)
	if len(within) == 0 && !r.passes(e, want) {
		return nil, nil
	}
	rows = append(rows, runRow{e, 0})
	for _, x := range within {
		switch {
		case r.hoisted(x):
			hoisted = append(hoisted, runRow{x, 0})
		case r.unfolded(e, want):
			rows = append(rows, runRow{x, 1})
		}
	}
	return hoisted, rows
}

// within are the runs of a folder that are shown where it is open: all of one that passes the filter itself, else those
// that pass.
func (r *runs) within(folder library.Entry, want string) (out []library.Entry) {
	named := r.passes(folder, want)
	for _, x := range r.order(r.found[folder.Dir]) {
		if named || r.passes(x, want) {
			out = append(out, x)
		}
	}
	return out
}

// unfolded says whether a folder's runs stand below it: a person opened it, or a filter that it does not pass itself
// looks for some of them.
func (r *runs) unfolded(folder library.Entry, want string) bool {
	return r.open[folder.Dir] || r.sought(folder, want)
}

// sought says whether a folder is shown for the runs in it that pass the filter.
func (r *runs) sought(folder library.Entry, want string) bool {
	return want != "" && !r.passes(folder, want)
}

// marksIn says whether a run of a folder is marked.
func (r *runs) marksIn(folder string) bool {
	return slices.ContainsFunc(r.marks, func(dir string) bool { return filepath.Dir(dir) == folder })
}

// keepMarked adds to a list that was begun before runs of a closed folder were marked what was known of that folder.
func (r *runs) keepMarked(found map[string][]library.Entry) {
	for _, e := range found[""] {
		if _, listed := found[e.Dir]; e.Folder != "" && !listed && r.marksIn(e.Dir) {
			found[e.Dir] = r.found[e.Dir]
		}
	}
}

// markFolder marks the runs of a folder that pass the filter, or takes their marks away where all have one, or no more
// can have. The runs of a closed one are listed first.
func (r *runs) markFolder(m *model, e library.Entry) tea.Cmd {
	if _, listed := r.found[e.Dir]; listed {
		return r.markAll(m, e)
	}
	ctx, lib := m.ctx, m.opt.Library
	return m.job(func() tea.Msg {
		list, err := lib.Scan(ctx, e.Dir)
		return reply(func(m *model) tea.Cmd {
			if err != nil {
				m.say(cell.Alert, err.Error())
				return nil
			}
			r.found[e.Dir] = list
			return r.markAll(m, e)
		})
	})
}

func (r *runs) markAll(m *model, e library.Entry) tea.Cmd {
	list := r.within(e, r.wanted)
	fresh := slices.DeleteFunc(slices.Clone(list), func(x library.Entry) bool { return slices.Contains(r.marks, x.Dir) })
	room := maxMarks - len(r.marks)
	switch {
	case len(list) == 0:
		m.say(cell.Warn, e.Name+" holds no run")
	case len(fresh) == len(list) && room <= 0:
		m.say(cell.Warn, tooMany)
	case len(fresh) == 0 || room <= 0:
		r.marks = slices.DeleteFunc(r.marks, func(dir string) bool {
			return slices.ContainsFunc(list, func(x library.Entry) bool { return x.Dir == dir })
		})
	default:
		if n := len(fresh); n > room {
			m.say(cell.Warn, fmt.Sprintf("%d of %d runs are marked: more cannot be told from each other", len(list)-n+room,
				len(list)))
		}
		for _, x := range fresh[:min(room, len(fresh))] {
			r.marks = append(r.marks, x.Dir)
		}
	}
	r.overlay.stale = true
	return r.poll(m)
}
