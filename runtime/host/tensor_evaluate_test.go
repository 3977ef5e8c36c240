package host_test

import (
	"slices"
	"strings"
	"testing"

	"brood/runtime/evaluate"
	"brood/runtime/host"
)

func init() {
	host.CarryHome = func(t *testing.T, dir string) func(string) {
		t.Helper()
		here, err := evaluate.Export(t.Context(), nil, dir, 0, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		return func(kind string) { carriedHome(t, dir, kind, here.Params) }
	}
}

// carriedHome checks that the model of a session with tensor-core kernels can be exported and evaluated without a card,
// if its round was saved.
func carriedHome(t *testing.T, dir, kind string, params []float32) {
	t.Helper()
	x, err := evaluate.Export(t.Context(), nil, dir, 0, 1, nil)
	if err != nil {
		t.Fatalf("%s, without a card: %v", kind, err)
	}
	if !slices.Equal(x.Params, params) {
		t.Errorf("%s: the export without a card has another centre", kind)
	}
	set, err := x.Load(x.Data)
	if err != nil || x.Kernels != kind || x.Read.Form == nil {
		t.Fatalf("kernels %s, form %+v: %v", x.Kernels, x.Read, err)
	}
	if sc, err := x.Score(t.Context(), set, "test", 1); err != nil || sc.Kernels != "f32/1" {
		t.Errorf("%s, scored without a card: %+v, %v", kind, sc, err)
	}
	r, err := x.Report(t.Context(), set, set.Test(), 1)
	if err != nil || r.Kernels != "f32/1" || host.MixedKernels(kind, r.Kernels) != "trained with kernels "+
		kind+" and evaluated with f32/1: predictions may differ" {
		t.Errorf("%s, predicted without a card: %+v, %v", kind, r, err)
	}
	if host.MixedKernels(kind, kind)+host.MixedKernels("f32/1", "f32/1")+host.MixedKernels("", "f32/1") != "" {
		t.Error("a warning although the kernels are equal, or those of the training are unknown")
	}
	if text := host.MixedKernels("f32/1", "gorgonia"); !strings.HasSuffix(text, ": the last digits may differ") {
		t.Errorf("of two kernels without tensor cores: %q", text)
	}
	if _, err := evaluate.Export(t.Context(), nil, dir, 1, 1, nil); err == nil ||
		!strings.Contains(err.Error(), "this machine has no such card") {
		t.Errorf("%s, a round that was not saved: %v", kind, err)
	}
}
