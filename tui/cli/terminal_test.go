package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"brood/models/longtest"
	"brood/runtime/session"
	"brood/runtime/testutil"
)

// TestTerminal runs files of testdata/tmux: the workbench in a real terminal of 100 by 30 cells, with typed keys. It
// needs tmux.
func TestTerminal(t *testing.T) {
	if testing.Short() {
		t.Skip("starts many processes")
	}
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is not installed")
	}
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Files:               scripts(t, "testdata/tmux", "look"),
		RequireExplicitExec: true,
		Condition: func(cond string) (bool, error) {
			if group, ok := strings.CutPrefix(cond, "long:"); ok {
				return longtest.On(longtest.Group(group)), nil
			}
			return false, fmt.Errorf("there is no condition %q", cond)
		},
		Setup: func(e *testscript.Env) error {
			e.Setenv("BROOD_SESSIONS", filepath.Join(e.WorkDir, "s"))
			e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv("TMUX_TMPDIR", e.WorkDir)
			if built := os.Getenv("BROOD_BINARY"); built != "" {
				if err := preferred(e, built); err != nil {
					return err
				}
			}
			e.Defer(func() {
				end := exec.Command("tmux", "-L", "t", "kill-server")
				end.Env = append(os.Environ(), "TMUX_TMPDIR="+e.WorkDir)
				_ = end.Run() // it may never have been started
				endAll(e.WorkDir)
			})
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"open": openTerminal, "keys": pressKeys, "screen": awaitScreen, "parent": parentOf, "join": joinBy, "sshd": sshServer},
	})
}

// open ARGUMENTS... runs brood in a new terminal. The tmux server ends with its last terminal, possibly during the
// request for another one, so the request is retried.
func openTerminal(ts *testscript.TestScript, _ bool, args []string) {
	var err error
	for range 20 {
		if err = ts.Exec("tmux", append([]string{"-u", "-f", os.DevNull, "-L", "t", "new-session", "-d", "-x", "100", "-y",
			"30", "brood"}, args...)...); err == nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	ts.Check(err)
}

// keys KEY... types keys by their tmux names.
func pressKeys(ts *testscript.TestScript, _ bool, args []string) {
	for _, k := range args {
		ts.Check(ts.Exec("tmux", "-L", "t", "send-keys", k))
	}
}

// parent GLOB NAME checks the parent of a forked session.
func parentOf(ts *testscript.TestScript, _ bool, args []string) {
	found, err := filepath.Glob(ts.MkAbs(args[0]))
	ts.Check(err)
	if len(found) != 1 {
		ts.Fatalf("%s are %v", args[0], found)
	}
	r, err := session.OpenReader(found[0])
	ts.Check(err)
	defer r.Close()
	rec, err := r.Next()
	ts.Check(err)
	if c := rec.Config; c == nil || c.Parent != args[1] || c.ParentAt == 0 {
		ts.Fatalf("%s begins with %+v", found[0], c)
	}
}

// screen PATTERN waits until the terminal shows it.
func awaitScreen(ts *testscript.TestScript, neg bool, args []string) {
	want := regexp.MustCompile("(?m)" + args[0])
	for end := time.Now().Add(testutil.Timeout); ; time.Sleep(20 * time.Millisecond) {
		look := exec.Command("tmux", "-L", "t", "capture-pane", "-p") // not by ts.Exec, which would log every look
		look.Env = append(os.Environ(), "TMUX_TMPDIR="+ts.Getenv("TMUX_TMPDIR"))
		text, err := look.Output()
		ts.Check(err)
		if want.Match(text) != neg {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("the terminal does not show %q:\n%s", args[0], text)
		}
	}
}
