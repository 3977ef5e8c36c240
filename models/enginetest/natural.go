package enginetest

import (
	"math"
	"testing"

	"brood/models/engine"
	"brood/models/engine/ram"
)

// naturalStep compares with the equations in float64, for arguments of the exponential of all magnitudes, infinities
// and NaN; slices must have the bits of the whole.
func (v *vector) naturalStep(t *testing.T) {
	task := engine.NaturalStep{
		X:    v.filled(1, 1),
		S:    v.filled(1, 2),
		G:    v.filled(1, 3),
		H:    v.filled(1, 4),
		Hi:   v.l.Params,
		Eta:  0.7,
		Rate: -0.3,
	}
	s, h, inf := flat(task.S), flat(task.H), float32(math.Inf(1))
	for i, extreme := range []float32{0, 0, 1e-30, -1e-30, 3, -290, 290, -3000, 3000, -inf, inf, float32(math.NaN())} {
		for at := 17*i + 1; at < len(h); at += 1009 {
			h[at] = extreme
		}
	}
	for at := 0; at < len(s); at += 997 {
		s[at] = []float32{0, 1e-38, 1e38, inf}[at%4]
	}
	x0, s0 := flat(clone(task.X)), flat(clone(task.S))
	do(t, v.e, task)
	for i, x := range flat(task.X) {
		was := float64(s0[i])
		if want := float64(x0[i]) + 0.7*was*float64(flat(task.G)[i]); !agrees(x, want,
			2e-7*(math.Abs(float64(x0[i]))+math.Abs(was*float64(flat(task.G)[i])))) {
			t.Fatalf("x[%d] is %v, want %v", i, x, want)
		}
		arg := max(-86, min(86, float64(task.Rate*h[i])))
		if want := was * math.Exp(arg); !agrees(s[i], want, (3e-7+1e-7*math.Abs(arg))*math.Abs(want)) {
			t.Fatalf("s[%d] is %v, want %v*exp(%v) = %v", i, s[i], was, arg, want)
		}
		if h[i] == 0 && s[i] != s0[i] {
			t.Fatalf("s[%d] is %v, want %v as it was", i, s[i], s0[i])
		}
	}
	whole := task
	task.X, task.S = ram.Of(engine.Host{Rows: 1, Cols: len(x0), F: x0}), ram.Of(engine.Host{Rows: 1, Cols: len(s0), F: s0})
	cuts := []int{0, 5, 1029, 1030, v.l.Params/2 + 1, v.l.Params - 1}
	last := [2]float32{x0[v.l.Params-1], s0[v.l.Params-1]}
	for i := range len(cuts) - 1 {
		task.Lo, task.Hi = cuts[i], cuts[i+1]
		do(t, v.e, task)
	}
	if last != [2]float32{x0[v.l.Params-1], s0[v.l.Params-1]} {
		t.Fatal("a column beyond the last slice changed")
	}
	task.Lo, task.Hi = v.l.Params-1, v.l.Params
	do(t, v.e, task)
	alike(t, "x in slices", x0, flat(whole.X))
	alike(t, "s in slices", s0, flat(whole.S))
}

// agrees reports whether a value is within a distance of want, or equally not finite in float32; denormal results may
// differ by the smallest number.
func agrees(got float32, want, within float64) bool {
	narrow := float32(want)
	if math.IsNaN(want) || math.IsInf(float64(narrow), 0) {
		return got == narrow || got != got && narrow != narrow
	}
	return math.Abs(float64(got)-want) <= within+math.SmallestNonzeroFloat32
}

// alike is same for values that may be NaN.
func alike(t *testing.T, what string, got, want []float32) {
	t.Helper()
	for i := range got {
		if got[i] == got[i] || want[i] == want[i] {
			same(t, what, got[i:i+1], want[i:i+1])
		}
	}
}
