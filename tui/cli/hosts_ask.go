package cli

import (
	"cmp"
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

	"brood/runtime/archive"

	"brood/models/stderrtail"
	"brood/models/subprocess"
	"brood/runtime/session"
	"brood/transport/wire"
)

// Runs on other machines have directory-like names: ssh://HOST/SESSION, and url://HOST for a run with a URL.
const sshScheme, urlScheme = "ssh://", "url://"

const (
	askEvery     = 10 * time.Second // period of requests to a machine
	pollURLEvery = time.Minute      // period for a run with a URL: it notifies its owner of each connection
	askTimeout   = 20 * time.Second // timeout of a request
)

// hosts requests the runs of other machines while the list is on the screen. A listing never blocks: it returns the
// last answers. end cancels the pending requests and waits for them.
type hosts struct {
	lines []hostLine
	err   error // of reading the hosts file
	began time.Time
	ctx   context.Context
	stop  context.CancelFunc
	asks  sync.WaitGroup

	mu   sync.Mutex
	last map[string]*answer // by name
}

// answer is the last answer of a host.
type answer struct {
	entries []archive.Entry
	sums    map[string]archive.Summary // by Dir
	run     *archive.Run               // curves of a run with a URL; nil if unread is set
	unread  error
	err     error
	asking  bool
	at      time.Time // of the answer; zero before the first
}

// stopped returns a copy of the answer after a failed request: err is set, and no run is marked as running.
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

// line returns the host of a directory name, and the session name after it.
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

// all returns the hosts as list entries: a folder for each machine, an entry for each run with a URL. It starts a
// request to each host whose answer is old.
func (h *hosts) all() (out []archive.Entry) {
	if h.err != nil {
		out = append(out, archive.Entry{
			Name:    hostsFile,
			Dir:     sshScheme,
			Folder:  archive.HostFolder,
			Host:    hostsFile,
			Asked:   true,
			Written: h.began,
		})
	}
	for _, l := range h.lines {
		h.ask(l)
		h.mu.Lock()
		t := h.last[l.Name]
		e := archive.Entry{
			Name:    l.Name,
			Dir:     sshScheme + l.Name,
			Folder:  archive.HostFolder,
			Host:    l.Name,
			Asked:   true,
			Written: t.at,
		}
		if l.URL != "" {
			e.Dir, e.Folder = urlScheme+l.Name, ""
			e.Bytes, e.Running = t.at.UnixMilli(), t.err == nil && !t.at.IsZero()
		}
		out = append(out, e)
		h.mu.Unlock()
	}
	return out
}

// within returns the runs of a machine, from its last answer.
func (h *hosts) within(l hostLine) []archive.Entry {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last[l.Name].entries
}

// summary returns the summary of a host or of one of its runs, from its last answer.
func (h *hosts) summary(e archive.Entry) archive.Summary {
	l, _, ok := h.line(e.Dir)
	h.mu.Lock()
	defer h.mu.Unlock()
	s := archive.Summary{Info: session.Info{Name: e.Name, Dir: e.Dir, Started: e.Written}, Loss: math.NaN()}
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
		s.Err = "requesting the runs of " + l.Name
	}
	return s
}

// ask starts a request to a host, unless one is pending or the last answer is recent.
func (h *hosts) ask(l hostLine) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.last[l.Name]
	every := askEvery
	if l.URL != "" {
		every = pollURLEvery
	}
	if t.asking || time.Since(t.at) < every || h.ctx.Err() != nil {
		return
	}
	t.asking = true
	h.asks.Go(func() {
		ctx, cancel := context.WithTimeout(h.ctx, askTimeout)
		defer cancel()
		next := &answer{}
		if l.SSH != "" {
			next.entries, next.sums, next.err = askSSH(ctx, l)
		} else {
			next = askURL(ctx, l)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		if next.err != nil { // keep the last good answer
			next = h.last[l.Name].stopped(next.err)
		}
		next.at = time.Now()
		h.last[l.Name] = next
	})
}

// sshCommand returns the ssh command that runs brood with these words on the machine. The words are quoted for the
// remote shell.
func (l hostLine) sshCommand(ctx context.Context, terminal bool, words ...string) *exec.Cmd {
	args := []string{"-o", "ConnectTimeout=10"}
	if terminal {
		args = append(args, "-t")
	} else {
		args = append(args, "-o", "BatchMode=yes", "-T")
	}
	remote := cmp.Or(l.Command, "brood") + " " + subprocess.Quote(words...)
	return exec.CommandContext(ctx, "ssh", append(args, "--", l.SSH, remote)...)
}

// askSSH requests the runs of a machine by `brood sessions --rail`.
func askSSH(ctx context.Context, l hostLine) (entries []archive.Entry, sums map[string]archive.Summary, err error) {
	err = l.runRemote(ctx, func(out io.Reader) (err error) {
		entries, sums, err = readRail(out, l.Name)
		return err
	}, "sessions", "--rail")
	return entries, sums, err
}

// runRemote runs brood on the machine and passes its output to read. If the command fails, the error is its last line
// on stderr.
func (l hostLine) runRemote(ctx context.Context, read func(io.Reader) error, words ...string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := l.sshCommand(ctx, false, words...)
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
	counter := &countingReader{r: out}
	err = read(counter)
	late := ctx.Err() != nil
	if err != nil && counter.n > 0 {
		cancel() // stop the command: read has failed
	}
	ended, lines := c.Wait(), tail.Lines()
	switch {
	case late:
		return fmt.Errorf("no answer within %v", askTimeout)
	case err != nil && counter.n > 0:
		return err
	case ended == nil || errors.Is(ended, exec.ErrWaitDelay): // a helper process of ssh may keep stderr open
		return err
	case slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, "unknown flag") }):
		return errors.New("its brood is too old for this command: update it")
	case len(lines) > 0:
		return errors.New(strings.TrimSuffix(wire.CleanText(lines[len(lines)-1]), "."))
	}
	return ended
}

// countingReader counts the bytes that are read.
type countingReader struct {
	r io.Reader
	n int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// maxURLBytes is the largest response that is accepted from a run with a URL; a run with 64 members sends 2 MB.
const maxURLBytes = 32 << 20

// askURL connects to a run with a URL, reads a snapshot and disconnects.
func askURL(ctx context.Context, l hostLine) *answer {
	run, err := connectRemote(ctx, l.URL, clientName(), false)
	if err != nil {
		return &answer{err: err}
	}
	defer run.Close()
	run.Bound(maxURLBytes)
	v, err := run.Snapshot(ctx, 1<<62)
	if err != nil {
		return &answer{err: err}
	}
	s := archive.Summary{Info: session.Info{
		Name:      l.Name,
		Dir:       urlScheme + l.Name,
		Running:   true,
		Phase:     v.State.Phase,
		Round:     v.Progress.Rounds,
		Algorithm: v.Algorithm(),
	}, Members: len(v.Members().Members), Loss: math.NaN()}
	if c := v.Config; c != nil {
		s.Preset, s.Model, s.Data, s.Seed = c.Preset, c.ModelName(), c.Data, c.Seed
		if e := v.Evaluation; e != nil {
			s.TestRound, s.Score = e.Round, session.ScoredOf(c, e)
		}
	}
	a := &answer{}
	if a.run, a.unread = archive.Seen(l.Name, v); a.unread == nil {
		a.run.Dir = s.Dir
		s.Follow(a.run)
	}
	a.sums = map[string]archive.Summary{s.Dir: s}
	return a
}

// lastCurves returns the curves of a run with a URL, from its last answer.
func (h *hosts) lastCurves(l hostLine) (*archive.Run, error) {
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
	return nil, fmt.Errorf("%s has not answered yet", l.Name)
}
