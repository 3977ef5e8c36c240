package runs

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"brood/models/usererr"
	"brood/runtime/archive"
	"brood/tui/panel"
)

// openCommand returns the command that opens a run of the list by its name.
func (r *Runs) openCommand() panel.Command {
	return panel.Command{
		Name:  "open",
		Args:  "RUN",
		Title: "attach to an active run, replay any other",
		Load:  r.loadNames,
		Values: func(*panel.Host) (out []panel.Value) {
			all, times := r.listed(), map[string]int{}
			for _, e := range all {
				times[r.name(e)]++
			}
			for _, e := range all {
				word, does := r.name(e), "replay"
				if times[word] > 1 || strings.ContainsAny(word, " \t") {
					word = e.Name
				}
				if e.Running {
					does = "attach"
				}
				out = append(out, panel.Value{Word: word, Title: r.name(e) + ": " + does})
			}
			return out
		},
		Do: func(m *panel.Host, args []string) (tea.Cmd, error) {
			name := strings.Join(args, " ") // the name that a user gave may have blanks
			var all []string
			for _, e := range r.listed() {
				if e.Name != name && r.name(e) != name {
					all = append(all, r.name(e))
					continue
				}
				if why := r.whyNotOpen(m, e); why != "" {
					return nil, errors.New("open: " + why)
				}
				return r.open(m, e), nil
			}
			return nil, fmt.Errorf("open: there is no run %q%s: press tab to see the runs", name,
				usererr.Suggest(name, all))
		},
	}
}

// listed returns the runs of the last scan, those of folders last.
func (r *Runs) listed() (out []archive.Entry) {
	for _, folder := range slices.Sorted(maps.Keys(r.Found)) {
		for _, e := range r.Found[folder] {
			if e.Folder == "" {
				out = append(out, e)
			}
		}
	}
	return out
}

// loadNames lists the runs of this machine outside of folders. While the Runs screen is open, its own scans list more.
func (r *Runs) loadNames(m *panel.Host) tea.Cmd {
	if m.LeadsScreen(panel.Runs) || r.Reader.Scanning {
		return nil
	}
	ctx, lib := m.Ctx, m.Opt.Library
	return m.Job(func() tea.Msg {
		list, err := lib.Scan(ctx, "")
		return panel.Reply(func(*panel.Host) tea.Cmd {
			if err == nil { // the Runs screen shows an error
				r.Found[""], r.Stale = list, true
			}
			return nil
		})
	})
}
