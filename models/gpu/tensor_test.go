package gpu_test

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"brood/models/gpu"
	"brood/models/gpu/cuda"
	"brood/models/gpu/ptxtest"
	"brood/models/noise"
)

// cores returns the interpreter with the kernels of an arithmetic.
func cores(t *testing.T, arithmetic string) *ptxtest.Device {
	t.Helper()
	d := ptxtest.New()
	text, err := gpu.Source(arithmetic)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Load(arithmetic, text); err != nil {
		t.Fatal(err)
	}
	return d
}

// drawn returns n distinct normals.
func drawn(n int, of uint32) []float32 {
	out := make([]float32, n)
	k := noise.Key{Seed: 9, Purpose: noise.Data, Member: of}
	for i := range out {
		out[i] = k.Gauss(i)
	}
	return out
}

// near reports whether a sum of this many products, whose magnitudes add up to all, is within the error of float32 sums
// that truncate instead of rounding.
func near(got float32, exact, all float64, products int) bool {
	return math.Abs(float64(got)-exact) <= float64(products+4)*0x1p-23*all+0x1p-126
}

// multiplications returns products of all layouts and epilogues, across edges of tiles of 64, of 16 words, and of
// lanes.
func multiplications() (out []gpu.Multiplication) {
	shapes := [][4]int{{1, 1, 1, 1}, {2, 7, 9, 5}, {1, 64, 64, 16}, {1, 65, 63, 33}, {3, 17, 70, 31}, {1, 130, 5, 100},
		{2, 16, 8, 8}, {1, 33, 129, 47}}
	for i, s := range shapes {
		for layout := range 4 {
			p := gpu.Multiplication{Entries: s[0], M: s[1], N: s[2], K: s[3], TurnedA: layout&1 != 0, TurnedB: layout&2 != 0}
			p.A, p.B = drawn(s[0]*s[1]*s[3], 1), drawn(s[0]*s[3]*s[2], 2)
			switch (i + layout) % 4 {
			case 1:
				p.Bias, p.Relu = drawn(s[0]*s[2], 3), true
			case 2:
				p.Gate = drawn(s[0]*s[1]*s[2], 4)
			case 3:
				p.C0 = drawn(s[0]*s[1]*s[2], 5)
				if i%2 == 0 {
					p.Factors = drawn(s[0], 6)
				}
			}
			if s[0] > 1 && layout%2 == 0 {
				p.Rows = []int{s[1], s[1] - 1, 1}[:s[0]]
			} else if s[0] > 1 {
				p.Steps = []int{s[3] - 1, s[3], 1}[:s[0]]
			}
			out = append(out, p)
		}
	}
	return out
}

// wrongProduct describes an element that differs from the product of the rounded operands, or returns "".
func wrongProduct(arithmetic string, p gpu.Multiplication, got []float32) string {
	for i := range got {
		z, r, q := i/(p.M*p.N), i/p.N%p.M, i%p.N
		k := p.K
		if p.Steps != nil {
			k = p.Steps[z]
		}
		sum, all := 0.0, 0.0
		for e := range k {
			a, b := z*p.M*p.K+r*p.K+e, z*p.K*p.N+e*p.N+q
			if p.TurnedA {
				a = z*p.M*p.K + e*p.M + r
			}
			if p.TurnedB {
				b = z*p.K*p.N + q*p.K + e
			}
			x := float64(gpu.Rounded(arithmetic, p.A[a])) * float64(gpu.Rounded(arithmetic, p.B[b]))
			sum, all = sum+x, all+math.Abs(x)
		}
		if p.Bias != nil {
			sum, all = sum+float64(p.Bias[z*p.N+q]), all+math.Abs(float64(p.Bias[z*p.N+q]))
		}
		if p.Gate != nil && p.Gate[i] <= 0 {
			sum = 0
		}
		if p.C0 != nil {
			f := 1.0
			if p.Factors != nil {
				f = float64(p.Factors[z])
			}
			sum, all = f*sum+float64(p.C0[i]), math.Abs(f)*all+math.Abs(float64(p.C0[i]))
		}
		if p.Relu {
			sum = max(0, sum)
		}
		if p.Rows != nil && r >= p.Rows[z] { // not computed
			sum = 0
			if p.C0 != nil {
				sum = float64(p.C0[i])
			}
		}
		if !near(got[i], sum, all, k) {
			return fmt.Sprintf("%s, %d x %d over %d: row %d, column %d of entry %d is %g, want %g", arithmetic, p.M, p.N, p.K, r,
				q, z, got[i], sum)
		}
	}
	return ""
}

// TestTensorProducts: interpreted tensor core products equal products of the rounded operands.
func TestTensorProducts(t *testing.T) {
	for _, arithmetic := range gpu.Tensors {
		d := cores(t, arithmetic)
		for _, p := range multiplications() {
			got, err := p.Do(d)
			if err != nil {
				t.Fatal(err)
			}
			if wrong := wrongProduct(arithmetic, p, got); wrong != "" {
				t.Error(wrong)
			}
		}
	}
}

// convolutions returns convolutions with few and many channels, groups, strides and padding, forward and backward.
func convolutions() (out []gpu.Images) {
	for i, s := range [][9]int{ // entries, samples, in, height, width, out, side, stride, pad; groups below
		{1, 2, 1, 6, 5, 3, 3, 1, 1}, {2, 3, 3, 7, 6, 12, 3, 2, 1}, {1, 1, 5, 9, 9, 20, 2, 1, 0}, {2, 2, 4, 5, 6, 6, 4, 3, 2},
		{1, 9, 6, 8, 8, 40, 1, 1, 0}, {1, 1, 2, 4, 4, 70, 3, 1, 1},
	} {
		for _, back := range []bool{false, true} {
			c := gpu.Images{
				Entries: s[0],
				Most:    s[1],
				In:      s[2],
				H:       s[3],
				W:       s[4],
				Out:     s[5],
				Side:    s[6],
				Stride:  s[7],
				Pad:     s[8],
				Groups:  1,
				Back:    back,
				Sizes:   []int{s[1], s[1] - 1}[:s[0]],
			}
			if i == 3 {
				c.Groups = 2
			}
			h, w := c.Plane()
			c.Weights = drawn(c.Entries*c.Out*c.In/c.Groups*c.Side*c.Side, 1)
			c.X = drawn(c.Entries*c.Most*c.In*c.H*c.W, 2)
			if back {
				c.X = drawn(c.Entries*c.Most*c.Out*h*w, 2)
			}
			switch {
			case back && i%2 == 0:
				c.Gate = drawn(c.Entries*c.Most*c.In*c.H*c.W, 3)
			case !back && i%2 == 1:
				c.Bias, c.Relu = drawn(c.Entries*c.Out, 3), true
			}
			out = append(out, c)
		}
	}
	return out
}

// wrongImages describes an element that differs from the convolution of the rounded operands, or returns "".
func wrongImages(arithmetic string, c gpu.Images, got []float32) string {
	h, w := c.Plane()
	sums, all := make([]float64, len(got)), make([]float64, len(got))
	deep, many := c.In/c.Groups, c.Out/c.Groups
	for z := range c.Entries {
		for s := range c.Sizes[z] {
			for o := range c.Out {
				for y := range h {
					for x := range w {
						for i := range deep * c.Side * c.Side {
							ch, iy, ix := o/many*deep+i/(c.Side*c.Side), y*c.Stride+i/c.Side%c.Side-c.Pad, x*c.Stride+i%c.Side-c.Pad
							if iy < 0 || ix < 0 || iy >= c.H || ix >= c.W {
								continue
							}
							in, of := (((z*c.Most+s)*c.In+ch)*c.H+iy)*c.W+ix, (((z*c.Most+s)*c.Out+o)*h+y)*w+x
							if c.Back {
								in, of = of, in
							}
							v := float64(gpu.Rounded(arithmetic, c.Weights[(z*c.Out+o)*deep*c.Side*c.Side+i])) *
								float64(gpu.Rounded(arithmetic, c.X[in]))
							sums[of], all[of] = sums[of]+v, all[of]+math.Abs(v)
						}
					}
				}
			}
		}
	}
	for i := range got {
		plane, channels := h*w, c.Out
		if c.Back {
			plane, channels = c.H*c.W, c.In
		}
		z := i / (plane * channels * c.Most)
		there := i/(plane*channels)%c.Most < c.Sizes[z]
		if c.Bias != nil && there {
			b := float64(c.Bias[z*c.Out+i/plane%channels])
			sums[i], all[i] = sums[i]+b, all[i]+math.Abs(b)
		}
		if c.Relu {
			sums[i] = max(0, sums[i])
		}
		if c.Gate != nil && c.Gate[i] <= 0 {
			sums[i] = 0
		}
		if !near(got[i], sums[i], all[i], (deep+many)*c.Side*c.Side) {
			return fmt.Sprintf("%s, back %v, %d of %dx%d to %d by %d: element %d is %g, want %g", arithmetic, c.Back, c.In, c.H,
				c.W, c.Out, c.Side, i, got[i], sums[i])
		}
	}
	return ""
}

// TestTensorConvolutions: the same for convolutions and the gradients of their inputs.
func TestTensorConvolutions(t *testing.T) {
	for _, arithmetic := range gpu.Tensors {
		d := cores(t, arithmetic)
		for _, c := range convolutions() {
			got, err := c.Do(d)
			if err != nil {
				t.Fatal(err)
			}
			if wrong := wrongImages(arithmetic, c, got); wrong != "" {
				t.Error(wrong)
			}
		}
	}
}

// TestTensorKinds: names of arithmetics, and devices that do not support them.
func TestTensorKinds(t *testing.T) {
	for kind, want := range map[string][2]string{"bf16/1/cuda9.0": {"bf16", "cuda9.0"}, "tf32/1/ptx": {"tf32", "ptx"},
		"f32/1": {}, "bf16/1/": {}, "f16/1/cuda9.0": {}, "bf16": {}} {
		a, family, ok := gpu.ParseTensorKind(kind)
		if ok != (want[0] != "") || ok && ([2]string{a, family} != want || gpu.TensorKind(a, family) != kind) {
			t.Errorf("%s: %q, %q, %v", kind, a, family, ok)
		}
	}
	if !slices.Equal(gpu.Tensors, []string{"tf32", "bf16"}) {
		t.Error(gpu.Tensors)
	}
	for _, arithmetic := range gpu.Tensors {
		if err := gpu.TensorTest(ptxtest.New(), arithmetic); err != nil {
			t.Error(err)
		}
		if err := gpu.TensorTest(plain{ptxtest.New()}, arithmetic); err == nil ||
			err.Error() != "ptx:0 (interpreter) has no "+arithmetic+
				": it is computed by the tensor cores of NVIDIA's cards, by CUDA" {
			t.Error(err)
		}
	}
	d := ptxtest.New() // it uses the tf32 kernels for bf16
	d.PTX = func(string, string) (string, error) {
		text, err := gpu.Source("tf32")
		if err != nil {
			return "", err
		}
		return cuda.PTX("tf32", text)
	}
	if err := gpu.TensorTest(d, "bf16"); err == nil ||
		!strings.Contains(err.Error(), "computes rounded numbers of bf16 as") {
		t.Error(err)
	}
}

// TestTensorTestConvolves: a device with correct products and incorrect convolutions is refused.
func TestTensorTestConvolves(t *testing.T) {
	for _, arithmetic := range gpu.Tensors {
		source, err := gpu.Source(arithmetic)
		if err != nil {
			t.Fatal(err)
		}
		text, err := cuda.PTX(arithmetic, source)
		if err != nil {
			t.Fatal(err)
		}
		before, conv, _ := strings.Cut(text, ".entry conv_tensor(")
		swapped := regexp.MustCompile(`(mma\S+ \{[^}]*\},\{)(%r\d+),(%r\d+)`).ReplaceAllString(conv, "$1$3,$2")
		d := ptxtest.New()
		d.PTX = func(string, string) (string, error) { return before + ".entry conv_tensor(" + swapped, nil }
		if err := gpu.TensorTest(d, arithmetic); swapped == conv || err == nil ||
			!strings.Contains(err.Error(), "computes a convolution of whole numbers of "+arithmetic+" as ") {
			t.Errorf("%s: %v", arithmetic, err)
		}
	}
}

// plain is a device without tensor cores.
type plain struct{ gpu.Device }

func (p plain) Info() gpu.Info {
	info := p.Device.Info()
	info.Tensor = ""
	return info
}
