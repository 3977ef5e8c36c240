package fleet

import (
	"context"
	"time"

	"brood/runtime/message"
	"brood/runtime/worker"
)

// WorkerHandle is the fleet's side of a worker. The fleet's loop calls both methods, and they must not block. A
// [message.Evict] or Close, whichever comes first, ends the worker at once: it was killed or evicted, or the run is
// over.
type WorkerHandle interface {
	Post(message.Order)
	Close()
}

// Unfinished is the eviction that a coordinator sends when it ends before the run does.
var Unfinished = message.Evict{Why: "the coordinator ends before the run does", After: time.Second}

// joined is the event that a worker of another process joins.
type joined struct {
	worker  int
	key     string
	held    *message.Held
	machine string
	handle  WorkerHandle
}

// Reserve returns the number of the next worker. It may be called from any goroutine.
func (f *Fleet) Reserve() int { return int(f.nextID.Add(1) - 1) }

// returned is a worker of an earlier process under its old number.
type returned struct {
	key  string
	here bool // it has joined and is not gone
}

// ReserveOld reserves a number below Config.FirstID for the worker with this key, which had it in an earlier process.
// It returns false if another worker took the number, or this one still has it. It may be called from any goroutine.
func (f *Fleet) ReserveOld(id int, key string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, taken := f.returned[id]
	if id < 0 || id >= f.cfg.FirstID || taken && (r.key != key || r.here) {
		return false
	}
	f.returned[id] = returned{key: key}
	return true
}

// setHere records whether the worker with an old number is present. It does nothing for other numbers.
func (f *Fleet) setHere(id int, here bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r, ok := f.returned[id]; ok {
		r.here = here
		f.returned[id] = r
	}
}

// AddRemote adds a worker of another process under a reserved number. key identifies the worker when it returns; ready
// is its report that it is prepared. After the run's end AddRemote closes the handle, possibly twice.
func (f *Fleet) AddRemote(id int, key string, ready message.Ready, h WorkerHandle) {
	f.setHere(id, true)
	f.post(joined{id, key, ready.Held, ready.Machine, h})
	select {
	case <-f.done:
		h.Close()
	default: // the loop received it, or closes it when it ends
	}
}

// closeQueued closes the handles of workers that are still queued when the loop ends.
func (f *Fleet) closeQueued() {
	for {
		select {
		case ev := <-f.events:
			if e, ok := ev.(joined); ok {
				e.handle.Close()
			}
		default:
			return
		}
	}
}

// Report passes a report of a worker to the core. The caller has checked that its Worker is the number of the handle.
// Report waits while the loop is busy.
func (f *Fleet) Report(r message.Report) { f.post(r) }

// Gone reports that a worker of another process is lost.
func (f *Fleet) Gone(id int, reason string) { f.post(died{worker: id, reason: reason}) }

// shortGrace exceeds the difference between the times at which two workers, or a worker and the coordinator, notice the
// same silence.
const shortGrace = 500 * time.Millisecond

// Attend executes the orders in box with w, and passes the replies to report, until ctx ends, the box is closed or a
// Stop arrives. It returns an error if w's program panics or its device is lost. It reports a failure only after grace,
// and not if an Abort arrives before: when a worker dies, its peers may notice before the coordinator does, and must
// not be blamed. A connection that broke between two live workers is reported after shortGrace: by then both of them
// have noticed, and the coordinator has noticed any death. An order to save does not wait for the end of a grant: it is
// executed after the current round. The caller frees w.
func Attend(
	ctx context.Context,
	box *Mailbox,
	w *worker.Worker,
	grace time.Duration,
	report func(message.Report),
) error {
	w.BetweenRounds(func(ctx context.Context) {
		if m, ok := box.takeSave(); ok {
			report(w.Save(ctx, m))
		}
	})
	for {
		mctx, msg, ok := box.next(ctx)
		if !ok {
			return nil
		}
		if _, stop := msg.(message.Stop); stop {
			return nil
		}
		reply := w.Handle(mctx, msg)
		if err := w.Broken(); err != nil {
			return err
		}
		if failed, ok := reply.(message.Failed); ok && failed.NonFinite == nil && grace > 0 {
			wait := grace
			if failed.Cut != nil && !failed.Never {
				wait = min(grace, shortGrace)
			}
			select {
			case <-mctx.Done():
				continue
			case <-time.After(wait):
			}
		}
		if reply != nil {
			report(reply)
		}
	}
}
