package host

import (
	goruntime "runtime"
	"strings"
	"testing"
)

// TestEngineChoice: a recorded kind selects its engine or is rejected by name; without one the environment selects the
// engine.
func TestEngineChoice(t *testing.T) {
	j := prepare(t, tiny(1))
	for kind, want := range map[string]string{
		"f32/1":                              "f32/1",
		"gorgonia/gonum/" + goruntime.GOARCH: "gorgonia/gonum/" + goruntime.GOARCH,
		"gorgonia/gonum/vax":                 "the bits may differ",
		"f32/2":                              "the bits may differ",
		"bf16-fma/1":                         "bf16-fma/1",
		"bf16-amx/1":                         "bf16-amx/1",
	} {
		e, err := j.engine(kind, 1)
		switch {
		case err != nil && !strings.Contains(err.Error(), want):
			t.Errorf("%s: %v, want %s", kind, err, want)
		case err == nil && e.Kernels() != want:
			t.Errorf("%s: %s, want %s", kind, e.Kernels(), want)
		}
	}
	for _, c := range []struct{ engine, cpu, want string }{
		{"", "", "f32/1"},
		{"", "portable", "f32/1"},
		{"native", "portable", "f32/1"},
		{"gorgonia", "", "gorgonia/gonum"},
		{"native-bf16", "", "bf16-fma/1"},
		{"native-amx", "", "bf16-amx/1"},
		{"torch", "", "choose native or gorgonia"},
		{"", "z80", "choose amx, avx512, avx2, neon or portable"},
	} {
		t.Setenv("BROOD_ENGINE", c.engine)
		t.Setenv("BROOD_CPU", c.cpu)
		if got := Kernels(); !strings.Contains(got, c.want) {
			t.Errorf("engine %q, cpu %q: %s, want %s", c.engine, c.cpu, got, c.want)
		}
		e, err := j.engine("", 1)
		if err == nil && !strings.Contains(e.Kernels(), c.want) || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("engine %q, cpu %q: %v, %v, want %s", c.engine, c.cpu, e, err, c.want)
		}
	}
}
