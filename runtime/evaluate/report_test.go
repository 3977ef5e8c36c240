package evaluate_test

import (
	"context"
	"path/filepath"
	"reflect"
	"testing"

	"brood/runtime/evaluate"
	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/session"
)

// TestReportOfRun: the report of a completed run equals that of its session, and adds no record to the log.
func TestReportOfRun(t *testing.T) {
	ctx, dir := context.Background(), filepath.Join(t.TempDir(), "s")
	job, err := host.Prepare(host.Options{Model: "mlp-small", Data: "glyphs", Algorithm: "parle", Members: 2,
		Workers: 2, Seed: 1,
		Limit: event.Limit{Rounds: 6}, Set: []event.Setting{{Knob: "ell", Expr: "2"}, {Knob: "batch", Expr: "16"}}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := session.Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	records := 0
	run, err := host.Start(job, s, nil, func(event.Record) { records++ })
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	if exit, err := run.Train(ctx); err != nil || exit.Phase != event.Finished {
		t.Fatalf("%v, %v", exit, err)
	}
	before := records
	got, err := evaluate.ReportRun(ctx, run)
	if err != nil {
		t.Fatal(err)
	}
	if records != before {
		t.Errorf("the report wrote %d records", records-before)
	}
	m, err := evaluate.Export(ctx, nil, dir, 0, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	set, err := m.Load(m.Data)
	if err != nil {
		t.Fatal(err)
	}
	want, err := m.Report(ctx, set, set.Test(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if want == nil || want.Samples != int64(len(set.Test())) || !reflect.DeepEqual(got.Confusion, want.Confusion) ||
		!reflect.DeepEqual(got.Calibration, want.Calibration) {
		t.Errorf("the run reports %+v, its session %+v", got, want)
	}
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := evaluate.ReportRun(canceled, run); err == nil {
		t.Error("no error after the end of the context")
	}
}
