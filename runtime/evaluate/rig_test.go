package evaluate

import (
	"log"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"

	"brood/optim"
	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/session"
	"brood/runtime/testutil"
)

// fewImages is the folder of [testutil.FewImages].
var fewImages string

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // the collector would take a sixth of the processor's time
	os.Exit(withFew(m.Run))
}

// withFew runs the tests while fewImages exists.
func withFew(run func() int) int {
	dir, err := testutil.FewImages()
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	fewImages = dir
	return run()
}

// tiny returns the options of a run of well under a second: the linear classifier on a few images.
func tiny(rounds uint64) host.Options {
	return host.Options{
		Model:     "softmax",
		Data:      fewImages,
		Algorithm: "parle",
		Members:   4,
		Workers:   2,
		Seed:      3,
		Limit:     event.Limit{Rounds: rounds},
		By:        "test",
		Set:       []event.Setting{{Knob: "ell", Expr: "2"}, {Knob: "batch", Expr: "8"}},
	}
}

func prepare(t *testing.T, o host.Options) *host.Job {
	t.Helper()
	j, err := host.Prepare(o)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// train runs a job to its end in the new session dir. It calls during, which may be nil, with the records after the
// first ones.
func train(t *testing.T, dir string, j *host.Job, from *host.Restored, during func(*host.Run, event.Record)) {
	t.Helper()
	s, err := session.Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	var run *host.Run
	ready := make(chan struct{})
	run, err = host.Start(j, s, from, func(rec event.Record) {
		if during != nil {
			select {
			case <-ready:
				during(run, rec)
			default:
			}
		}
	})
	if err != nil {
		s.Close()
		t.Fatal(err)
	}
	close(ready)
	if _, err := run.Train(testutil.Context(t)); err != nil {
		t.Fatal(err)
	}
	if err := run.Close(); err != nil {
		t.Fatal(err)
	}
}

// trains returns the model that an algorithm trains instead of model, which has no weights that are whole numbers.
func trains(a *optim.Algorithm, model string) string {
	if a.Needs&optim.Whole != 0 {
		return "mlp-int8"
	}
	return model
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// spec writes a list of layers to a file.
func spec(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.toml")
	write(t, path, []byte(text))
	return path
}
