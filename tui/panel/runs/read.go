package runs

import (
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/archive"
	"brood/tui/chart"
	"brood/tui/panel"
)

// reader is the state of the jobs that read for the Runs screen. Each of the three kinds runs at most once at a time,
// and none of them in Update.
type reader struct {
	Scanning, summing, curving bool

	scanned  time.Time       // start of the last scan
	scanTook time.Duration   // duration of the last scan
	filtered bool            // the last scan included all folders, for a filter
	todo     []archive.Entry // entries with a missing or outdated summary; those in view are read before them
	read     int             // summaries since the last save
}

const (
	scanPeriod    = 2 * time.Second       // shortest time between scans
	batchTime     = 25 * time.Millisecond // duration of a batch of summaries; a frame may be drawn after it
	maxBatch      = 512                   // entries of a batch
	RereadAfter   = 5 * time.Second       // age at which a summary in view is read again
	rereadFactor  = 20                    // a read that took t is repeated after patience*t at the earliest
	hostRetryWait = time.Minute           // shortest time until a failed machine is asked again
)

// Poll starts the reads that the screen needs. It does nothing while another screen is shown.
func (r *Runs) Poll(m *panel.Host) tea.Cmd {
	if r.unsaved {
		r.unsaved = false
		return tea.Batch(m.SaveSettings(), r.Poll(m))
	}
	if !m.LeadsScreen(panel.Runs) {
		return nil
	}
	r.Stale = r.Stale || r.Reader.summing // new summaries may change the order
	return tea.Batch(r.scan(m), r.sum(m), r.curves(m))
}

// scan starts a scan of the sessions, the machines, and the folders that are open, have marked runs or, with a filter,
// all of them. It does nothing while a scan is running, or if the last one is recent.
func (r *Runs) scan(m *panel.Host) tea.Cmd {
	now, filtered := m.Opt.Clock(), m.Filters.Text["runs"] != ""
	looks := filtered && !r.Reader.filtered // a new filter needs the closed folders now
	if d := &r.Reader; d.Scanning || r.Loaded && !looks &&
		now.Sub(d.scanned) < max(scanPeriod, rereadFactor*d.scanTook) {
		return nil
	}
	r.Reader.Scanning, r.Reader.scanned, r.Reader.filtered = true, now, filtered
	ctx, lib, clock := m.Ctx, m.Opt.Library, m.Opt.Clock
	folders := []string{""}
	for _, e := range r.Found[""] {
		if e.Folder == archive.HostFolder || e.Folder != "" && (r.Open[e.Dir] || filtered || r.marksIn(e.Dir)) {
			folders = append(folders, e.Dir)
		}
	}
	return m.Job(func() tea.Msg {
		began, found := clock(), map[string][]archive.Entry{}
		for _, dir := range folders {
			list, err := lib.Scan(ctx, dir)
			if err != nil {
				return panel.Reply(func(*panel.Host) tea.Cmd {
					r.Reader.Scanning, r.Loaded, r.err = false, true, err
					return nil
				})
			}
			found[dir] = list
		}
		took := clock().Sub(began)
		return panel.Reply(func(m *panel.Host) tea.Cmd { return r.StoreScan(m, found, took) })
	})
}

// rescan starts a scan without waiting for the scan period, after a change from here.
func (r *Runs) rescan(m *panel.Host) tea.Cmd {
	r.Loaded = r.Loaded && r.Reader.Scanning
	return r.scan(m)
}

// StoreScan stores the result of a scan: entries by folder. It removes marks of runs that no longer exist and queues
// the summaries that are missing.
func (r *Runs) StoreScan(m *panel.Host, found map[string][]archive.Entry, took time.Duration) tea.Cmd {
	r.Reader.Scanning, r.Reader.scanTook, r.Loaded, r.err = false, took, true, nil
	r.keepMarked(found)
	r.Found, r.Stale, r.Reader.todo = found, true, r.Reader.todo[:0]
	for _, e := range found[""] {
		if _, seen := r.Open[e.Dir]; e.Folder == archive.HostFolder && !seen { // a configured host starts open
			r.Open[e.Dir] = true
		}
	}
	if n := len(r.Marks); n > 0 { // remove marks of runs that no longer exist
		r.Marks = slices.DeleteFunc(r.Marks, r.isGone)
		r.Overlay.Stale = r.Overlay.Stale || len(r.Marks) < n
	}
	for _, list := range found {
		for _, e := range list {
			if r.needsSummary(m, e) {
				r.Reader.todo = append(r.Reader.todo, e)
			}
		}
	}
	return tea.Batch(r.sum(m), r.curves(m))
}

// needsSummary reports whether the summary of an entry is missing, or older than its log and due to be read again.
func (r *Runs) needsSummary(m *panel.Host, e archive.Entry) bool {
	k := r.summaries[e.Dir]
	return k == nil || (k.bytes != e.Bytes || e.Folder != "" && !k.when.Equal(e.Written)) &&
		m.Opt.Clock().Sub(k.at) >= rereadFactor*k.took
}

// outdated reports whether a summary is old enough to be read again. Another process may have renamed or annotated the
// run meanwhile, which does not change its log.
func (r *Runs) outdated(m *panel.Host, e archive.Entry) bool {
	k := r.summaries[e.Dir]
	return k != nil && m.Opt.Clock().Sub(k.at) >= max(RereadAfter, rereadFactor*k.took)
}

// anyUnread reports whether the list has runs without a summary, which match no comparison of a filter yet.
func (r *Runs) anyUnread() bool {
	for _, list := range r.Found {
		if slices.ContainsFunc(list, func(e archive.Entry) bool { return r.summaries[e.Dir] == nil }) {
			return true
		}
	}
	return false
}

// sum starts a batch of summaries: first of the entries in view, then of the queue. Without any left it saves the
// cache.
func (r *Runs) sum(m *panel.Host) tea.Cmd {
	if r.Reader.summing {
		return nil
	}
	var next []archive.Entry
	rows := r.SortedRows(m)
	from := min(r.first, len(rows))
	for _, x := range rows[from:min(len(rows), from+max(r.height, m.H))] {
		if r.needsSummary(m, x.Entry) || r.outdated(m, x.Entry) {
			next = append(next, x.Entry)
		}
	}
	visible := len(next)
	for len(next) == 0 && len(r.Reader.todo) > 0 {
		n := min(len(r.Reader.todo), maxBatch)
		for _, e := range r.Reader.todo[:n] {
			if r.needsSummary(m, e) {
				next = append(next, e)
			}
		}
		r.Reader.todo = r.Reader.todo[n:]
	}
	if len(next) == 0 {
		return r.save(m)
	}
	r.Reader.summing = true
	lib, clock, began := m.Opt.Library, m.Opt.Clock, time.Now()
	return m.Job(func() tea.Msg {
		var read []*loadedSummary
		for i, e := range next {
			if i > 0 && i >= visible && time.Since(began) > batchTime || m.Ctx.Err() != nil {
				break
			}
			at := clock()
			k := &loadedSummary{Summary: lib.Summary(e), bytes: e.Bytes, when: e.Written, at: at}
			k.took = clock().Sub(at)
			cols := chart.Of(k.Curve)
			k.spark = chart.Sparkline(cols, chart.FitAxis(true, cols))
			read = append(read, k)
		}
		return panel.Reply(func(m *panel.Host) tea.Cmd { return r.storeSummaries(m, read, next[len(read):]) })
	})
}

// storeSummaries stores the summaries of a batch and queues the entries that were left.
func (r *Runs) storeSummaries(m *panel.Host, read []*loadedSummary, left []archive.Entry) tea.Cmd {
	r.Reader.summing, r.Reader.read = false, r.Reader.read+len(read)
	for _, k := range read {
		if old := r.summaries[k.Dir]; old == nil || old.About.Name != k.About.Name { // charts and the table show names
			r.Overlay.Stale = true
		}
		r.summaries[k.Dir] = k
	}
	r.Reader.todo = slices.Concat(left, r.Reader.todo)
	if len(read) == 0 {
		return nil
	}
	return r.sum(m)
}

// save writes the cache of summaries if there are new ones.
func (r *Runs) save(m *panel.Host) tea.Cmd {
	if r.Reader.read == 0 {
		return nil
	}
	r.Reader.read, r.Stale = 0, true
	lib := m.Opt.Library
	return m.Job(func() tea.Msg {
		_ = lib.Save() // an error only costs time: missing summaries are read again
		return nil
	})
}

// curves starts to read the curves of the next selected run that has none or whose log has grown. It continues with the
// others, one at a time.
func (r *Runs) curves(m *panel.Host) tea.Cmd {
	if r.Reader.curving {
		return nil
	}
	now := m.Opt.Clock()
	for _, e := range r.selectedRuns(m) {
		if e.Host != "" && !slices.Contains(r.Marks, e.Dir) { // request remote curves only for marked runs
			continue
		}
		h := r.Overlay.loaded[e.Dir]
		if h != nil {
			again, wait := h.bytes != e.Bytes, rereadFactor*h.took
			if e.Host != "" && h.err != nil { // retry after a failed connection although the log has not grown
				again, wait = true, max(wait, hostRetryWait)
			}
			if !again || now.Sub(h.at) < wait {
				continue
			}
		}
		r.Reader.curving = true
		lib, clock := m.Opt.Library, m.Opt.Clock
		return m.Job(func() tea.Msg {
			h := &loadedRun{bytes: e.Bytes, at: clock()}
			h.run, h.err = lib.Curves(e)
			h.took = clock().Sub(h.at)
			return panel.Reply(func(m *panel.Host) tea.Cmd {
				r.Reader.curving = false
				r.Overlay.hold(e.Dir, h, r.Marks)
				return r.curves(m)
			})
		})
	}
	return nil
}
