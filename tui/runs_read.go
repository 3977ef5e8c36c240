package tui

import (
	"slices"
	"strings"
	"time"

	"brood/runtime/archive"

	tea "charm.land/bubbletea/v2"

	"brood/tui/chart"
)

// reader is the state of the jobs that read for the Runs screen. Each of the three kinds runs at most once at a time,
// and none of them in Update.
type reader struct {
	scanning, summing, curving bool

	scanned  time.Time       // start of the last scan
	took     time.Duration   // duration of the last scan
	filtered bool            // the last scan included all folders, for a filter
	todo     []archive.Entry // entries with a missing or outdated summary; those in view are read before them
	read     int             // summaries since the last save
}

const (
	scanEvery = 2 * time.Second       // shortest time between scans
	sumFor    = 25 * time.Millisecond // duration of a batch of summaries; a frame may be drawn after it
	sumMost   = 512                   // entries of a batch
	agedAfter = 5 * time.Second       // age at which a summary in view is read again
	patience  = 20                    // a read that took t is repeated after patience*t at the earliest
	linkWait  = time.Minute           // shortest time until a failed machine is asked again
)

// poll starts the reads that the screen needs. It does nothing while another screen is shown.
func (r *runs) poll(m *model) tea.Cmd {
	if !m.leads(runsPanel) {
		return nil
	}
	r.stale = r.stale || r.reader.summing // new summaries may change the order
	return tea.Batch(r.scan(m), r.sum(m), r.curves(m))
}

// scan starts a scan of the sessions, the machines, and the folders that are open, have marked runs or, with a filter,
// all of them. It does nothing while a scan is running, or if the last one is recent.
func (r *runs) scan(m *model) tea.Cmd {
	now, filtered := m.opt.Clock(), m.filters.text["runs"] != ""
	looks := filtered && !r.reader.filtered // a new filter needs the closed folders now
	if d := &r.reader; d.scanning || r.loaded && !looks && now.Sub(d.scanned) < max(scanEvery, patience*d.took) {
		return nil
	}
	r.reader.scanning, r.reader.scanned, r.reader.filtered = true, now, filtered
	ctx, lib, clock := m.ctx, m.opt.Library, m.opt.Clock
	folders := []string{""}
	for _, e := range r.found[""] {
		if e.Folder == archive.HostFolder || e.Folder != "" && (r.open[e.Dir] || filtered || r.marksIn(e.Dir)) {
			folders = append(folders, e.Dir)
		}
	}
	return m.job(func() tea.Msg {
		began, found := clock(), map[string][]archive.Entry{}
		for _, dir := range folders {
			list, err := lib.Scan(ctx, dir)
			if err != nil {
				return reply(func(*model) tea.Cmd { r.scanFailed(err); return nil })
			}
			found[dir] = list
		}
		took := clock().Sub(began)
		return reply(func(m *model) tea.Cmd { return r.storeScan(m, found, took) })
	})
}

// scanFailed stores the error of a scan.
func (r *runs) scanFailed(err error) { r.reader.scanning, r.loaded, r.err = false, true, err }

// rescan starts a scan without waiting for the scan period, after a change from here.
func (r *runs) rescan(m *model) tea.Cmd {
	r.loaded = r.loaded && r.reader.scanning
	return r.scan(m)
}

// storeScan stores the result of a scan: entries by folder. It removes marks of runs that no longer exist and queues
// the summaries that are missing.
func (r *runs) storeScan(m *model, found map[string][]archive.Entry, took time.Duration) tea.Cmd {
	r.reader.scanning, r.reader.took, r.loaded, r.err = false, took, true, nil
	r.keepMarked(found)
	r.found, r.stale, r.reader.todo = found, true, r.reader.todo[:0]
	for _, e := range found[""] {
		if _, seen := r.open[e.Dir]; e.Folder == archive.HostFolder && !seen { // a configured host starts open
			r.open[e.Dir] = true
		}
	}
	if n := len(r.marks); n > 0 { // remove marks of runs that no longer exist
		r.marks = slices.DeleteFunc(r.marks, r.gone)
		r.overlay.stale = r.overlay.stale || len(r.marks) < n
	}
	for _, list := range found {
		for _, e := range list {
			if r.needsSummary(m, e) {
				r.reader.todo = append(r.reader.todo, e)
			}
		}
	}
	return tea.Batch(r.sum(m), r.curves(m))
}

// needsSummary reports whether the summary of an entry is missing, or older than its log and due to be read again.
func (r *runs) needsSummary(m *model, e archive.Entry) bool {
	k := r.known[e.Dir]
	return k == nil || (k.bytes != e.Bytes || e.Folder != "" && !k.when.Equal(e.Written)) &&
		m.opt.Clock().Sub(k.at) >= patience*k.took
}

// outdated reports whether a summary is old enough to be read again. Another process may have renamed or annotated the
// run meanwhile, which does not change its log.
func (r *runs) outdated(m *model, e archive.Entry) bool {
	k := r.known[e.Dir]
	return k != nil && m.opt.Clock().Sub(k.at) >= max(agedAfter, patience*k.took)
}

// sum starts a batch of summaries: first of the entries in view, then of the queue. Without any left it saves the
// cache.
func (r *runs) sum(m *model) tea.Cmd {
	if r.reader.summing {
		return nil
	}
	var next []archive.Entry
	rows := r.sorted(m)
	from := min(r.first, len(rows))
	for _, x := range rows[from:min(len(rows), from+max(r.height, m.h))] {
		if r.needsSummary(m, x.Entry) || r.outdated(m, x.Entry) {
			next = append(next, x.Entry)
		}
	}
	visible := len(next)
	for len(next) == 0 && len(r.reader.todo) > 0 {
		n := min(len(r.reader.todo), sumMost)
		for _, e := range r.reader.todo[:n] {
			if r.needsSummary(m, e) {
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
		return reply(func(m *model) tea.Cmd { return r.storeSummaries(m, read, next[len(read):]) })
	})
}

// sparkline draws a curve as a string of block characters.
func sparkline(curve []float64) string {
	cols := chart.Of(curve)
	return chart.Sparks(cols, chart.Fit(true, cols))
}

// storeSummaries stores the summaries of a batch and queues the entries that were left.
func (r *runs) storeSummaries(m *model, read []*known, left []archive.Entry) tea.Cmd {
	r.reader.summing, r.reader.read = false, r.reader.read+len(read)
	for _, k := range read {
		if old := r.known[k.Dir]; old == nil || old.About.Name != k.About.Name { // charts and the table show names
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

// save writes the cache of summaries if there are new ones.
func (r *runs) save(m *model) tea.Cmd {
	if r.reader.read == 0 {
		return nil
	}
	r.reader.read, r.stale = 0, true
	lib := m.opt.Library
	return m.job(func() tea.Msg {
		_ = lib.Save() // an error only costs time: missing summaries are read again
		return nil
	})
}

// curves starts to read the curves of the next selected run that has none or whose log has grown. It continues with the
// others, one at a time.
func (r *runs) curves(m *model) tea.Cmd {
	if r.reader.curving {
		return nil
	}
	now := m.opt.Clock()
	for _, e := range r.selectedRuns(m) {
		if e.Host != "" && !slices.Contains(r.marks, e.Dir) { // request remote curves only for marked runs
			continue
		}
		h := r.overlay.loaded[e.Dir]
		if h != nil {
			again, wait := h.bytes != e.Bytes, patience*h.took
			if e.Host != "" && h.err != nil { // retry after a failed connection although the log has not grown
				again, wait = true, max(wait, linkWait)
			}
			if !again || now.Sub(h.at) < wait {
				continue
			}
		}
		r.reader.curving = true
		lib, clock := m.opt.Library, m.opt.Clock
		return m.job(func() tea.Msg {
			h := &loadedRun{bytes: e.Bytes, at: clock()}
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
