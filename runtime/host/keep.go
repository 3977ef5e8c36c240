package host

import (
	"os"
	"slices"
	"strconv"

	"brood/runtime/event"
	"brood/runtime/option"
	"brood/runtime/session"
)

// keeper folds records into the checkpoints that stay so that one is near, whatever round a branch begins after. One is
// removed where those beside it are no more than a factor of two apart, as far back as they lie: a round has then no
// more rounds to the checkpoint before it than to the newest one. With more than it may keep, the factor grows.
type keeper struct {
	most int   // checkpoints
	room int64 // bytes of those before the newest two
	cps  []kept
}

// kept is as much of a checkpoint as it takes to find its files.
type kept struct {
	round uint64
	bytes int64
	files []string
}

const (
	defaultCheckpoints = 16
	olderBytes         = 1 << 30 // of all older checkpoints of a session
	newestKept         = 2       // whatever they take
)

func newKeeper(o option.Options) keeper {
	k := keeper{most: defaultCheckpoints, room: olderBytes}
	if n, err := strconv.Atoi(option.Checkpoints.Text(o)); err == nil {
		k.most = n
	}
	return k
}

// take looks at the next record.
func (k *keeper) take(rec event.Record) {
	switch cp := rec.Checkpoint; {
	case rec.Plan != nil: // what lies behind it is done again
		k.cps = slices.DeleteFunc(k.cps, func(x kept) bool { return x.round > rec.Plan.At })
	case rec.Alert != nil && rec.Alert.Kind == event.AlertDisk: // older checkpoints are the first to make room
		k.cps = k.cps[max(0, len(k.cps)-newestKept):]
	case cp != nil:
		k.cps = slices.DeleteFunc(k.cps, func(x kept) bool { return x.round >= cp.Round })
		x := kept{round: cp.Round, files: paths(cp)}
		for _, f := range cp.Files {
			x.bytes += f.Bytes
		}
		k.cps = append(k.cps, x)
		k.thin()
	}
}

// thin removes, as long as there are too many, the one that is missed least.
func (k *keeper) thin() {
	for {
		n := len(k.cps) - newestKept
		least, ratio := -1, 0.0
		for i := range max(0, n) {
			if x := k.back(i-1) / k.back(i+1); least < 0 || x <= ratio {
				least, ratio = i, x
			}
		}
		var bytes int64
		for _, x := range k.cps[:max(0, n)] {
			bytes += x.bytes
		}
		if least < 0 || ratio > 2 && n <= k.most-newestKept && bytes <= k.room {
			return
		}
		k.cps = slices.Delete(k.cps, least, least+1)
	}
}

// back is how far the i-th checkpoint lies behind the newest; before the first one there is the start.
func (k *keeper) back(i int) float64 {
	newest := k.cps[len(k.cps)-1].round
	if i < 0 {
		return float64(newest)
	}
	return float64(newest - k.cps[i].round)
}

// lost forgets those whose files are gone: the session was recorded by one that kept fewer.
func (k *keeper) lost(dir string) {
	k.cps = slices.DeleteFunc(k.cps, func(x kept) bool {
		for _, rel := range x.files {
			if path, err := session.Path(dir, rel); err != nil || !regular(path) {
				return true
			}
		}
		return false
	})
}

func regular(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular()
}

// paths are the files that stay.
func (k *keeper) paths() (out []string) {
	for _, x := range k.cps {
		out = append(out, x.files...)
	}
	return out
}
