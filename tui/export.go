package tui

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	tea "charm.land/bubbletea/v2"

	"brood/tui/cell"
	"brood/tui/panel"
	"brood/tui/textfmt"
)

type exportedMsg struct {
	path string
	rows int
	err  error
}

func (m *model) whyNoExport() string {
	if m.Opt.NoFiles {
		return "no file can be written on the host of this viewer: export with brood attach from your own machine"
	}
	if m.panel(m.Focus).Export == nil {
		return m.focused() + " has no export: tab leads to charts and tables"
	}
	return ""
}

// focused returns the name of the focused panel from its title.
func (m *model) focused() string {
	title, _ := m.panel(m.Focus).Title(m.Host)
	name, _, _ := strings.Cut(title, "  ")
	return name
}

// export writes the table of the focused panel into the current directory.
func (m *model) export() tea.Cmd {
	table, v := m.panel(m.Focus).Export(m.Host), m.Shown.Clone()
	name := "run"
	if m.Opt.Session != "" {
		name = filepath.Base(m.Opt.Session)
	}
	name += "-" + string(m.Focus)
	title := m.focused()
	return m.Job(func() tea.Msg {
		all := table(v)
		if len(all) < 2 {
			return exportedMsg{err: panel.NoRows{Panel: title}}
		}
		path, err := writeCSV(name, all)
		return exportedMsg{path, len(all) - 1, err}
	})
}

func (m *model) exported(msg exportedMsg) {
	if errors.As(msg.err, new(panel.NoRows)) {
		m.Say(cell.Warn, msg.err.Error())
		return
	}
	if msg.err != nil {
		m.Say(cell.Alert, "export: "+msg.err.Error())
		return
	}
	m.Say(cell.Good, fmt.Sprintf("%s in %s", textfmt.Count(msg.rows, "row"), msg.path))
}

// writeCSV writes NAME.csv, or NAME-2.csv and so on: it does not overwrite files.
func writeCSV(name string, all panel.Rows) (path string, err error) {
	var f *os.File
	for i := 1; f == nil; i++ {
		path = name + ".csv"
		if i > 1 {
			path = fmt.Sprintf("%s-%d.csv", name, i)
		}
		if path, err = filepath.Abs(path); err != nil {
			return path, err
		}
		if f, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644); err != nil &&
			!errors.Is(err, fs.ErrExist) {
			return path, err
		}
	}
	err = errors.Join(csv.NewWriter(f).WriteAll(all), f.Close())
	if err != nil {
		err = errors.Join(err, os.Remove(path))
	}
	return path, err
}
