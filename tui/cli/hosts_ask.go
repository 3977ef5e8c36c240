package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"brood/models/stderrtail"
	"brood/runtime/compare"
	"brood/runtime/library"
	"brood/runtime/session"
	"brood/transport/wire"
)

// Runs of other machines have names like directories: ssh://HOST/SESSION, and url://HOST for a run that has a URL.
const sshScheme, urlScheme = "ssh://", "url://"

const (
	askEvery   = 10 * time.Second // a machine
	visitEvery = time.Minute      // a run with a URL, which tells its owner of every visit
	askFor     = 20 * time.Second // at most
)

// hosts asks other machines for their runs while somebody looks at the list. A listing never waits for them: it has
// what was answered last. end waits for those that are being asked.
type hosts struct {
	lines []hostLine
	err   error // why the file of hosts cannot be read
	began time.Time
	ctx   context.Context
	stop  context.CancelFunc
	asks  sync.WaitGroup

	mu   sync.Mutex
	last map[string]*answer // by name
}

// answer is what a host said last.
type answer struct {
	entries []library.Entry
	sums    map[string]library.Summary // by Dir
	run     *compare.Run               // of one with a URL: its curves, nil where unread tells why there are none
	unread  error
	err     error
	asking  bool
	at      time.Time // of the answer; zero before the first
}

// stopped is what was told, without saying that it goes on, as a host fails to tell more.
func (a *answer) stopped(err error) *answer {
	entries := slices.Clone(a.entries)
	for i := range entries {
		entries[i].Running = false
	}
	return &answer{entries: entries, sums: a.sums, run: a.run, unread: a.unread, err: err}
}

func newHosts(lines []hostLine, err error) *hosts {
	ctx, stop := context.WithCancel(context.Background())
	h := &hosts{lines: lines, err: err, began: time.Now(), ctx: ctx, stop: stop, last: map[string]*answer{}}
	for _, l := range lines {
		h.last[l.Name] = &answer{}
	}
	return h
}

func (h *hosts) end() {
	h.stop()
	h.asks.Wait()
}

// line finds the host that a directory's name is of.
func (h *hosts) line(dir string) (l hostLine, rest string, ok bool) {
	for _, scheme := range []string{sshScheme, urlScheme} {
		if after, is := strings.CutPrefix(dir, scheme); is {
			name, rest, _ := strings.Cut(after, "/")
			i := slices.IndexFunc(h.lines, func(l hostLine) bool { return l.Name == name })
			if i < 0 {
				return l, "", false
			}
			return h.lines[i], rest, true
		}
	}
	return l, "", false
}

// all are the hosts as the list has them: a folder for each machine, an entry for each run with a URL. Those that were
// not asked for some time are asked anew.
func (h *hosts) all() (out []library.Entry) {
	if h.err != nil {
		out = append(out, library.Entry{Name: hostsFile, Dir: sshScheme, Folder: library.HostFolder, Host: hostsFile, Asked: true, Written: h.began})
	}
	for _, l := range h.lines {
		h.ask(l)
		h.mu.Lock()
		t := h.last[l.Name]
		e := library.Entry{Name: l.Name, Dir: sshScheme + l.Name, Folder: library.HostFolder, Host: l.Name, Asked: true, Written: t.at}
		if l.URL != "" {
			e.Dir, e.Folder = urlScheme+l.Name, ""
			e.Bytes, e.Running = t.at.UnixMilli(), t.err == nil && !t.at.IsZero()
		}
		out = append(out, e)
		h.mu.Unlock()
	}
	return out
}

// within are the runs of a machine, as it told of them last.
func (h *hosts) within(l hostLine) []library.Entry {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last[l.Name].entries
}

// summary is what a host or one of its runs came to, as it told last.
func (h *hosts) summary(e library.Entry) library.Summary {
	l, _, ok := h.line(e.Dir)
	h.mu.Lock()
	defer h.mu.Unlock()
	s := library.Summary{Info: session.Info{Name: e.Name, Dir: e.Dir, Started: e.Written}, Loss: math.NaN()}
	if !ok {
		if h.err != nil {
			s.Err = h.err.Error()
		}
		return s
	}
	t := h.last[l.Name]
	if known, ok := t.sums[e.Dir]; ok && (!e.Asked || t.err == nil) {
		return known
	}
	s.Runs = len(t.entries)
	if t.err != nil {
		s.Err = l.Name + " does not answer: " + t.err.Error()
	} else if t.at.IsZero() {
		s.Err = "asking " + l.Name + " for its runs"
	}
	return s
}

// ask asks a host unless it is being asked, or answered just now.
func (h *hosts) ask(l hostLine) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.last[l.Name]
	every := askEvery
	if l.URL != "" {
		every = visitEvery
	}
	if t.asking || time.Since(t.at) < every || h.ctx.Err() != nil {
		return
	}
	t.asking = true
	h.asks.Go(func() {
		ctx, cancel := context.WithTimeout(h.ctx, askFor)
		defer cancel()
		next := &answer{}
		if l.SSH != "" {
			next.entries, next.sums, next.err = askSSH(ctx, l)
		} else {
			next = askURL(ctx, l)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		if next.err != nil { // what it told before is what is known
			next = h.last[l.Name].stopped(next.err)
		}
		next.at = time.Now()
		h.last[l.Name] = next
	})
}

// over is the command that does something on a machine: there a shell reads the words, so that they are quoted for one.
func (l hostLine) over(ctx context.Context, terminal bool, words ...string) *exec.Cmd {
	program := l.Command
	if program == "" {
		program = "brood"
	}
	args := []string{"-o", "ConnectTimeout=10"}
	if terminal {
		args = append(args, "-t")
	} else {
		args = append(args, "-o", "BatchMode=yes", "-T")
	}
	return exec.CommandContext(ctx, "ssh", append(args, "--", l.SSH, program+" "+quoted(words))...)
}

// askSSH asks a machine for its runs.
func askSSH(ctx context.Context, l hostLine) (entries []library.Entry, sums map[string]library.Summary, err error) {
	err = l.told(ctx, func(out io.Reader) (err error) {
		entries, sums, err = readRail(out, l.Name)
		return err
	}, "sessions", "--rail")
	if err != nil {
		return nil, nil, err
	}
	return entries, sums, nil
}

// told reads what a command says on a machine. The last that it says on standard error is why it did not answer.
func (l hostLine) told(ctx context.Context, read func(io.Reader) error, words ...string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := l.over(ctx, false, words...)
	var tail stderrtail.Tail
	c.Stderr = &tail
	c.WaitDelay = time.Second
	out, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return fmt.Errorf("ssh: %w", err)
	}
	some := &counted{r: out}
	err = read(some)
	late := ctx.Err() != nil
	if err != nil && some.n > 0 {
		cancel() // nothing that it adds would be read
	}
	ended, lines := c.Wait(), tail.Lines()
	switch {
	case late:
		return fmt.Errorf("no answer within %v", askFor)
	case err != nil && some.n > 0:
		return err
	case ended == nil || errors.Is(ended, exec.ErrWaitDelay): // a helper of ssh may keep its errors open
		return err
	case slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, "unknown flag") }):
		return errors.New("its brood is an older one, which does not tell that")
	case len(lines) > 0:
		return errors.New(strings.TrimSuffix(wire.CleanText(lines[len(lines)-1]), "."))
	}
	return ended
}

// counted counts what is read.
type counted struct {
	r io.Reader
	n int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// visitBytes is the most that is taken of a run with a URL; one of 64 members tells two megabytes.
const visitBytes = 32 << 20

// askURL looks at a run that has a URL, and leaves.
func askURL(ctx context.Context, l hostLine) *answer {
	run, err := call(ctx, l.URL, clientName(), false)
	if err != nil {
		return &answer{err: err}
	}
	defer run.Close()
	run.Bound(visitBytes)
	v, err := run.Snapshot(ctx, 1<<62)
	if err != nil {
		return &answer{err: err}
	}
	s := library.Summary{Info: session.Info{Name: l.Name, Dir: urlScheme + l.Name, Running: true, Phase: v.State.Phase, Round: v.Progress.Rounds,
		Algorithm: v.Algorithm()}, Members: len(v.Members().Members), Loss: math.NaN()}
	if c := v.Config; c != nil {
		s.Preset, s.Model, s.Data, s.Seed = c.Preset, c.ModelName(), c.Data, c.Seed
		if e := v.Evaluation; e != nil {
			s.TestRound, s.Score = e.Round, session.ScoredOf(c, e)
		}
	}
	a := &answer{}
	if a.run, a.unread = compare.Seen(l.Name, v); a.unread == nil {
		a.run.Dir = s.Dir
		s.Follow(a.run)
	}
	a.sums = map[string]library.Summary{s.Dir: s}
	return a
}

// seen are the curves of a run with a URL, as it told of them when it was looked at last.
func (h *hosts) seen(l hostLine) (*compare.Run, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch t := h.last[l.Name]; {
	case t.run != nil:
		return t.run, nil
	case t.unread != nil:
		return nil, fmt.Errorf("%s: %w", l.Name, t.unread)
	case t.err != nil:
		return nil, fmt.Errorf("%s does not answer: %w", l.Name, t.err)
	}
	return nil, fmt.Errorf("%s was not looked at yet", l.Name)
}
