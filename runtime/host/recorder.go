package host

import (
	"errors"
	"fmt"
	"time"

	"github.com/fxamacker/cbor/v2"

	"brood/runtime/control"
	"brood/runtime/event"
	"brood/runtime/session"
)

// keyframePeriod is the least time between views saved in the log, so that a viewer can seek without folding it all.
// What was appended since is at least as large as the view was, so that they take no more of the log than records do:
// to fold so many costs no more than to read one.
const keyframePeriod = 5 * time.Second

// A record and a value in one take about so many bytes of the log, before it is compressed.
const recordBytes, valueBytes = 100, 12

// recorder is the log as the fleet sees it: what is in the session is then shown at the control socket. It belongs to the fleet's
// event loop.
type recorder struct {
	sess    *session.Session
	control *control.Server
	trouble func(why event.PauseReason, reason string)
	framed  time.Time
	size    int    // of the last keyframe, in bytes
	since   int    // bytes appended after it
	alerted uint64 // of the dropped records, those that an alert speaks of
}

// Append implements fleet.Recorder. A disk that is full or failing pauses the run while records still find room in what
// was reserved, and ends it when they do not.
func (r *recorder) Append(records ...event.Record) error {
	if err := r.sess.Append(records...); err != nil {
		var disk *session.DiskError
		if !errors.As(err, &disk) || disk.Missing > 0 {
			return err
		}
		r.trouble(event.PauseDisk, err.Error())
	} else if n := r.sess.Dropped(); n > r.alerted { // there is room again
		records = append(records, alertRecord(r.control.View().Progress.Rounds, event.AlertDisk, fmt.Sprintf("%d points, evaluations and measurements were not recorded while the disk had no room: the charts of a replay have a gap", n-r.alerted)))
		r.alerted = n
		if err := r.sess.Append(records[len(records)-1]); err != nil {
			return err
		}
	}
	for _, rec := range records {
		r.control.Watch(rec)
		r.since += recordBytes
		if rec.Points != nil {
			r.since += valueBytes * len(rec.Points.Values)
		}
	}
	if now := time.Now(); now.Sub(r.framed) >= keyframePeriod && r.since >= r.size {
		r.framed = now
		return r.keyframe()
	}
	return nil
}

// keyframe saves the present view. One that cannot be saved, or is too large since there are tens of thousands of
// members, is only missed by seeks.
func (r *recorder) keyframe() error {
	v := r.control.View()
	p, err := cbor.Marshal(v)
	if err != nil {
		return err
	}
	r.size, r.since = len(p), 0
	var disk *session.DiskError
	if err := r.sess.AppendKeyframe(p); err != nil && !errors.Is(err, session.ErrKeyframe) && !errors.As(err, &disk) {
		return err
	}
	return nil
}
