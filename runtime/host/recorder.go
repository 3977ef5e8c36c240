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

// keyframePeriod is the minimum time between keyframes: views saved in the log, so that a viewer can seek without
// applying all records. The records between two keyframes are also at least as large as the first of them, so that
// keyframes take at most half of the log. Applying that many records costs no more than reading a keyframe.
const keyframePeriod = 5 * time.Second

// Estimated bytes in the log, before compression, of a record and of each value in its points.
const recordBytes, valueBytes = 100, 12

// recorder implements fleet.Recorder: it appends records to the session and then passes them to the control socket. It
// must be used only on the event loop of the fleet.
type recorder struct {
	sess    *session.Session
	control *control.Server
	trouble func(why event.PauseReason, reason string) // pauses the run
	framed  time.Time                                  // time of the last keyframe
	size    int                                        // bytes of the last keyframe
	since   int                                        // estimated bytes of the records after it
	alerted uint64                                     // number of dropped records that alerts have reported
}

// Append implements fleet.Recorder. If the disk is full or fails, it pauses the run as long as the records fit into the
// reserved space; otherwise it returns the error, which ends the run. Once the disk works again, it records an alert
// with the number of dropped records.
func (r *recorder) Append(records ...event.Record) error {
	if err := r.sess.Append(records...); err != nil {
		var disk *session.DiskError
		if !errors.As(err, &disk) || disk.Missing > 0 {
			return err
		}
		r.trouble(event.PauseDisk, err.Error())
	} else if n := r.sess.Dropped(); n > r.alerted { // the disk works again
		text := fmt.Sprintf("%d points, evaluations and measurements were not recorded while the disk was full: the "+
			"charts of a replay have a gap", n-r.alerted)
		records = append(records, alertRecord(r.control.View().Progress.Rounds, event.AlertDisk, text))
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

// keyframe saves the current view in the log. It ignores a disk error, and a view that is too large, as with tens of
// thousands of members: without a keyframe only seeks are slower.
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
