package coordinator

import (
	"math"
	"time"

	"brood/runtime/event"
)

// SaveByCost as [Config.SavePeriod] lets the run choose the time between checkpoints, from the duration of a save and
// the time between faults.
const SaveByCost time.Duration = -1

// FirstSave is the time from the start of a new run to its first checkpoint, unless faults come more often.
const FirstSave = 3 * time.Second

const (
	shortestSavePeriod = 500 * time.Millisecond
	faultPrior         = time.Hour   // mean time between faults that is assumed before anything is known
	sameFault          = time.Second // faults within this time of each other count as one
)

// savePeriod returns the time between checkpoints. The period that loses least time to saves and to repeated rounds is
// the root of 2 x duration of a save x mean time between faults (Young 1974, Daly 2006).
func (c *Coordinator) savePeriod() time.Duration {
	if c.cfg.SavePeriod != SaveByCost {
		return c.cfg.SavePeriod
	}
	between := c.faults.Between(c.now)
	switch {
	case c.saveCost > 0:
	case c.cfg.Resume != nil: // the first save measures its duration, and a process that failed once may fail again early
		return shortestSavePeriod
	default:
		return min(FirstSave, max(shortestSavePeriod, between))
	}
	best := time.Duration(math.Sqrt(2 * float64(c.saveCost) * float64(between)))
	return c.saveCost + max(shortestSavePeriod, best) // counted from the start of a save
}

// saveTook updates the duration of a save, a moving average: a disk that was busy once does not raise it for good.
func (c *Coordinator) saveTook(d time.Duration) {
	if c.saveCost > 0 {
		d = (c.saveCost + d) / 2
	}
	c.saveCost = max(1, d)
}

// FaultRate is computed from the records of a log: the mean time between faults that return the run to a checkpoint: a
// rollback, or the end of a process without an end of the run.
type FaultRate struct {
	mean   time.Duration // 0: no fault yet
	last   int64         // time of the last fault, or of the first record; in nanoseconds since 1970
	newest int64         // time of the newest record
	ended  bool          // the last state is an end of the run
}

// Take applies the next record.
func (f *FaultRate) Take(r event.Record) {
	if f.last == 0 {
		f.last = r.At
	}
	switch {
	case r.Alert != nil && r.Alert.Kind == event.AlertRollback:
		f.add(r.At)
	case r.State != nil:
		switch {
		case r.State.Reason != event.Resumed:
		case !f.ended:
			f.add(f.newest)
			fallthrough
		default: // nothing could fail while no process ran
			f.last = r.At
		}
		f.ended = r.State.Phase.Over()
	}
	f.newest = r.At
}

// add counts a fault. The mean is geometric and gives the newest interval half the weight, since times between faults
// span orders of magnitude.
func (f *FaultRate) add(at int64) {
	interval := time.Duration(at - f.last)
	if interval < sameFault {
		return
	}
	f.mean, f.last = f.after(interval), at
}

func (f *FaultRate) after(interval time.Duration) time.Duration {
	mean := f.mean
	if mean == 0 {
		mean = faultPrior
	}
	return time.Duration(math.Sqrt(float64(mean) * float64(interval)))
}

// Between returns the mean time between faults. It grows while none comes: a run that has just begun fails more easily
// than one that has trained for hours.
func (f *FaultRate) Between(now time.Time) time.Duration {
	if quiet := time.Duration(now.UnixNano() - f.last); f.mean == 0 || quiet > f.mean {
		return f.after(quiet)
	}
	return f.mean
}
