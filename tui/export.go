package tui

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"brood/models/engine"
	"brood/runtime/view"
	"brood/tui/cell"
)

// rows is a table: the heading first.
type rows = [][]string

type exportedMsg struct {
	path string
	rows int
	err  error
}

// noRows says that a panel has nothing to write.
type noRows struct{ panel string }

func (e noRows) Error() string {
	return "there is nothing to write of " + e.panel + " yet: no file is made"
}

// plainly exports what asks nothing of the model.
func plainly(table func(*view.View) rows) func(*model) func(*view.View) rows {
	return func(*model) func(*view.View) rows { return table }
}

func lossRows(m *model) func(*view.View) rows {
	main := m.mainSeries()
	return func(v *view.View) rows {
		return seriesRows(v, main, view.CentreLoss, view.TestLoss, view.TestBits, view.TestError, view.TestHamming,
			view.TestRMSE, view.TestR2, view.TestFitness)
	}
}

func fitnessRows(*model) func(*view.View) rows {
	return func(v *view.View) rows { return seriesRows(v, view.Fitness, view.Spread) }
}

func replicaRows(m *model) func(*view.View) rows {
	name := m.mainSeries()
	if s := m.strip(); s != nil {
		name = s.Name
	}
	return func(v *view.View) rows { return seriesRows(v, name) }
}

func populationRows(m *model) func(*view.View) rows {
	replicas := replicaRows(m)
	return func(v *view.View) rows { return append(replicas(v), meetingRows(v)...) }
}

func (m *model) whyNoExport() string {
	if m.opt.NoFiles {
		return "no file is written at the other end: brood attach from your own machine exports"
	}
	if m.panel(m.focus).export == nil {
		return "there is nothing to export of " + m.focused() + ": tab leads to charts and tables"
	}
	return ""
}

// focused is what the title calls the panel that has the focus.
func (m *model) focused() string {
	title, _ := m.panel(m.focus).title(m)
	name, _, _ := strings.Cut(title, "  ")
	return name
}

// export writes what is behind the focused panel into the current directory.
func (m *model) export() tea.Cmd {
	table, v := m.panel(m.focus).export(m), m.shown.Clone()
	name := "run"
	if m.opt.Session != "" {
		name = filepath.Base(m.opt.Session)
	}
	name += "-" + string(m.focus)
	title := m.focused()
	return m.job(func() tea.Msg {
		all := table(v)
		if len(all) < 2 {
			return exportedMsg{err: noRows{title}}
		}
		path, err := writeCSV(name, all)
		return exportedMsg{path, len(all) - 1, err}
	})
}

func (m *model) exported(msg exportedMsg) {
	if errors.As(msg.err, new(noRows)) {
		m.say(cell.Warn, msg.err.Error())
		return
	}
	if msg.err != nil {
		m.say(cell.Alert, "export: "+msg.err.Error())
		return
	}
	m.say(cell.Good, fmt.Sprintf("%s in %s", count(msg.rows, "row"), msg.path))
}

// writeCSV writes NAME.csv, or NAME-2.csv and so on: what is there already stays.
func writeCSV(name string, all rows) (path string, err error) {
	var f *os.File
	for i := 1; f == nil; i++ {
		path = name + ".csv"
		if i > 1 {
			path = fmt.Sprintf("%s-%d.csv", name, i)
		}
		if path, err = filepath.Abs(path); err != nil {
			return path, err
		}
		if f, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644); err != nil && !errors.Is(err, fs.ErrExist) {
			return path, err
		}
	}
	err = errors.Join(csv.NewWriter(f).WriteAll(all), f.Close())
	if err != nil {
		err = errors.Join(err, os.Remove(path))
	}
	return path, err
}

// seriesRows are the points of the series of some names.
func seriesRows(v *view.View, names ...string) rows {
	var all []*view.Series
	for _, name := range names {
		all = append(all, v.Find(name))
	}
	return pointRows(all...)
}

// pointRows are the points of some series, nil for one that there is not: of all members together, their median, and
// each. Where a view has thinned them out a row is several rounds.
func pointRows(all ...*view.Series) rows {
	out := rows{{"series", "member", "round", "to", "points", "min", "mean", "max"}}
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
					out = append(out, []string{s.Name, member, uints(from), uints(min(from+w, hi) - 1), uints(b.Count), exact(b.Min),
						exact(b.Mean()), exact(b.Max)})
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
			put(memberText(id), s.Columns(id, view.Even(lo, end, n)))
		}
	}
	return out
}

// meetingRows are the meetings that a view keeps as points of the series partner, one for each: of the member with the
// lower id the other.
func meetingRows(v *view.View) (out rows) {
	if v.Meetings == nil {
		return nil
	}
	v.Meetings.Pairs(func(round uint64, a, b engine.Member) {
		at, with := uints(round), memberText(b)
		out = append(out, []string{view.Partner, memberText(a), at, at, "1", with, with, with})
	})
	return out
}

func bandwidthRows(v *view.View) rows {
	out := rows{{"round", "rounds", "seconds", "operation", "sent_bytes", "predicted_bytes"}}
	for _, c := range v.Ledger.Ring {
		for _, b := range c.Ops {
			out = append(out, []string{uints(c.To), uints(c.Rounds), exact(float64(c.Nanos) / 1e9), string(b.Op),
				strconv.FormatInt(b.Sent, 10), strconv.FormatInt(b.Predicted, 10)})
		}
	}
	return out
}

func eventRows(v *view.View) rows {
	out := rows{{"time", "trained_seconds", "round", "level", "kind", "text"}}
	for _, e := range v.Lane {
		out = append(out, []string{time.Unix(0, e.When).UTC().Format(time.RFC3339Nano),
			exact(time.Duration(e.Trained).Seconds()), uints(e.Round), string(e.Level), e.Kind, e.Text})
	}
	return out
}

func editRows(v *view.View) rows {
	out := rows{{"time", "round", "algorithm", "knob", "before", "after", "by"}}
	for _, e := range v.Edits {
		out = append(out, []string{time.Unix(0, e.When).UTC().Format(time.RFC3339Nano), uints(e.First()), e.Algorithm, e.Knob,
			e.Old, e.Expr, e.By})
	}
	return out
}

func uints(n uint64) string { return strconv.FormatUint(n, 10) }

// exact is the shortest text that reads back as the same number.
func exact(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

func memberText(id engine.Member) string { return uints(uint64(id)) }
