package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"brood/runtime/batch"
	"brood/runtime/event"
	"brood/runtime/fleet"
	"brood/runtime/host"
	"brood/runtime/remote"
)

// staff is workers that this process starts on this machine to try a fleet out: each a process with one thread, so many
// times slower than it could be.
type staff struct {
	size int
	slow float64
	link func(*batch.Trial) event.Link // how slow the links of a run are

	all  []*exec.Cmd
	ends sync.WaitGroup

	mu     sync.Mutex
	over   bool  // they may end
	failed error // the first that ended too early
	late   int   // percent by which the slowest of them missed its pace in a run
}

// leaveTime is how long workers may take to end once the last run is over.
const leaveTime = 5 * time.Second

// start has the workers join. The context that it gives ends with ctx, by its function, and when a worker is gone too
// early.
func (c *staff) start(ctx context.Context, url string) (context.Context, context.CancelFunc, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	for range c.size {
		p := exec.Command(self, "worker", "-", "--threads", "1", "--slow", fmt.Sprint(c.slow), "--patience", "20s")
		p.Stdin = strings.NewReader(url + "\n")
		p.SysProcAttr = detached() // Ctrl-C is for this process, which ends them
		said, err := p.StdoutPipe()
		p.Stderr = p.Stdout
		if err == nil {
			err = p.Start()
		}
		if err != nil {
			cancel()
			return nil, nil, errors.Join(fmt.Errorf("start a worker: %w", err), c.end())
		}
		c.all = append(c.all, p)
		c.ends.Go(func() {
			last := ""
			for lines := bufio.NewScanner(said); lines.Scan(); {
				last = strings.TrimPrefix(lines.Text(), "brood: ")
				c.hear(last)
			}
			err := p.Wait()
			c.mu.Lock()
			defer c.mu.Unlock()
			if err != nil && !c.over && c.failed == nil {
				c.failed = fmt.Errorf("a worker ended too early: %s", last)
				cancel()
			}
		})
	}
	return ctx, cancel, nil
}

// hear takes in what a worker says.
func (c *staff) hear(line string) {
	slow, n := 0.0, 0
	if _, err := fmt.Sscanf(line, remote.LateNote, &slow, &n); err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.late = max(c.late, n)
}

// end waits for the workers, and ends those that stay. The error is of a worker that ended too early.
func (c *staff) end() error {
	c.mu.Lock()
	c.over = true
	c.mu.Unlock()
	gone := make(chan struct{})
	go func() { c.ends.Wait(); close(gone) }()
	select {
	case <-gone:
	case <-time.After(leaveTime):
		for _, p := range c.all {
			_ = p.Process.Kill()
		}
		<-gone
	}
	return c.failed
}

// shape slows the links of a run that is about to start down.
func (c *staff) shape(ctx context.Context, run *host.Run, t *batch.Trial, note func(string)) {
	l := c.link(t)
	if l.Rate == 0 && l.Delay == 0 {
		return
	}
	go func() { // it is heard once the run has begun
		r, err := run.Command(ctx, event.Command{Link: &l})
		if err == nil && !r.Accepted {
			err = errors.New(r.Reason)
		}
		if err != nil && !errors.Is(err, fleet.ErrOver) && ctx.Err() == nil {
			note(fmt.Sprintf("%s: its links are as fast as they can be: %v", t, err))
		}
	}()
}
