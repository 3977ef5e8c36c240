package host

import (
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"

	"brood/models/longtest"
	"brood/optim/catalog"
	"brood/runtime/alert"
	"brood/runtime/event"
)

// TestAlertsReachTheCommand: a loss that is not finite runs the command; an alert of the rules is logged with its
// level, and then runs the command.
func TestAlertsReachTheCommand(t *testing.T) {
	if goruntime.GOOS == "windows" {
		t.Skip("the command needs a POSIX shell")
	}
	alerts := func(eta string, during func(r *Run, rec event.Record)) string {
		out := filepath.Join(t.TempDir(), "alerts")
		train(t, filepath.Join(t.TempDir(), "s"),
			prepare(t, Options{Model: "mlp-small", Data: fewImages, Algorithm: "dp-sgd", Members: 2,
				Seed: 1, OnTrouble: "stop", By: "test", Limit: event.Limit{Rounds: 1 << 40},
				Set:  []event.Setting{{Knob: "eta", Expr: eta}},
				More: map[string]string{"on-alert": "cat >>" + out}}), nil, during)
		text, err := os.ReadFile(out)
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	if text := alerts("100", nil); !strings.Contains(text, `"level":"error","kind":"non-finite"`) {
		t.Errorf("the command received %q", text)
	}
	raised, logged := false, false
	text := alerts("0.1", func(r *Run, rec event.Record) {
		if rec.Commit != nil && !raised {
			raised = true
			go r.alerts.Raise(alert.Note{Level: event.LevelWarning, Kind: event.AlertSlow, Text: "rounds are slow"})
		}
		if rec.Alert != nil && rec.Alert.Kind == event.AlertSlow && rec.Alert.Level == event.LevelWarning && !logged {
			logged = true
			r.Interrupt()
		}
	})
	if !logged || !strings.Contains(text, `"level":"warning","kind":"slow","text":"rounds are slow"`) {
		t.Errorf("in the log: %t; the command received %q", logged, text)
	}
}

// TestDefaultsRaiseNoAlert: no algorithm raises an alert with its default knobs. The rounds have the same bits on every
// machine.
func TestDefaultsRaiseNoAlert(t *testing.T) {
	longtest.Need(t, longtest.Studies, "trains with every algorithm")
	for _, a := range catalog.All() {
		if !a.Needs.Model() {
			continue
		}
		t.Run(a.Name, func(t *testing.T) {
			o := Options{Algorithm: a.Name, Model: trains(a, "mlp-small"), Data: "glyphs", Members: 8, Workers: 2, Threads: 2,
				Seed: 1, By: "test", Limit: event.Limit{Epochs: 16, Rounds: 1500}, Probe: 2}
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
				t.Error("no round was committed")
			}
		})
	}
}
