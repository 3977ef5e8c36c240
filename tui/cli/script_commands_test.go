package cli

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"brood/runtime/session"
	"brood/runtime/testutil"
)

// agrees matches the progress lines that verify and batch checks print every second, which depend on the speed of the
// machine.
var agrees = regexp.MustCompile(`(?m)^(round +\d+ agrees|brood: checked \d+ of \d+ runs)\n`)

// refuses STATUS PATTERN ARGUMENTS... runs brood, which must exit with the status, print nothing but one line on
// standard error that begins with "brood: " and matches, and leave all files unchanged.
func refuses(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: refuses STATUS PATTERN [ARGUMENT...]")
	}
	before := files(ts)
	err := ts.Exec("brood", args[2:]...)
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		ts.Fatalf("brood %s: %v, want exit status %s", strings.Join(args[2:], " "), err, args[0])
	}
	stderr, stdout := ts.ReadFile("stderr"), ts.ReadFile("stdout")
	line, rest, ended := strings.Cut(agrees.ReplaceAllString(stderr, ""), "\n")
	switch {
	case strconv.Itoa(exit.ExitCode()) != args[0]:
		ts.Fatalf("exit status %d, want %s", exit.ExitCode(), args[0])
	case stdout != "":
		ts.Fatalf("something on standard output")
	case !strings.HasPrefix(line, "brood: ") || !ended || rest != "":
		ts.Fatalf("want one line that begins with brood:")
	case strings.Contains(stderr, "goroutine"):
		ts.Fatalf("a stack on standard error")
	}
	if ok, err := regexp.MatchString(args[1], line); err != nil || !ok {
		ts.Fatalf("the sentence does not match %q (%v)", args[1], err)
	}
	if after := files(ts); !maps.Equal(before, after) {
		ts.Fatalf("files before: %v\nfiles after: %v", slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(after)))
	}
}

// files returns the names and sizes below the work directory, except temporary files, sessions that a run is writing,
// and locks, which a reader recreates.
func files(ts *testscript.TestScript) map[string]int64 {
	work, out := ts.Getenv("WORK"), map[string]int64{}
	err := filepath.WalkDir(work, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrPermission):
			return nil
		case err != nil:
			return err
		case path == filepath.Join(work, ".tmp"):
			return fs.SkipDir
		case d.Name() == "lock":
			return nil
		}
		out[path] = 0
		if running, _ := session.Running(path); running {
			return fs.SkipDir
		}
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			out[path] = info.Size()
		}
		return nil
	})
	ts.Check(err)
	return out
}

var digests = regexp.MustCompile("^blake3:[0-9a-f]{64}$")

// summary NAME checks the last line of standard output and sets $NAME_rounds and so on to its values.
func summaryOf(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: summary NAME")
	}
	lines := strings.Split(strings.TrimSpace(ts.ReadFile("stdout")), "\n")
	var sum map[string]any
	for i, line := range lines {
		var x map[string]any
		if err := json.Unmarshal([]byte(line), &x); err != nil {
			ts.Fatalf("line %d is not JSON: %v", i+1, err)
		}
		if kind, ok := x["event"].(string); !ok || (kind == "summary") != (i == len(lines)-1) {
			ts.Fatalf("line %d is of kind %q: the summary is the last line and no other", i+1, kind)
		}
		if _, err := checkSchema(line); err != nil {
			ts.Fatalf("line %d: %s\n%v", i+1, line, err)
		}
		sum = x
	}
	for _, field := range []string{"algorithm", "rounds", "steps", "samples", "seconds", "samples_per_second",
		"evaluations", "train_loss",
		"test_error", "bytes_sent", "bytes_predicted", "overhead_bytes", "params_hash", "centre_hash", "kernels", "session"} {
		v, ok := sum[field]
		// nothing to test or to send
		modelless := sum["kernels"] == "none" && (field == "test_error" || field == "centre_hash")
		modelless = modelless || sum["test_fitness"] != nil && (field == "test_error" || field == "train_loss")
		if !ok || !modelless && (v == nil || v == "") {
			ts.Fatalf("the summary has no %s", field)
		}
		ts.Setenv(args[0]+"_"+field, fmt.Sprint(v))
	}
	if !reflect.DeepEqual(sum["bytes_sent"], sum["bytes_predicted"]) {
		ts.Fatalf("bytes sent %v, predicted %v", sum["bytes_sent"], sum["bytes_predicted"])
	}
	for _, hash := range []string{"params_hash", "centre_hash"} {
		if text, _ := sum[hash].(string); !digests.MatchString(text) &&
			!(hash == "centre_hash" && text == "" && sum["kernels"] == "none") {
			ts.Fatalf("%s is %v", hash, sum[hash])
		}
	}
}

// same A B and differ A B compare two texts.
func same(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 || args[0] == "" || args[0] != args[1] {
		ts.Fatalf("not the same: %q", args)
	}
}

func differ(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 || args[0] == args[1] {
		ts.Fatalf("no difference: %q", args)
	}
}

// begun waits until a session has a writer and a log.
func begun(ts *testscript.TestScript, neg bool, args []string) {
	testutil.Eventually(script{ts}, args[0]+" has begun", func() bool {
		if running, _ := session.Running(ts.MkAbs(args[0])); !running {
			return false
		}
		r, err := session.OpenReader(ts.MkAbs(args[0]))
		if err != nil {
			return false // its log is made after its lock is taken
		}
		ts.Check(r.Close())
		return true
	})
}

// await SESSION ROUND waits until a run has committed the round.
func await(ts *testscript.TestScript, neg bool, args []string) {
	want, err := strconv.ParseUint(args[1], 10, 64)
	ts.Check(err)
	r, err := session.OpenReader(ts.MkAbs(args[0]))
	ts.Check(err)
	defer r.Close()
	for late := time.Now().Add(testutil.Timeout); ; {
		rec, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			if time.Now().After(late) {
				ts.Fatalf("after %s %s has not come to round %d", testutil.Timeout, args[0], want)
			}
			if running, _ := session.Running(ts.MkAbs(args[0])); !running {
				ts.Fatalf("the run ended before round %d", want)
			}
			time.Sleep(5 * time.Millisecond)
		case err != nil:
			ts.Check(err)
		case rec.Commit != nil && rec.Commit.To >= want:
			return
		}
	}
}

// kill9 SESSION kills the process that writes it with SIGKILL.
func kill9(ts *testscript.TestScript, neg bool, args []string) {
	if p := writer(ts, args[0]); p != nil {
		ts.Check(p.Kill())
	}
	ended(ts, neg, args)
}

// signal INT|TERM SESSION signals the process that writes it, if there is one.
func sendSignal(ts *testscript.TestScript, neg bool, args []string) {
	sig := map[string]os.Signal{"INT": os.Interrupt, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP}[args[0]]
	p := writer(ts, args[1])
	if p == nil {
		return
	}
	if err := p.Signal(sig); !errors.Is(err, os.ErrProcessDone) {
		ts.Check(err)
	}
}

func writer(ts *testscript.TestScript, name string) *os.Process {
	running, pid := session.Running(ts.MkAbs(name))
	if !running || pid == 0 {
		return nil
	}
	p, err := os.FindProcess(pid)
	ts.Check(err)
	return p
}

// ended waits until a session has no writer.
func ended(ts *testscript.TestScript, neg bool, args []string) {
	testutil.Eventually(script{ts}, args[0]+" has no writer any more", func() bool {
		running, _ := session.Running(ts.MkAbs(args[0]))
		return !running
	})
}

// cut FILE N removes the last N bytes of a file.
func cut(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: cut FILE N")
	}
	n, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	path := ts.MkAbs(args[0])
	st, err := os.Stat(path)
	ts.Check(err)
	ts.Check(os.Truncate(path, st.Size()-n))
}

// flip PATTERN changes a bit in the middle of the first file that matches.
func flip(ts *testscript.TestScript, neg bool, args []string) {
	found, err := filepath.Glob(ts.MkAbs(args[0]))
	ts.Check(err)
	if len(found) == 0 {
		ts.Fatalf("no file %s", args[0])
	}
	b, err := os.ReadFile(found[0])
	ts.Check(err)
	b[len(b)/2] ^= 1
	ts.Check(os.WriteFile(found[0], b, 0o600))
}

// idx FILE BYTES SIZE... writes an IDX file of unsigned bytes with these sizes in its header and this number of bytes
// after it.
func idx(ts *testscript.TestScript, neg bool, args []string) {
	out := []byte{0, 0, 8, byte(len(args) - 2)}
	for _, a := range args[2:] {
		n, err := strconv.ParseUint(a, 10, 32)
		ts.Check(err)
		out = binary.BigEndian.AppendUint32(out, uint32(n))
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	path := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(filepath.Dir(path), 0o755))
	ts.Check(os.WriteFile(path, append(out, make([]byte, n)...), 0o600))
}
