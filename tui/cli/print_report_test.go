package cli

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"brood/runtime/archive"

	"brood/runtime/coordinator"
	"brood/runtime/event"
	"brood/runtime/report"
)

// answers returns an evaluation of the test set that takes some time, by kernels f32.
func answers(after time.Duration) func(context.Context) (*report.Report, error) {
	return func(ctx context.Context) (*report.Report, error) {
		select {
		case <-time.After(after):
			return &report.Report{Samples: 5, Outputs: []report.OutputScore{{R2: 1}}, Kernels: "f32/1"}, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// TestEvaluateTestSet: an evaluation of more than a second is announced, a signal cancels it, and other kernels than
// those of the run are reported.
func TestEvaluateTestSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var notes []string
		note := func(text string) { notes = append(notes, text) }
		signals := make(chan os.Signal, 1)
		if a := evaluateTestSet(t.Context(), answers(patience/2), "f32/1", signals, note); a.report == nil ||
			a.took != patience/2 || a.mixed != "" || notes != nil {
			t.Errorf("%+v, %q", a, notes)
		}
		a := evaluateTestSet(t.Context(), answers(2*patience), "bf16/1/cuda9.0", signals, note)
		if a.report == nil || len(notes) != 1 || notes[0] != "evaluating the test set; Ctrl-C skips it" {
			t.Errorf("%+v, %q", a, notes)
		}
		var out bytes.Buffer
		if a.write(&out, "s"); !strings.HasSuffix(out.String(),
			"\n               trained with kernels bf16/1/cuda9.0 and evaluated with f32/1: predictions may differ\n") {
			t.Error(out.String())
		}
		signals <- os.Interrupt
		if a := evaluateTestSet(t.Context(), answers(time.Hour), "f32/1", signals, note); a.report != nil ||
			a.err != nil || a.took > 0 {
			t.Errorf("after a signal: %+v", a)
		}
	})
}

// TestEvaluatedLast: a printer evaluates the test set after all other output, and only if there is one.
func TestEvaluatedLast(t *testing.T) {
	var out, err bytes.Buffer
	plain := &plainPrinter{out: &out, Tally: archive.NewTally()}
	plain.record(commit(5, 1, 1))
	plain.end(coordinator.Exit{Phase: event.Finished}, func() testReport {
		if !strings.Contains(out.String(), "\n  session ") {
			t.Errorf("asked after\n%s", out.String())
		}
		plain.note("still asking")
		return testReport{err: errors.New("nothing there")}
	})
	if !strings.HasSuffix(out.String(), "brood: still asking\n  classes      not measured: nothing there\n") {
		t.Error(out.String())
	}
	out.Reset()
	json := newJSONPrinter(streams{out: &out, err: &err})
	json.record(commit(5, 1, 1))
	if json.end(coordinator.Exit{Phase: event.Stopped}, nil); strings.Contains(out.String(), "test_report") ||
		!strings.Contains(out.String(), `"phase":"stopped"`) {
		t.Error(out.String())
	}
}
