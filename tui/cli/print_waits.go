package cli

import (
	"fmt"
	"time"

	"brood/runtime/view"
	"brood/tui/panel"
	"brood/tui/textfmt"
)

const (
	waitFirst = 2 * time.Second  // time without a line after which the first line is printed
	waitEvery = 10 * time.Second // least time between further lines of the same stage
)

// watchWaits prints each second what workers do while no round ends, until end is called. Only plain lines report it.
func watchWaits(out *loggedPrinter, doing func() *view.Doing) (end func()) {
	p, ok := out.printer.(*plainPrinter)
	if !ok {
		return func() {}
	}
	return every(time.Second, func(now time.Time) { p.printWait(doing(), now) })
}

// printWait prints what workers do, if that has taken a while and no line is recent.
func (p *plainPrinter) printWait(d *view.Doing, now time.Time) {
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
	fmt.Fprintf(p.out, "brood: %s, %s\n", panel.DoingText(*d), textfmt.Estimate(d.For.Seconds()))
}
