package alert

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"brood/models/engine"
	"brood/runtime/event"
	"brood/runtime/testutil"
)

// TestDispatcher: alerts of the rules are raised. The command gets warnings and errors of the log in turn as JSON, and
// no information. The end of the run waits for the command.
func TestDispatcher(t *testing.T) {
	if goruntime.GOOS == "windows" {
		t.Skip("the command needs a POSIX shell")
	}
	var mu sync.Mutex
	var notes []Note
	d := &Dispatcher{Raise: func(n Note) {
		mu.Lock()
		defer mu.Unlock()
		notes = append(notes, n)
	}}
	out := filepath.Join(t.TempDir(), "alerts")
	end := d.Start(t.Context(), "a-run", "sleep 0.05; cat >>"+out)
	for i, x := range []float64{1, 1, 9, 9, 9} {
		d.Record(event.Record{Points: &event.Points{
			Round:   uint64(i),
			Series:  event.SeriesCentre,
			Members: []engine.Member{engine.None},
			Values:  []float64{x},
		}})
	}
	for _, a := range []event.Alert{
		{Round: 7, Level: event.LevelWarning, Kind: event.AlertSlow, Text: "it is \"slow\"; $(rm -rf x)"},
		{Round: 8, Level: event.LevelInfo, Kind: event.AlertSlow, Text: "it is not"},
		{Round: 9, Level: event.LevelError, Kind: event.AlertDisk, Text: "it is full"},
	} {
		d.Record(event.Record{Alert: &a})
	}
	began := time.Now()
	end()
	if len(notes) != 1 || notes[0].Kind != event.AlertDiverged || notes[0].Level != event.LevelWarning {
		t.Errorf("raised %+v", notes)
	}
	text, err := os.ReadFile(out)
	want := `{"session":"a-run","round":7,"level":"warning","kind":"slow","text":"it is \"slow\"; $(rm -rf x)"}
{"session":"a-run","round":9,"level":"error","kind":"disk","text":"it is full"}
`
	if err != nil || string(text) != want {
		t.Errorf("after %s the command got %s (%v), want %s", time.Since(began), text, err, want)
	}
}

// TestCommandIsKilled: a command that does not end is killed with its child processes a few seconds after the run, and
// at once when the run is canceled.
func TestCommandIsKilled(t *testing.T) {
	t.Parallel() // the test waits
	if goruntime.GOOS == "windows" {
		t.Skip("the command needs a POSIX shell")
	}
	for name, leave := range map[string]bool{"the run ends": false, "the run is left": true} {
		dir := t.TempDir()
		ctx, cancel := context.WithCancel(t.Context())
		d := &Dispatcher{}
		end := d.Start(ctx, "a-run", "echo $$ >"+filepath.Join(dir, "pid")+"; sleep 600 & sleep 600")
		for range 5 {
			d.Record(event.Record{Alert: &event.Alert{Level: event.LevelError, Kind: event.AlertDisk}})
		}
		testutil.Eventually(t, "the command", func() bool { return fileHas(filepath.Join(dir, "pid")) })
		if leave {
			cancel()
		}
		began := time.Now()
		end()
		if took := time.Since(began); !leave && took < commandGrace/2 || took > testutil.Timeout {
			t.Errorf("%s: the command ran for %s", name, took)
		}
		pid, _ := os.ReadFile(filepath.Join(dir, "pid"))
		testutil.Eventually(t, name+": the processes of the command end", func() bool { // zombies count as ended
			left, _ := exec.Command("pgrep", "-r", "R,S,D", "-g", strings.TrimSpace(string(pid))).Output()
			return len(left) == 0
		})
		cancel()
	}
}

func fileHas(path string) bool {
	text, err := os.ReadFile(path)
	return err == nil && len(text) > 0
}
