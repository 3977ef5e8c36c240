package enginetest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"brood/models"
)

// fuzzRuns is the number of random models in Run; set BROOD_FUZZ_RUNS=n for another number, BROOD_FUZZ_SEED=n for a
// single seed.
const fuzzRuns = 12

// fuzz draws layer lists with odd sizes, shortcuts and groups, and compares the engine with the float64 reference on
// batches of one sample to two blocks.
func (mk Make) fuzz(t *testing.T) {
	first, runs := uint64(1), fuzzRuns
	if s := os.Getenv("BROOD_FUZZ_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatalf("BROOD_FUZZ_SEED: %v", err)
		}
		first, runs = n, 1
	} else if s := os.Getenv("BROOD_FUZZ_RUNS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatalf("BROOD_FUZZ_RUNS: %v", err)
		}
		runs = n
	}
	for seed := first; seed < first+uint64(runs); seed++ {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			d := newDraft(seed)
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("BROOD_FUZZ_SEED=%d: input %v, %d samples\n%s", seed, d.input, d.samples, strings.Join(d.lines, "\n"))
				}
			})
			m := Compile(t, strings.ReplaceAll(fmt.Sprint(d.input), " ", ","), d.lines...)
			set := ToyFor(t, 0, 96, d.input...)
			switch {
			case m.Regression():
				set = ToyFor(t, m.Outputs, 96, d.input...)
			case m.MultiLabel():
				set = ToyLabels(t, m.Outputs, 96, d.input...)
			}
			mk.compare(t, m, set, d.samples, 3)
		})
	}
}

// fuzzText is fuzz for text models.
func (mk Make) fuzzText(t *testing.T) {
	for seed := range uint64(fuzzRuns / 2) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			d := &draft{r: rand.New(rand.NewPCG(seed, 8))}
			context := d.pick(1, 2, 5, 8, 33)
			d.input, d.samples = []int{context}, d.pick(1, 5, 31, 32, 33)
			d.shapes = [][]int{d.input}
			out := d.pick(1, 3, 16, 17)
			d.add([]int{context * out}, "embedding vocabulary=%d out=%d", d.pick(3, 33, 256), out)
			for range 1 + d.r.IntN(5) {
				switch d.r.IntN(8) {
				case 0:
					d.add(d.last(), "%s", []string{"relu", "tanh", "gelu", "dropout rate=0.3"}[d.r.IntN(4)])
				case 1:
					if from := 1 + d.r.IntN(len(d.shapes)-1); slices.Equal(d.shapes[from], d.last()) {
						d.add(d.last(), "add with='r%d'", from)
					}
				case 2:
					d.add(d.last(), "attention sequence=true heads=%d", d.divisor(d.last()[0]/context))
				case 3:
					if n := d.last()[0]; n >= 6 { // with fewer, normalisation is ill-conditioned
						d.add(d.last(), "layernorm positions=%t", n/context >= 6)
					}
				case 4:
					out := d.pick(1, 4, 17)
					d.add([]int{context * out}, "dense positions=true out=%d bias=%t", out, d.r.IntN(3) > 0)
				default:
					out := d.pick(1, 4, 7, 33)
					d.add([]int{context * out}, "mingru sequence=true out=%d", out)
				}
			}
			end := "dense out=3"
			switch wide := d.last()[0] / context; d.r.IntN(5) {
			case 0:
				d.add([]int{5}, "mingru out=5")
			case 1:
				d.add([]int{wide}, "attention heads=%d", d.divisor(wide))
			case 2:
				d.add([]int{wide}, "last")
			case 3: // the loss at each position
				if !strings.Contains(strings.Join(d.lines, " "), "positions=false") {
					end += " positions=true"
				}
			}
			d.add([]int{3}, "%s", end)
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("input %v, %d samples\n%s", d.input, d.samples, strings.Join(d.lines, "\n"))
				}
			})
			m := Compile(t, fmt.Sprint(d.input), d.lines...)
			mk.compare(t, m, ToyText(t, context), d.samples, 3)
		})
	}
}

// divisor returns a divisor of n.
func (d *draft) divisor(n int) int {
	if k := 1 + d.r.IntN(min(n, 4)); n%k == 0 {
		return k
	}
	return 1
}

// draft is a model under construction.
type draft struct {
	r       *rand.Rand
	input   []int
	lines   []string
	shapes  [][]int // of all results, the sample first
	samples int
}

func newDraft(seed uint64) *draft {
	d := &draft{r: rand.New(rand.NewPCG(seed, 7))}
	d.input = []int{d.pick(1, 2, 3, 5), d.pick(3, 4, 5, 6, 7), d.pick(3, 4, 5, 6, 7)}
	d.samples = d.pick(1, 5, 11, 31, 32, 33, 41, 64)
	kind := d.r.IntN(8)
	distance := kind == 0
	switch {
	case distance:
		d.lines = append(d.lines, "loss "+models.Distance)
	case kind < 3:
		d.lines = append(d.lines, "loss "+[]string{models.MSE, models.Huber}[kind-1]+" outputs=3")
	case kind == 3:
		d.lines = append(d.lines, "loss "+models.BCE+" classes=3")
	}
	d.shapes = [][]int{d.input}
	for range 2 + d.r.IntN(6) {
		d.layer()
	}
	if len(d.last()) == 3 {
		d.add([]int{models.Size(d.last())}, "flatten")
	}
	out := 3
	if distance {
		out = models.Size(d.input)
	}
	d.add([]int{out}, "dense out=%d", out)
	return d
}

func (d *draft) pick(n ...int) int { return n[d.r.IntN(len(n))] }

func (d *draft) last() []int { return d.shapes[len(d.shapes)-1] }

// add appends a layer, named by the number of its result.
func (d *draft) add(out []int, format string, args ...any) {
	d.lines = append(d.lines, fmt.Sprintf(format, args...)+fmt.Sprintf(" name='r%d'", len(d.shapes)))
	d.shapes = append(d.shapes, out)
}

func (d *draft) layer() {
	in := d.last()
	switch k := d.r.IntN(15); {
	case k < 2:
		d.add(in, "relu")
	case k == 12:
		d.add(in, "%s", []string{"tanh", "silu", "gelu", "leakyrelu slope=0.2", "scale factor=0.5"}[d.r.IntN(5)])
	case k == 13:
		d.add(in, "%s", []string{"tanh", "silu", "gelu", "leakyrelu"}[d.r.IntN(4)])
	case k == 14 && models.Size(in) >= 6: // with fewer, normalisation is ill-conditioned
		d.add(in, "layernorm")
	case k == 2:
		d.add(in, "dropout rate=0.%d", 1+d.r.IntN(6))
	case k == 3:
		if d.samples < 11 {
			d.samples = 11 // with fewer, normalisation is ill-conditioned
		}
		d.add(in, "batchnorm")
	case k < 6:
		d.sum()
	case len(in) == 1:
		out := d.pick(1, 2, 7, 16, 17, 31, 33)
		d.add([]int{out}, "dense out=%d bias=%t", out, d.r.IntN(3) > 0)
	case k < 9:
		d.conv()
	case k == 11 && d.r.IntN(2) == 0:
		d.add(in[:1], "globalavgpool")
	default:
		w, s := 1+d.r.IntN(min(3, in[1], in[2])), 1+d.r.IntN(3)
		d.add([]int{in[0], (in[1]-w)/s + 1, (in[2]-w)/s + 1}, "%s kernel=%d stride=%d",
			[]string{"maxpool", "avgpool"}[d.r.IntN(2)], w, s)
	}
}

func (d *draft) conv() {
	in := d.last()
	k, s := 1+d.r.IntN(min(3, in[1], in[2])), 1+d.r.IntN(2)
	pad, groups, out := d.r.IntN(k), 1, d.pick(1, 2, 3, 5, 7)
	if d.r.IntN(3) == 0 {
		groups, out = in[0], in[0]*d.pick(1, 2)
	}
	d.add([]int{out, (in[1]+2*pad-k)/s + 1, (in[2]+2*pad-k)/s + 1},
		"conv out=%d kernel=%d stride=%d pad=%d groups=%d bias=%t", out, k, s, pad, groups, d.r.IntN(3) > 0)
}

// sum adds an earlier result, unchanged, subsampled, or projected.
func (d *draft) sum() {
	in := d.last()
	from := d.r.IntN(len(d.shapes))
	shape, name := d.shapes[from], fmt.Sprintf("r%d", from)
	if from == 0 {
		name = "input"
	}
	if slices.Equal(shape, in) {
		d.add(in, "add with='%s'", name)
		return
	}
	if len(shape) != 3 || len(in) != 3 {
		return
	}
	for s := 1; s < 4; s++ {
		if (shape[1]+s-1)/s != in[1] || (shape[2]+s-1)/s != in[2] {
			continue
		}
		if shape[0] <= in[0] && d.r.IntN(2) == 0 {
			d.add(in, "add with='%s' stride=%d", name, s)
			return
		}
		main := len(d.shapes) - 1
		d.add(in, "conv out=%d kernel=1 stride=%d from='%s'", in[0], s, name)
		if main == 0 {
			d.add(in, "add with='input'")
		} else {
			d.add(in, "add with='r%d'", main)
		}
		return
	}
}
