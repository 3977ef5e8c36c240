//go:build unix

package cli

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"brood/models/longtest"
	"brood/runtime/event"
	"brood/runtime/session"
	"brood/runtime/testutil"
)

// servedRun is a served run of real processes, and the state of its log.
type servedRun struct {
	t       *testing.T
	dir     string
	env     []string
	url     string
	onLoss  string
	serve   *proc
	workers []*proc
	draw    *rand.Rand

	log    *session.Reader
	last   event.Commit
	alerts []alertAt
	plans  []event.Plan
}

type alertAt struct {
	event.Alert
	at time.Time
}

// proc is a process with its captured output.
type proc struct {
	*exec.Cmd
	out  bytes.Buffer
	done chan struct{}
}

// brood returns the command under test, after a prefix such as ip netns exec.
func (tr *servedRun) brood(prefix []string, args ...string) *exec.Cmd {
	tr.t.Helper()
	path, err := exec.LookPath("brood")
	if built := os.Getenv("BROOD_BINARY"); built != "" {
		path, err = built, nil
	}
	if err != nil {
		tr.t.Fatal(err)
	}
	all := append(append(slices.Clone(prefix), path), args...)
	c := exec.Command(all[0], all[1:]...)
	c.Env = tr.env
	return c
}

func (tr *servedRun) start(args ...string) *proc { return tr.begin(tr.brood(nil, args...)) }

func (tr *servedRun) begin(c *exec.Cmd) *proc {
	tr.t.Helper()
	p := &proc{Cmd: c, done: make(chan struct{})}
	p.Stdout, p.Stderr = &p.out, &p.out
	if err := p.Start(); err != nil {
		tr.t.Fatal(err)
	}
	go func() { defer close(p.done); _ = p.Wait() }()
	tr.t.Cleanup(func() { _ = p.Process.Kill(); testutil.Receive(tr.t, p.done, "end of a process") })
	return p
}

func (tr *servedRun) signal(p *proc, s syscall.Signal) {
	tr.t.Helper()
	if err := p.Process.Signal(s); err != nil {
		tr.t.Fatalf("%v: %v: %s", p.Args[1:], err, tail(p.out.String()))
	}
}

// exit waits for the end of a process and checks its exit status.
func (tr *servedRun) exit(p *proc, want int) {
	tr.t.Helper()
	testutil.Receive(tr.t, p.done, fmt.Sprintf("end of %v", p.Args[1:]))
	if got := p.ProcessState.ExitCode(); got != want {
		tr.t.Fatalf("%v ends with %d, want %d: %s", p.Args[1:], got, want, p.out.String())
	}
}

func (tr *servedRun) work() {
	tr.workers = append(tr.workers, tr.start("worker", tr.url, "--threads", "1", "--retry", "10m"))
}

// readLog reads the new records of the log.
func (tr *servedRun) readLog() {
	tr.t.Helper()
	for r, err := range tr.log.Rest() {
		if err != nil {
			tr.t.Fatal(err)
		}
		switch {
		case r.Commit != nil:
			tr.last = *r.Commit
		case r.Alert != nil:
			tr.alerts = append(tr.alerts, alertAt{*r.Alert, time.Unix(0, r.At)})
		case r.Plan != nil:
			tr.plans = append(tr.plans, *r.Plan)
		}
	}
}

// until waits for a condition on the log.
func (tr *servedRun) until(what string, ok func() bool) {
	tr.t.Helper()
	for end := time.Now().Add(testutil.Timeout); ; time.Sleep(10 * time.Millisecond) {
		if tr.readLog(); ok() {
			return
		}
		if time.Now().After(end) {
			for _, w := range tr.workers {
				tr.t.Logf("worker: %s", tail(w.out.String()))
			}
			tr.t.Fatalf("never: %s\nserve: %s", what, tail(tr.serve.out.String()))
		}
	}
}

// invite waits for the run, opens its log, and returns a URL for many clients of a role.
func (tr *servedRun) invite(role string) string {
	tr.t.Helper()
	for end := time.Now().Add(testutil.Timeout); ; time.Sleep(10 * time.Millisecond) {
		url, err := tr.brood(nil, "invite", tr.dir, "--role", role, "--uses", "64").Output()
		if err == nil {
			if tr.log, err = session.OpenReader(tr.dir); err != nil {
				tr.t.Fatal(err)
			}
			tr.t.Cleanup(func() { tr.log.Close() })
			return strings.TrimSpace(string(url))
		}
		if time.Now().After(end) {
			tr.t.Fatalf("nobody is invited: %v", err)
		}
	}
}

// ends stops the run, waits for all processes, and verifies the log.
func (tr *servedRun) ends() {
	tr.t.Helper()
	if out, err := tr.brood(nil, "stop", tr.dir, "--take").CombinedOutput(); err != nil {
		tr.t.Fatalf("stop: %v: %s", err, out)
	}
	tr.exit(tr.serve, 0)
	for _, w := range tr.workers {
		tr.exit(w, 0)
	}
	tr.readLog()
	if out, err := tr.brood(nil, "verify", tr.dir).CombinedOutput(); err != nil ||
		!strings.Contains(string(out), "verified: ") || !strings.Contains(string(out), tr.last.Hash) {
		tr.t.Errorf("verify: %v: %s, want %s", err, out, tr.last.Hash)
	}
}

func tail(s string) string { return s[max(0, len(s)-3000):] }

// trains waits until n workers train in an epoch after the given one.
func (tr *servedRun) trains(n int, after uint32) {
	tr.t.Helper()
	tr.until(fmt.Sprintf("%d workers train", n), func() bool {
		return tr.last.Epoch > after && tr.last.Epoch == tr.plans[len(tr.plans)-1].Epoch &&
			len(tr.plans[len(tr.plans)-1].New.Workers()) == n
	})
}

// lost waits for the alert after a fault, and returns the time it took.
func (tr *servedRun) lost(since time.Time, kind event.AlertKind) time.Duration {
	tr.t.Helper()
	var at time.Time
	tr.until("an alert of "+string(kind), func() bool {
		for _, a := range tr.alerts {
			if a.Kind == kind && a.at.After(since) {
				at = a.at
				return true
			}
		}
		return false
	})
	return at.Sub(since)
}

// fault injects one fault into the fleet and waits until it has recovered. It returns the name of the fault and the
// time until the run noticed it, or continued.
func (tr *servedRun) fault() (string, time.Duration) {
	tr.t.Helper()
	at, began, before := tr.draw.IntN(len(tr.workers)), time.Now(), tr.last.Epoch
	w := tr.workers[at]
	gone := func() { tr.workers = append(tr.workers[:at], tr.workers[at+1:]...) }
	switch tr.draw.IntN(5) {
	case 0, 1:
		tr.signal(w, syscall.SIGKILL)
		gone()
		took := tr.lost(began, "lost-worker")
		tr.work()
		tr.trains(3, before)
		return "kill -9 of a worker", took
	case 2:
		tr.signal(w, syscall.SIGSTOP)
		took := tr.lost(began, "lost-worker")
		tr.signal(w, syscall.SIGCONT) // it finds that it was put out, and comes again by its key
		tr.trains(3, before)
		return "SIGSTOP of a worker", took
	case 3:
		tr.signal(w, syscall.SIGTERM)
		gone()
		tr.exit(w, 143)
		took := time.Since(began)
		tr.work()
		tr.trains(3, before)
		return "SIGTERM of a worker", took
	}
	tr.signal(tr.serve, syscall.SIGKILL)
	testutil.Receive(tr.t, tr.serve.done, "end of the coordinator")
	tr.readLog()
	before, began = tr.last.Epoch, time.Now()
	tr.resume()
	tr.until("a commit after the restart", func() bool { return tr.last.Epoch > before })
	took := time.Since(began)
	tr.trains(3, before)
	return "kill -9 of the coordinator", took
}

func (tr *servedRun) resume() {
	tr.serve = tr.start("serve", "--plain", "--resume", tr.dir, "--wait", "3", "--enrol", "64", "--on-loss", tr.onLoss)
}

// assembled starts a run of Parle with three workers, and waits until they train.
func assembled(t *testing.T, onLoss string) *servedRun {
	tr := newServedRun(t, onLoss, 3, "quickstart", "--members", "6", "--set", "ell=4", "--set", "batch=16")
	for range 3 {
		tr.work()
	}
	tr.trains(3, 0)
	return tr
}

// newServedRun starts a run that waits for some workers.
func newServedRun(t *testing.T, onLoss string, wait int, args ...string) *servedRun {
	dir := t.TempDir()
	tr := &servedRun{
		t:      t,
		dir:    filepath.Join(dir, "run"),
		onLoss: onLoss,
		draw:   rand.New(rand.NewPCG(uint64(len(onLoss)), 7)),
		env:    append(os.Environ(), "BROOD_SESSIONS="+filepath.Join(dir, "s"), "HOME="+dir),
	}
	tr.serve = tr.start(append([]string{"serve", "--plain", "--session", tr.dir, "--listen", "127.0.0.1:0",
		"--enrol", "64",
		"--wait", strconv.Itoa(wait), "--for", "1h", "--on-loss", onLoss}, args...)...)
	tr.url = tr.invite("worker")
	return tr
}

// TestManyWorkers: up to 64 processes on this machine join and train, and no worker is lost. It logs the time until all
// train, and the rounds per second: the figures of docs/fleet.md.
func TestManyWorkers(t *testing.T) {
	longtest.Need(t, longtest.Fleets, "starts 64 processes")
	for _, n := range []int{2, 4, 8, 16, 32, 64} {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			tr := newServedRun(t, "mirror", n, "--algorithm", "dp-sgd", "--model", "mlp:16", "--data", "glyphs", "--set",
				"batch=8",
				"--members", strconv.Itoa(n))
			began := time.Now()
			for range n {
				tr.work()
			}
			tr.trains(n, 0)
			joined := time.Since(began)
			time.Sleep(2 * time.Second)
			tr.readLog()
			before, began := tr.last.To, time.Now()
			time.Sleep(10 * time.Second)
			tr.readLog()
			t.Logf("%d workers train after %.1f s, %.1f rounds/s", n, joined.Seconds(),
				float64(tr.last.To-before)/time.Since(began).Seconds())
			if len(tr.plans) != 1 || len(tr.alerts) > 0 {
				t.Errorf("%d plans, alerts %v", len(tr.plans), tr.alerts)
			}
			tr.ends()
		})
	}
}

// TestGoodput reports the rounds committed while a worker is killed every ten seconds, as a share of those of the same
// fleet left alone before and after. The recording must verify. The share depends on the machine, so that it is only logged.
func TestGoodput(t *testing.T) {
	longtest.Need(t, longtest.Fleets, "kills processes for some minutes")
	const every, kills = 10 * time.Second, 6
	for _, onLoss := range []string{"rollback", "mirror"} {
		t.Run(onLoss, func(t *testing.T) {
			tr := assembled(t, onLoss)
			rounds := func(d time.Duration) float64 {
				tr.readLog()
				before := tr.last.To
				time.Sleep(d)
				tr.readLog()
				return float64(tr.last.To) - float64(before)
			}
			rounds(2 * time.Second)
			alone := rounds(15*time.Second) / 15
			disturbed := 0.0
			for k := range kills {
				if k%3 == 1 {
					tr.signal(tr.serve, syscall.SIGKILL)
					testutil.Receive(t, tr.serve.done, "end of the coordinator")
					tr.resume()
				} else {
					at := tr.draw.IntN(len(tr.workers))
					tr.signal(tr.workers[at], syscall.SIGKILL)
					tr.workers = append(tr.workers[:at], tr.workers[at+1:]...)
					tr.work()
				}
				disturbed += rounds(every)
			}
			rounds(2 * time.Second)
			after := rounds(15*time.Second) / 15
			share := disturbed / ((alone + after) / 2 * every.Seconds() * kills)
			t.Logf("%s: %.3f of %.1f rounds/s before and %.1f after, with a process killed every %v", onLoss, share, alone,
				after, every)
			tr.ends()
		})
	}
}

// TestPausedCoordinator: a coordinator that is suspended for three seconds loses no worker, and no round is repeated.
func TestPausedCoordinator(t *testing.T) {
	longtest.Need(t, longtest.Fleets, "suspends a process for seconds")
	tr := assembled(t, "rollback")
	for range 3 {
		plans, alerts := len(tr.plans), len(tr.alerts)
		tr.signal(tr.serve, syscall.SIGSTOP)
		time.Sleep(3 * time.Second)
		tr.readLog()
		before := tr.last.To
		began := time.Now()
		tr.signal(tr.serve, syscall.SIGCONT)
		tr.until("commits after the pause", func() bool { return tr.last.To > before+20 })
		t.Logf("20 rounds %v after the pause", time.Since(began).Round(time.Millisecond))
		if len(tr.plans) != plans || len(tr.alerts) != alerts {
			t.Errorf("the pause led to %d plans and the alerts %v", len(tr.plans)-plans, tr.alerts[alerts:])
		}
	}
	tr.ends()
}

// TestKills: the run survives the death of any process, and its log verifies. It logs how long faults took to notice,
// or the coordinator to return: the figures of docs/fleet.md.
func TestKills(t *testing.T) {
	longtest.Need(t, longtest.Fleets, "kills processes for some minutes")
	took := map[string][]time.Duration{}
	for _, c := range []struct {
		onLoss string
		faults int
	}{{"reseed", 20}, {"shrink", 5}, {"rollback", 7}, {"mirror", 7}} {
		t.Run(c.onLoss, func(t *testing.T) {
			tr := assembled(t, c.onLoss)
			for range c.faults {
				what, d := tr.fault()
				took[what] = append(took[what], d.Round(time.Millisecond))
			}
			tr.ends()
		})
	}
	for what, all := range took {
		slices.Sort(all)
		t.Logf("%s: median %v, worst %v of %d", what, all[len(all)/2], all[len(all)-1], len(all))
	}
}
