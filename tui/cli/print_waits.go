package cli

import (
	"fmt"
	"time"

	"brood/runtime/view"
	"brood/tui"
)

// Lines of what workers do appear where no other line does: the first one soon, the others rarely.
const (
	waitFirst = 2 * time.Second
	waitEvery = 10 * time.Second
)

// waiter is a printer that says what workers do while no round ends.
type waiter interface {
	waits(d *view.Doing, now time.Time)
}

// watchWaits has a printer that is a waiter say what doing reports, until end is called.
func watchWaits(out printer, doing func() *view.Doing) (end func()) {
	if k, ok := out.(*loggedPrinter); ok {
		out = k.printer
	}
	w, ok := out.(waiter)
	if !ok {
		return func() {}
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case now := <-tick.C:
				w.waits(doing(), now)
			case <-stop:
				return
			}
		}
	}()
	return func() {
		close(stop)
		<-done
	}
}

// waits prints what workers do, if that has taken a while and no line is recent.
func (p *plainPrinter) waits(d *view.Doing, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d == nil || d.For < waitFirst || now.Sub(p.last) < waitFirst || now.Sub(p.waited) < waitEvery &&
		d.Stage == p.stage {
		return
	}
	if d.Stage == view.StageRound && d.For < waitEvery { // an ordinary round
		return
	}
	p.release()
	p.waited, p.stage = now, d.Stage
	fmt.Fprintf(p.out, "brood: %s, %s\n", tui.DoingText(*d), shortTime(d.For.Seconds()))
}
