package fleet

import (
	"context"
	"fmt"
	"time"

	"brood/runtime/message"
	"brood/runtime/worker"
)

// Seat is a worker as the fleet sees it. Both methods are called by the fleet's loop and must not wait. A
// [message.Away] or Close ends the worker at once, the one that comes first: it was killed or put out, or the run is
// over.
type Seat interface {
	Post(message.Order)
	Close()
}

// Unfinished sends workers away from a coordinator that ends before the run does.
var Unfinished = message.Away{Why: "the coordinator ends before the run does", After: time.Second}

type seated struct {
	worker int
	key    string
	seat   Seat
}

// Reserve gives the next worker's number. It may be called from any goroutine.
func (f *Fleet) Reserve() int { return int(f.nextID.Add(1) - 1) }

// Seat adds a worker that is hosted elsewhere, under a reserved number. Its key is the same whenever it comes back.
// After the run's end it closes the seat, perhaps twice.
func (f *Fleet) Seat(id int, key string, s Seat) {
	f.post(seated{id, key, s})
	select {
	case <-f.done:
		s.Close()
	default: // the loop has it, or closes it when it ends
	}
}

// unseat closes the seats that the loop has not come to.
func (f *Fleet) unseat() {
	for {
		select {
		case ev := <-f.events:
			if e, ok := ev.(seated); ok {
				e.seat.Close()
			}
		default:
			return
		}
	}
}

// Report hands on what a worker says. The caller has checked that
// its Worker is the number of the seat that it came from. It waits while the loop is busy.
func (f *Fleet) Report(r message.Report) { f.post(r) }

// Gone says that a worker hosted elsewhere is lost.
func (f *Fleet) Gone(id int, reason string) { f.post(died{worker: id, reason: reason}) }

// shortGrace is longer than two workers, or a worker and the coordinator, may differ in when they notice the same
// silence.
const shortGrace = 500 * time.Millisecond

// Attend lets w do what comes into box, and reports its replies, until ctx ends, the box is closed or a Stop comes. An
// error is a panic of w's program, or the loss of its device. A failure is reported after grace only, unless an Abort
// comes before: when a worker dies, its partners may notice before the coordinator does, and must not be blamed. A
// connection that broke between workers that are there is reported after shortGrace: by then both of them have noticed,
// and the coordinator any death. At its end w's memory is given back.
func Attend(ctx context.Context, box *Mailbox, w *worker.Worker, grace time.Duration, report func(message.Report)) error {
	defer w.Free()
	for {
		mctx, msg, ok := box.next(ctx)
		if !ok {
			return nil
		}
		if _, stop := msg.(message.Stop); stop {
			return nil
		}
		reply, err := safely(mctx, w, msg)
		if err != nil {
			return err
		}
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

// safely turns a panic of a program into the death of its worker: the others go on.
func safely(ctx context.Context, w *worker.Worker, msg message.Order) (reply message.Report, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("worker %d: program failed: %v", w.ID(), r)
		}
	}()
	return w.Handle(ctx, msg), nil
}
