package cli

import (
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

// workerPool starts and stops worker processes on this machine, for measurements of a fleet. Each has one thread and
// is slowed down by a factor.
type workerPool struct {
	size      int
	slow      float64                       // factor by which each worker is slowed down
	fast      bool                          // do not slow frames down
	link      func(*sweep.Trial) event.Link // the rate and delay of all links of a run
	file      string                        // JSON: lateByRun
	lateByRun map[string]int                // lateness of the latest worker in percent, by session name

	cmds  []*exec.Cmd
	exits sync.WaitGroup

	mu          sync.Mutex
	stopping    bool  // workers may exit without an error
	failed      error // the first premature exit of a worker, or a failure that makes the figures invalid
	stop        context.CancelFunc
	lateReports chan int // one entry each time a worker leaves a run: its lateness in percent
}

// exitTimeout is how long workers may take to exit after the last run.
const exitTimeout = 5 * time.Second

// start launches the workers, which join at url. The returned context ends with ctx, by the returned function, and
// when a worker exits prematurely. Call stopAll afterwards.
func (c *workerPool) start(ctx context.Context, url string) (context.Context, context.CancelFunc, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	c.stop, c.lateReports = cancel, make(chan int, 16*c.size)
	for range c.size {
		p := exec.Command(self, c.args()...)
		p.Stdin = strings.NewReader(url + "\n")
		p.SysProcAttr = detached() // Ctrl-C goes to this process, which stops the workers
		output, err := p.StdoutPipe()
		p.Stderr = p.Stdout
		if err == nil {
			err = p.Start()
		}
		if err != nil {
			cancel()
			return nil, nil, errors.Join(fmt.Errorf("start a worker: %w", err), c.stopAll())
		}
		c.cmds = append(c.cmds, p)
		c.exits.Go(func() {
			last := ""
			eachLine(output, func(line string) {
				last = strings.TrimPrefix(strings.TrimSpace(line), "brood: ")
				c.parseLate(last)
			})
			if p.Wait() != nil {
				c.fail(fmt.Errorf("a worker exited before the end of the runs: %s", last))
			}
		})
	}
	return ctx, cancel, nil
}

// args returns the command-line arguments of a worker.
func (c *workerPool) args() []string {
	out := []string{"worker", "-", "--" + option.Threads.Name, "1", "--slow", fmt.Sprint(c.slow), "--retry", "20s"}
	if c.fast {
		out = append(out, "--fast-frames")
	}
	return out
}

// fail records the first error and cancels the runs, unless the pool is stopping.
func (c *workerPool) fail(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stopping && c.failed == nil {
		c.failed = why
		c.stop()
	}
}

// parseLate queues the lateness from an output line of a worker, and ignores other lines.
func (c *workerPool) parseLate(line string) {
	slow, percent := 0.0, 0
	if _, err := fmt.Sscanf(line, remote.LateNote, &slow, &percent); err != nil {
		return
	}
	select {
	case c.lateReports <- percent:
	default: // full, without a reader: runs were interrupted repeatedly
	}
}

// maxLate returns the lateness of the latest worker in the run that just ended, in percent. It waits up to exitTimeout
// for the reports and ignores workers that have not reported by then.
func (c *workerPool) maxLate() (most int) {
	if c.slow <= 1 {
		return 0
	}
	in := time.NewTimer(exitTimeout)
	defer in.Stop()
	for range c.size {
		select {
		case n := <-c.lateReports:
			most = max(most, n)
		case <-in.C:
			return most
		}
	}
	return most
}

// loadLate reads lateByRun from the file. A missing file is no error.
func (c *workerPool) loadLate() error {
	c.lateByRun = map[string]int{}
	text, err := os.ReadFile(c.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(text, &c.lateByRun)
	}
	if err != nil {
		return fmt.Errorf("%s: %w; remove the file, and the figures do not show which workers were late", c.file, err)
	}
	return nil
}

// saveLate stores the lateness of a run, in percent, in the file.
func (c *workerPool) saveLate(t *sweep.Trial, percent int) error {
	c.lateByRun[filepath.Base(t.Dir)] = percent
	text, err := json.Marshal(c.lateByRun)
	if err == nil {
		err = session.WriteFile(c.file, ".late-", append(text, '\n'))
	}
	return err
}

// stopAll waits up to exitTimeout for the workers to exit, then kills the rest. It returns the error that fail
// recorded.
func (c *workerPool) stopAll() error {
	c.mu.Lock()
	c.stopping = true
	c.mu.Unlock()
	gone := make(chan struct{})
	go func() { c.exits.Wait(); close(gone) }()
	select {
	case <-gone:
	case <-time.After(exitTimeout):
		for _, p := range c.cmds {
			_ = p.Process.Kill()
		}
		<-gone
	}
	return c.failed
}

// shapeLinks applies the rate and delay to the links of a run that is about to start. It does not block; if the run
// rejects the command, it cancels all runs.
func (c *workerPool) shapeLinks(ctx context.Context, run *host.Run, t *sweep.Trial) {
	l := c.link(t)
	if l.Rate == 0 && l.Delay == 0 {
		return
	}
	go func() { // the run answers once it has started
		r, err := run.Command(ctx, event.Command{Link: &l})
		if err == nil && !r.Accepted {
			err = errors.New(r.Reason)
		}
		if err != nil && !errors.Is(err, fleet.ErrOver) && ctx.Err() == nil {
			c.fail(fmt.Errorf("%s: its links could not be slowed down: %w", t, err))
		}
	}()
}
