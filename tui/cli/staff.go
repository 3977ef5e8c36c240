package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"brood/runtime/event"
	"brood/runtime/fleet"
	"brood/runtime/host"
	"brood/runtime/option"
	"brood/runtime/remote"
	"brood/runtime/session"
	"brood/runtime/sweep"
)

// staff is workers that this process starts on this machine to try a fleet out: each a process with one thread, so many
// times slower than it could be.
type staff struct {
	size int
	slow float64
	fast bool                          // but for frames
	link func(*sweep.Trial) event.Link // how slow the links of a run are
	file string                        // that keeps by how many percent workers were late, run by run
	kept map[string]int                // the same, by the name of the session

	all  []*exec.Cmd
	ends sync.WaitGroup

	mu     sync.Mutex
	over   bool  // they may end
	failed error // the first that ended too early, or what makes figures false
	stop   context.CancelFunc
	heard  chan int // by how many percent a worker was late, once it has left a run
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
	c.stop, c.heard = cancel, make(chan int, 16*c.size)
	for range c.size {
		p := exec.Command(self, c.orders()...)
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
			for lines := bufio.NewReader(said); ; {
				line, err := lines.ReadString('\n')
				if line != "" {
					last = strings.TrimPrefix(strings.TrimSpace(line), "brood: ")
					c.hear(last)
				}
				if err != nil {
					break
				}
			}
			if p.Wait() != nil {
				c.fail(fmt.Errorf("a worker ended too early: %s", last))
			}
		})
	}
	return ctx, cancel, nil
}

// orders are the arguments by which a worker is started.
func (c *staff) orders() []string {
	out := []string{"worker", "-", "--" + option.Threads.Name, "1", "--slow", fmt.Sprint(c.slow), "--patience", "20s"}
	if c.fast {
		out = append(out, "--fast-frames")
	}
	return out
}

// fail ends the runs, where they are not over.
func (c *staff) fail(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over && c.failed == nil {
		c.failed = why
		c.stop()
	}
}

// hear takes in what a worker says.
func (c *staff) hear(line string) {
	slow, percent := 0.0, 0
	if _, err := fmt.Sscanf(line, remote.LateNote, &slow, &percent); err != nil {
		return
	}
	select {
	case c.heard <- percent:
	default: // nobody listens: a run was interrupted again and again
	}
}

// late is by how many percent the latest worker missed its pace in the run that has just ended. Whoever says nothing in
// time, since it has died, is no part of it.
func (c *staff) late() (most int) {
	if c.slow <= 1 {
		return 0
	}
	in := time.NewTimer(leaveTime)
	defer in.Stop()
	for range c.size {
		select {
		case n := <-c.heard:
			most = max(most, n)
		case <-in.C:
			return most
		}
	}
	return most
}

// recall reads what the file keeps; there may be none.
func (c *staff) recall() error {
	c.kept = map[string]int{}
	text, err := os.ReadFile(c.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(text, &c.kept)
	}
	if err != nil {
		return fmt.Errorf("%s: %w: remove it, and the figures do not say which workers were late", c.file, err)
	}
	return nil
}

// keep notes by how many percent workers were late in a run.
func (c *staff) keep(t *sweep.Trial, percent int) error {
	c.kept[filepath.Base(t.Dir)] = percent
	text, err := json.Marshal(c.kept)
	if err == nil {
		err = session.WriteFile(c.file, ".late-", append(text, '\n'))
	}
	return err
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

// shape slows the links of a run that is about to start down, and ends the runs where that is refused.
func (c *staff) shape(ctx context.Context, run *host.Run, t *sweep.Trial) {
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
			c.fail(fmt.Errorf("%s: its links could not be slowed down: %w", t, err))
		}
	}()
}
