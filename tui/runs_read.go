package tui

import (
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/library"
	"brood/tui/chart"
)

// reader is what is being read for the Runs screen: each of the three at most once at a time, and none of it in
// Update.
type reader struct {
	scanning, summing, curving bool

	scanned  time.Time
	took     time.Duration   // of the last scan
	filtered bool            // that looked into all folders
	todo     []library.Entry // whose summaries are not known, or are of a shorter log; those in view go before
	read     int             // summaries since the last save
}

const (
	scanEvery = 2 * time.Second       // at least
	sumFor    = 25 * time.Millisecond // a batch of summaries: then a frame may be drawn
	sumMost   = 512
	agedAfter = 5 * time.Second // of a summary in view
	patience  = 20              // what takes so long is done again after so many times as long
	linkWait  = time.Minute     // another machine that failed is asked again
)

// poll asks for what the screen lacks while it is shown.
func (r *runs) poll(m *model) tea.Cmd {
	if !m.leads(runsPanel) {
		return nil
	}
	r.stale = r.stale || r.reader.summing // what was read meanwhile may belong elsewhere
	return tea.Batch(r.scan(m), r.sum(m), r.curves(m))
}

// scan lists the sessions, machines, and the folders that are open, have marks, or may hold what a filter looks for.
func (r *runs) scan(m *model) tea.Cmd {
	now, filtered := m.opt.Clock(), m.filters.text["runs"] != ""
	looks := filtered && !r.reader.filtered // into closed folders, from now on
	if d := &r.reader; d.scanning || r.loaded && !looks && now.Sub(d.scanned) < max(scanEvery, patience*d.took) {
		return nil
	}
	r.reader.scanning, r.reader.scanned, r.reader.filtered = true, now, filtered
	ctx, lib, clock := m.ctx, m.opt.Library, m.opt.Clock
	folders := []string{""}
	for _, e := range r.found[""] {
		if e.Folder == library.HostFolder || e.Folder != "" && (r.open[e.Dir] || filtered || r.marksIn(e.Dir)) {
			folders = append(folders, e.Dir)
		}
	}
	return m.job(func() tea.Msg {
		began, found := clock(), map[string][]library.Entry{}
		for _, dir := range folders {
			list, err := lib.Scan(ctx, dir)
			if err != nil {
				return reply(func(*model) tea.Cmd { r.missed(err); return nil })
			}
			found[dir] = list
		}
		took := clock().Sub(began)
		return reply(func(m *model) tea.Cmd { return r.listed(m, found, took) })
	})
}

func (r *runs) missed(err error) { r.reader.scanning, r.loaded, r.err = false, true, err }

// again lists anew at once: something here has changed it.
func (r *runs) again(m *model) tea.Cmd {
	r.loaded = r.loaded && r.reader.scanning
	return r.scan(m)
}

func (r *runs) listed(m *model, found map[string][]library.Entry, took time.Duration) tea.Cmd {
	r.reader.scanning, r.reader.took, r.loaded, r.err = false, took, true, nil
	r.keepMarked(found)
	r.found, r.stale, r.reader.todo = found, true, r.reader.todo[:0]
	for _, e := range found[""] {
		if _, seen := r.open[e.Dir]; e.Folder == library.HostFolder && !seen { // whoever names it wants to see its runs
			r.open[e.Dir] = true
		}
	}
	if n := len(r.marks); n > 0 { // those that are gone
		r.marks = slices.DeleteFunc(r.marks, r.gone)
		r.overlay.stale = r.overlay.stale || len(r.marks) < n
	}
	for _, list := range found {
		for _, e := range list {
			if r.lacks(m, e) {
				r.reader.todo = append(r.reader.todo, e)
			}
		}
	}
	return tea.Batch(r.sum(m), r.curves(m))
}

// lacks says whether a summary is missing, or old. One that takes long is not read again soon.
func (r *runs) lacks(m *model, e library.Entry) bool {
	k := r.known[e.Dir]
	return k == nil || (k.bytes != e.Bytes || e.Folder != "" && !k.when.Equal(e.Written)) &&
		m.opt.Clock().Sub(k.at) >= patience*k.took
}

// aged says whether what is known was read some time ago: another may have given the run a name or a note since, which
// its log does not tell.
func (r *runs) aged(m *model, e library.Entry) bool {
	k := r.known[e.Dir]
	return k != nil && m.opt.Clock().Sub(k.at) >= max(agedAfter, patience*k.took)
}

// sum reads summaries for a moment: those in view, and then the others.
func (r *runs) sum(m *model) tea.Cmd {
	if r.reader.summing {
		return nil
	}
	var next []library.Entry
	rows := r.sorted(m)
	from := min(r.first, len(rows))
	for _, x := range rows[from:min(len(rows), from+max(r.height, m.h))] {
		if r.lacks(m, x.Entry) || r.aged(m, x.Entry) {
			next = append(next, x.Entry)
		}
	}
	visible := len(next)
	for len(next) == 0 && len(r.reader.todo) > 0 {
		n := min(len(r.reader.todo), sumMost)
		for _, e := range r.reader.todo[:n] {
			if r.lacks(m, e) {
				next = append(next, e)
			}
		}
		r.reader.todo = r.reader.todo[n:]
	}
	if len(next) == 0 {
		return r.save(m)
	}
	r.reader.summing = true
	lib, clock, began := m.opt.Library, m.opt.Clock, time.Now()
	return m.job(func() tea.Msg {
		var read []*known
		for i, e := range next {
			if i > 0 && i >= visible && time.Since(began) > sumFor || m.ctx.Err() != nil {
				break
			}
			at := clock()
			k := &known{Summary: lib.Summary(e), bytes: e.Bytes, when: e.Written, at: at}
			k.took = clock().Sub(at)
			k.text = strings.ToLower(strings.Join(append(k.About.Tags, e.Name, k.About.Name, k.About.Note, e.Folder, k.Preset,
				k.Algorithm, k.Model, k.Data, k.Parent), "\x00"))
			k.spark = sparkline(k.Curve)
			read = append(read, k)
		}
		return reply(func(m *model) tea.Cmd { return r.summed(m, read, next[len(read):]) })
	})
}

// sparkline is a curve as a word.
func sparkline(curve []float64) string {
	cols := chart.Of(curve)
	return chart.Sparks(cols, chart.Fit(true, cols))
}

// summed takes what was read, and what was not for want of time.
func (r *runs) summed(m *model, read []*known, left []library.Entry) tea.Cmd {
	r.reader.summing, r.reader.read = false, r.reader.read+len(read)
	for _, k := range read {
		if old := r.known[k.Dir]; old == nil || old.About.Name != k.About.Name { // charts and table have names
			r.overlay.stale = true
		}
		r.known[k.Dir] = k
	}
	r.reader.todo = slices.Concat(left, r.reader.todo)
	if len(read) == 0 {
		return nil
	}
	return r.sum(m)
}

// save keeps what was read, once there is nothing left to read.
func (r *runs) save(m *model) tea.Cmd {
	if r.reader.read == 0 {
		return nil
	}
	r.reader.read, r.stale = 0, true
	lib := m.opt.Library
	return m.job(func() tea.Msg {
		_ = lib.Save() // it is derived: the next list reads again what is not kept
		return nil
	})
}

// curves reads those of the runs that are laid over each other, one after the other.
func (r *runs) curves(m *model) tea.Cmd {
	if r.reader.curving {
		return nil
	}
	now := m.opt.Clock()
	for _, e := range r.picked(m) {
		if e.Host != "" && !slices.Contains(r.marks, e.Dir) { // a machine is asked for what somebody marks
			continue
		}
		h := r.overlay.held[e.Dir]
		if h != nil {
			again, wait := h.bytes != e.Bytes, patience*h.took
			if e.Host != "" && h.err != nil { // a link fails without the run changing
				again, wait = true, max(wait, linkWait)
			}
			if !again || now.Sub(h.at) < wait {
				continue
			}
		}
		r.reader.curving = true
		lib, clock := m.opt.Library, m.opt.Clock
		return m.job(func() tea.Msg {
			h := &held{bytes: e.Bytes, at: clock()}
			h.run, h.err = lib.Curves(e)
			h.took = clock().Sub(h.at)
			return reply(func(m *model) tea.Cmd {
				r.reader.curving = false
				r.overlay.hold(e.Dir, h, r.marks)
				return r.curves(m)
			})
		})
	}
	return nil
}
