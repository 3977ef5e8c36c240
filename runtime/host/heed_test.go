package host

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"brood/models/engine"
	"brood/models/longtest"
	"brood/optim/catalog"
	"brood/runtime/coordinator"
	"brood/runtime/event"
	"brood/runtime/soon"
	"brood/runtime/watch"
)

// TestHeedRaises: what the rules say is told to the coordinator, and a warning in the log to the command, one after the
// other and as JSON; what is only for information is not. The end waits for the command.
func TestHeedRaises(t *testing.T) {
	if goruntime.GOOS == "windows" {
		t.Skip("the command is one of a POSIX shell")
	}
	var mu sync.Mutex
	var notes []coordinator.Note
	h := &heed{note: func(n coordinator.Note) {
		mu.Lock()
		defer mu.Unlock()
		notes = append(notes, n)
	}}
	out := filepath.Join(t.TempDir(), "alerts")
	end := h.begin(t.Context(), "a-run", "sleep 0.05; cat >>"+out)
	for i, x := range []float64{1, 1, 9, 9, 9} {
		h.take(event.Record{Points: &event.Points{Round: uint64(i), Series: event.SeriesCentre, Members: []engine.Member{engine.None}, Values: []float64{x}}})
	}
	for _, a := range []event.Alert{
		{Round: 7, Level: event.LevelWarning, Kind: event.AlertSlow, Text: "it is \"slow\"; $(rm -rf x)"},
		{Round: 8, Level: event.LevelInfo, Kind: event.AlertSlow, Text: "it is not"},
		{Round: 9, Level: event.LevelError, Kind: event.AlertDisk, Text: "it is full"},
	} {
		h.take(event.Record{Alert: &a})
	}
	began := time.Now()
	end()
	if len(notes) != 1 || notes[0].Kind != event.AlertDiverged || notes[0].Level != event.LevelWarning {
		t.Errorf("the coordinator hears %+v", notes)
	}
	text, err := os.ReadFile(out)
	want := `{"session":"a-run","round":7,"level":"warning","kind":"slow","text":"it is \"slow\"; $(rm -rf x)"}
{"session":"a-run","round":9,"level":"error","kind":"disk","text":"it is full"}
`
	if err != nil || string(text) != want {
		t.Errorf("after %s the command has heard %s (%v), want %s", time.Since(began), text, err, want)
	}
}

// TestHeedEnds: a command that does not end is ended a few seconds after the run, with what it began, and at once where
// the run is left at once.
func TestHeedEnds(t *testing.T) {
	t.Parallel() // it waits
	if goruntime.GOOS == "windows" {
		t.Skip("the command is one of a POSIX shell")
	}
	for name, leave := range map[string]bool{"the run ends": false, "the run is left": true} {
		dir := t.TempDir()
		ctx, cancel := context.WithCancel(t.Context())
		h := &heed{}
		end := h.begin(ctx, "a-run", "echo $$ >"+filepath.Join(dir, "pid")+"; sleep 600 & sleep 600")
		for range 5 {
			h.take(event.Record{Alert: &event.Alert{Level: event.LevelError, Kind: event.AlertDisk}})
		}
		soon.Until(t, "the command", func() bool { return fileHas(filepath.Join(dir, "pid")) })
		if leave {
			cancel()
		}
		began := time.Now()
		end()
		if took := time.Since(began); !leave && took < tellLast/2 || took > soon.Latest {
			t.Errorf("%s: the command had %s", name, took)
		}
		pid, _ := os.ReadFile(filepath.Join(dir, "pid"))
		soon.Until(t, name+": nothing is left of the command", func() bool { // whatever nobody has reaped yet
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

// TestAlertsAreTold: a run that comes to what is no number tells its command so; what the rules raise gets into the
// log, with its level, and from there to the command.
func TestAlertsAreTold(t *testing.T) {
	if goruntime.GOOS == "windows" {
		t.Skip("the command is one of a POSIX shell")
	}
	told := func(eta string, during func(r *Run, rec event.Record)) string {
		out := filepath.Join(t.TempDir(), "alerts")
		train(t, filepath.Join(t.TempDir(), "s"), prepare(t, Options{Model: "mlp-small", Data: fewImages, Algorithm: "dp-sgd", Members: 2,
			Seed: 1, OnTrouble: "stop", By: "test", Limit: event.Limit{Rounds: 1 << 40}, Set: []event.Setting{{Knob: "eta", Expr: eta}},
			More: map[string]string{"on-alert": "cat >>" + out}}), nil, during)
		text, err := os.ReadFile(out)
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	if text := told("100", nil); !strings.Contains(text, `"level":"error","kind":"non-finite"`) {
		t.Errorf("the command has heard %q", text)
	}
	raised, logged := false, false
	text := told("0.1", func(r *Run, rec event.Record) {
		if rec.Commit != nil && !raised {
			raised = true
			r.heed.work.Go(func() {
				r.heed.raise([]watch.Note{{Level: event.LevelWarning, Kind: event.AlertSlow, Text: "rounds are slow"}})
			})
		}
		if rec.Alert != nil && rec.Alert.Kind == event.AlertSlow && rec.Alert.Level == event.LevelWarning && !logged {
			logged = true
			r.Interrupt()
		}
	})
	if !logged || !strings.Contains(text, `"level":"warning","kind":"slow","text":"rounds are slow"`) {
		t.Errorf("in the log: %t; the command has heard %q", logged, text)
	}
}

// TestNobodyIsWarnedForNothing: every algorithm trains as it is by default, by the same rounds on every machine, and
// nothing is raised that a run is watched for.
func TestNobodyIsWarnedForNothing(t *testing.T) {
	longtest.Need(t, longtest.Studies, "trains with every algorithm")
	for _, a := range catalog.All() {
		if !a.Needs.Model() {
			continue
		}
		t.Run(a.Name, func(t *testing.T) {
			o := Options{Algorithm: a.Name, Model: trains(a, "mlp-small"), Data: "glyphs", Members: 8, Workers: 2, Threads: 2, Seed: 1, By: "test",
				Limit: event.Limit{Epochs: 16, Rounds: 1500}, Probe: 2}
			commits := 0
			train(t, filepath.Join(t.TempDir(), "s"), prepare(t, o), nil, func(_ *Run, rec event.Record) {
				if x := rec.Alert; x != nil && slices.Contains(event.Watched, x.Kind) {
					t.Errorf("round %d: %s: %s", x.Round, x.Kind, x.Text)
				}
				if rec.Commit != nil {
					commits++
				}
			})
			if commits == 0 {
				t.Error("no round was done")
			}
		})
	}
}
