package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"brood/runtime/testutil"
)

// processes holds the processes of a fleet that a script has started, by name.
type processes map[string]*process

type process struct {
	cmd  *exec.Cmd
	out  string // file of standard output
	err  string
	done chan struct{}
}

type processesKey struct{}

// script implements [testutil.T]: testscript reports the line of the script itself.
type script struct{ *testscript.TestScript }

func (script) Helper() {}

func processesOf(ts *testscript.TestScript) processes { return ts.Value(processesKey{}).(processes) }

// end kills the processes that still run.
func (c processes) end() {
	for _, h := range c {
		_ = h.cmd.Process.Kill()
		<-h.done
	}
}

// startProcess starts brood in the background.
func startProcess(ts *testscript.TestScript, name string, args ...string) *process {
	c, work := processesOf(ts), ts.Getenv("WORK")
	if c[name] != nil {
		ts.Fatalf("%s is running", name)
	}
	path := broodPath(ts)
	tmp := filepath.Join(work, ".tmp")
	ts.Check(os.MkdirAll(tmp, 0o755))
	h := &process{
		cmd:  exec.Command(path, args...),
		out:  filepath.Join(tmp, name+".out"),
		err:  filepath.Join(tmp, name+".err"),
		done: make(chan struct{}),
	}
	h.cmd.Dir, h.cmd.Env = work, os.Environ()
	for _, key := range []string{"WORK", "HOME", "LocalAppData", "BROOD_SESSIONS", "PATH", "TMPDIR", "POCL_CACHE_DIR"} {
		h.cmd.Env = append(h.cmd.Env, key+"="+ts.Getenv(key))
	}
	out, err := os.Create(h.out)
	ts.Check(err)
	defer out.Close()
	errs, err := os.Create(h.err)
	ts.Check(err)
	defer errs.Close()
	h.cmd.Stdout, h.cmd.Stderr = out, errs
	ts.Check(h.cmd.Start())
	c[name] = h
	go func() {
		defer close(h.done)
		_ = h.cmd.Wait() // its state says how it ended
	}()
	return h
}

var joinURLPattern = regexp.MustCompile(`brood://([^/"]+)/([a-z2-7]+)#([a-z2-7]+)`)

// serve ARGUMENTS... starts brood serve and sets $URL, $HOSTPORT and $KEYHASH for its workers, and $WATCH and $OPERATE
// for viewers and operators.
func serveBackground(ts *testscript.TestScript, neg bool, args []string) {
	urls := startProcess(ts, "serve", append([]string{"serve"}, args...)...).await(ts, 3)
	ts.Setenv("URL", urls[0][0])
	ts.Setenv("HOSTPORT", urls[0][1])
	ts.Setenv("KEYHASH", urls[0][3])
	ts.Setenv("WATCH", urls[1][0])
	ts.Setenv("OPERATE", urls[2][0])
}

// await waits until a process has printed this number of URLs.
func (h *process) await(ts *testscript.TestScript, n int) (urls [][]string) {
	testutil.Eventually(script{ts}, fmt.Sprintf("%v prints %d URLs", h.cmd.Args, n), func() bool {
		over := h.ended() // and prints nothing after that
		text, err := os.ReadFile(h.out)
		ts.Check(err)
		urls = joinURLPattern.FindAllStringSubmatch(string(text), -1)
		if len(urls) != n && over {
			errs, _ := os.ReadFile(h.err)
			ts.Fatalf("%v ends with %d: %s", h.cmd.Args, h.cmd.ProcessState.ExitCode(), errs)
		}
		return len(urls) == n
	})
	return urls
}

func (h *process) ended() bool {
	select {
	case <-h.done:
		return true
	default:
		return false
	}
}

// join is a URL in the form of brood invite, for later workers.
func joinBy(ts *testscript.TestScript, neg bool, args []string) {
	ts.Setenv("URL", strings.TrimSpace(ts.ReadFile(args[0])))
}

// series ARGUMENTS... starts a sweep or a study with remote workers, and sets $URL and $HOSTPORT for them.
func seriesBackground(ts *testscript.TestScript, neg bool, args []string) {
	urls := startProcess(ts, "series", args...).await(ts, 1)
	ts.Setenv("URL", urls[0][0])
	ts.Setenv("HOSTPORT", urls[0][1])
}

// opens ARGUMENTS... starts brood open, and sets $WATCH, $OPERATE, $HOSTPORT and $KEYHASH for its clients.
func openBackground(ts *testscript.TestScript, neg bool, args []string) {
	h := startProcess(ts, "open", append([]string{"open"}, args...)...)
	urls := h.await(ts, 2)
	ts.Setenv("HOSTPORT", urls[0][1])
	ts.Setenv("KEYHASH", urls[0][3])
	ts.Setenv("WATCH", urls[0][0])
	ts.Setenv("OPERATE", urls[1][0])
}

// worker NAME [FLAG...] starts a worker of the served run.
func workerBackground(ts *testscript.TestScript, neg bool, args []string) {
	startProcess(ts, args[0], append([]string{"worker", ts.Getenv("URL")}, args[1:]...)...)
}

// end NAME STATUS [PATTERN] waits for a process, whose standard error must match, and prints its standard output.
func endBackground(ts *testscript.TestScript, neg bool, args []string) {
	c := processesOf(ts)
	h := c[args[0]]
	testutil.Receive(script{ts}, h.done, "end of "+args[0])
	delete(c, args[0])
	out, err := os.ReadFile(h.out)
	ts.Check(err)
	errs, err := os.ReadFile(h.err)
	ts.Check(err)
	_, err = ts.Stdout().Write(out)
	ts.Check(err)
	if got := strconv.Itoa(h.cmd.ProcessState.ExitCode()); got != args[1] {
		ts.Fatalf("%s ends with status %s, want %s: %s", args[0], got, args[1], errs)
	}
	if len(args) > 2 {
		if ok, err := regexp.Match(args[2], errs); !ok || err != nil {
			ts.Fatalf("%s says %q, want %q", args[0], errs, args[2])
		}
	}
}

// sigkill NAME kills a process with SIGKILL.
func sigkill(ts *testscript.TestScript, neg bool, args []string) {
	h := processesOf(ts)[args[0]]
	ts.Check(h.cmd.Process.Kill())
	testutil.Receive(script{ts}, h.done, "end of a process")
	delete(processesOf(ts), args[0])
}

// sigint NAME sends SIGINT to a process.
func sigint(ts *testscript.TestScript, neg bool, args []string) {
	ts.Check(processesOf(ts)[args[0]].cmd.Process.Signal(os.Interrupt))
}

// says NAME PATTERN waits until the output of a process matches.
func saysBackground(ts *testscript.TestScript, neg bool, args []string) {
	h, want := processesOf(ts)[args[0]], regexp.MustCompile(args[1])
	testutil.Eventually(script{ts}, fmt.Sprintf("%s says %q", args[0], args[1]), func() bool {
		over := h.ended() // and says nothing after that
		var text strings.Builder
		for _, path := range []string{h.out, h.err} {
			b, err := os.ReadFile(path)
			ts.Check(err)
			text.Write(b)
		}
		said := want.MatchString(text.String())
		if over && !said {
			ts.Fatalf("%s ended and did not say %q: %s", args[0], args[1], text.String())
		}
		return said
	})
}
