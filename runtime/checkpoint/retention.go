package checkpoint

import (
	"os"
	"slices"
	"strconv"

	"brood/runtime/event"
	"brood/runtime/option"
	"brood/runtime/session"
)

// Retention selects the checkpoints that a run retains, so that a fork from any round has a checkpoint nearby. Let the
// age of a checkpoint be its distance to the newest one in rounds. A checkpoint is removed if the ages of its
// neighbours differ by at most a factor of two. Then the distance from any round back to the checkpoint before it is at
// most its distance to the newest one. If the limits require it, checkpoints with larger factors are removed too.
type Retention struct {
	maxCount int   // number of checkpoints
	maxBytes int64 // total size of all checkpoints but the newest two
	cps      []retained
}

// retained describes the files of a checkpoint.
type retained struct {
	round uint64
	bytes int64
	files []string
}

const (
	DefaultCount      = 16
	defaultOlderBytes = 1 << 30 // limit of the total size of all checkpoints but the newest ones
	newestRetained    = 2       // number of newest checkpoints, which are retained regardless of their size
)

// NewRetention returns the retention with the limits of the options, without checkpoints.
func NewRetention(o option.Options) Retention {
	k := Retention{maxCount: DefaultCount, maxBytes: defaultOlderBytes}
	if n, err := strconv.Atoi(option.Checkpoints.Text(o)); err == nil {
		k.maxCount = n
	}
	return k
}

// Add updates the checkpoints with the next record of the log.
func (k *Retention) Add(rec event.Record) {
	switch cp := rec.Checkpoint; {
	case rec.Plan != nil: // later rounds are recomputed
		k.cps = slices.DeleteFunc(k.cps, func(x retained) bool { return x.round > rec.Plan.At })
	case rec.Alert != nil && rec.Alert.Kind == event.AlertDisk: // free space on the disk
		k.cps = k.cps[max(0, len(k.cps)-newestRetained):]
	case cp != nil:
		k.cps = slices.DeleteFunc(k.cps, func(x retained) bool { return x.round >= cp.Round })
		x := retained{round: cp.Round, files: Paths(cp)}
		for _, f := range cp.Files {
			x.bytes += f.Bytes
		}
		k.cps = append(k.cps, x)
		k.thin()
	}
}

// thin removes checkpoints until the limits hold and every factor exceeds two; each time the one with the smallest
// factor.
func (k *Retention) thin() {
	for {
		n := len(k.cps) - newestRetained
		least, ratio := -1, 0.0
		for i := range max(0, n) {
			if x := k.age(i-1) / k.age(i+1); least < 0 || x <= ratio {
				least, ratio = i, x
			}
		}
		var bytes int64
		for _, x := range k.cps[:max(0, n)] {
			bytes += x.bytes
		}
		if least < 0 || ratio > 2 && n <= k.maxCount-newestRetained && bytes <= k.maxBytes {
			return
		}
		k.cps = slices.Delete(k.cps, least, least+1)
	}
}

// age returns the rounds from the i-th checkpoint to the newest one. Index -1 is the start of the run, at round 0.
func (k *Retention) age(i int) float64 {
	newest := k.cps[len(k.cps)-1].round
	if i < 0 {
		return float64(newest)
	}
	return float64(newest - k.cps[i].round)
}

// DropBefore removes the checkpoints before a round: the log no longer has them.
func (k *Retention) DropBefore(round uint64) {
	k.cps = slices.DeleteFunc(k.cps, func(x retained) bool { return x.round < round })
}

// DropMissing removes checkpoints whose files do not exist in dir: an earlier process with lower limits deleted them.
func (k *Retention) DropMissing(dir string) {
	k.cps = slices.DeleteFunc(k.cps, func(x retained) bool {
		for _, rel := range x.files {
			if path, err := session.Path(dir, rel); err != nil || !regular(path) {
				return true
			}
		}
		return false
	})
}

// regular reports whether path is an existing regular file.
func regular(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular()
}

// Paths returns the files of the retained checkpoints, relative to the session.
func (k *Retention) Paths() (out []string) {
	for _, x := range k.cps {
		out = append(out, x.files...)
	}
	return out
}

// Paths returns the files of a checkpoint, nil for a nil checkpoint.
func Paths(cp *event.Checkpoint) (out []string) {
	if cp != nil {
		for _, f := range cp.Files {
			out = append(out, f.Path)
		}
	}
	return out
}
