package gpu_test

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"brood/models"
	"brood/models/data"
	"brood/models/enginetest"
	"brood/models/gpu"
	"brood/models/gpu/clang"
	"brood/models/gpu/ptxtest"
	"brood/models/longtest"
)

// plants are plausible faults of kernels: original text and faulty text.
var plants = [][2]string{
	{"FP_CONTRACT OFF", "FP_CONTRACT ON"},
	{"sum[i] = fma8(a[i], right, sum[i]);", "sum[i] = sum[i] + a[i] * right;"},
	{"for (uint d = 0; d < deep; d++)", "for (uint d = deep; d-- > 0;)"},
	{"if (p->relu && s < 0)", "if (p->relu && s < 0 && q > 0)"},
	{"s = s + x[ENTRY * step + (ulong)r * n + j];", "s = x[ENTRY * step + (ulong)r * n + j] + s * 1.0000001f;"},
	{"sum = sum + part;", "sum = part + sum * (1 - 0x1p-52);"},
	{"lane[i % 16] = lane[i % 16] + t;", "lane[0] = lane[0] + t;"},
	{"t = t < -86.0f ? -86.0f : t;\n\t\tt = power_of_e(t);", "t = exp(t);"},
	{"c = as_float(as_uint(c) ^ y << 31);", ""},
	{"whole[3] += (int)w * integer(c.w);", "whole[3] += (int)w * integer(c.z);"},
	{"for (uint h = 8; h > 0; h /= 2) {\n\t\tbarrier", "for (uint h = 8; h > 1; h /= 2) {\n\t\tbarrier"},
	{"b += 0x7fff + ((b >> 16) & 1);", "b += 0x8000;"},
	{"(double)(int)rint((double)x * down)", "(double)(int)((double)x * down)"},
	{"put = to == NONE ? i : words[to + i]", "put = to == NONE ? i : words[to + n - 1 - i]"},
	{"get = from == NONE ? i : words[from + i]", "get = i"},
	{"s = s + b * y[aty + i];", "s = fma(b, y[aty + i], s);"},
	{"x[at + COLUMN] = (float)((double)length / (sqrt(sums[0]) + 1e-7)) * x[at + COLUMN];", "x[at + COLUMN] = x[at + COLUMN] / (float)((sqrt(sums[0]) + 1e-7) / length);"},
	{"!= (pass & 1);", "!= (k[7] & 1);"},
	{"(((ulong)k[8] << 32 | k[7]) + s) / k[9]", "(ulong)(k[7] + s) / k[9]"},
	{"min(-y, 2 * height - 2 - y)", "min(-y, 2 * height - 1 - y)"},
	{"ulong i = lo + COLUMN;", "ulong i = COLUMN;"},
	{"*x = (*x - wd * *x) - step;", "*x = *x - (wd * *x + step);"},
	{"float x = inverse * v[j];", "float x = v[j] * inverse * 1.0000001f;"},
	{"t[i] = (s[4 * i] + s[4 * i + 2]) + (s[4 * i + 1] + s[4 * i + 3]);", "t[i] = s[4 * i] + s[4 * i + 2] + s[4 * i + 1] + s[4 * i + 3];"},
	{"t[l] = (s[4 * l] + s[4 * l + 2]) + (s[4 * l + 1] + s[4 * l + 3]);", "t[l] = s[4 * l] + s[4 * l + 2] + s[4 * l + 1] + s[4 * l + 3];"},
	{"rows = max(1u, 16 / f->ow);", "rows = max(1u, 32 / f->ow);"},
	{"rows = max(1u, 16 / f->ow), cuts", "rows = max(1u, 32 / f->ow), cuts"},
	{"t4[l] = (s[4 * l] + s[4 * l + 2]) + (s[4 * l + 1] + s[4 * l + 3]);", "t4[l] = s[4 * l] + s[4 * l + 2] + s[4 * l + 1] + s[4 * l + 3];"},
	{"for (uint d = lane; d < live * 32; d += 16)", "for (uint d = lane + live * 32 - 16; d < live * 32; d -= 16)"},
	{"return x > 0 ? 1 : x < 0 ? -1 : x;", "return x >= 0 ? 1 : -1;"},
	{"s = s * columns(m[by[0]] + long_of(by + 1) + row * by[3] + i, live);", "s = s * columns(m[by[0]] + long_of(by + 1) + i, live);"},
	{"cuts[3] = lo;", ""},
	{"if (deep < 5)", "if (deep < 1)"},
	{"for (uint h = 16; h > 0; h /= 2)", "for (uint h = 1; h < 32; h = 32)"},
	{"for (uint d = 0; d < steps; d++)\n\t\t\tmultiply_there", "for (uint d = steps; d-- > 0;)\n\t\t\tmultiply_there"},
	{"else if (!(m > v))", "else if (m < v - 1)"},
	{"if (tap[t / p->side * p->w + t % p->side] == y[o])", "if (tap[t / p->side * p->w + t % p->side] > y[o])"},
	{"square / (count - 1)", "square / count"},
	{"(double)(words[sizes + ENTRY] * plane)", "(double)(words[sizes] * plane)"},
	{"*d = more ? *d + v : v;", "*d = v;"},
	{"scale = 2 * (1.0f / (float)size)", "scale = 2 * (1.0f / (float)most)"},
	{"blake_order[i]", "i"},
	{"slope = e < -1.0f ? -1.0f : e > 1.0f ? 1.0f : e;", "slope = e;"},
	{"if ((x > 0.0f) != in)", "if (x > 0.0f && !in)"},
	{"in ? g - scale : g", "in ? fma(some, f, -scale) : g"},
	{"1.0f / (float)size / (float)classes", "1.0f / (float)most / (float)classes"},
	{"hits[at] = wrong == 0;", "hits[at] = wrong <= 1;"},
	{"fabs((double)e) - 0.5", "fabs((double)e) - 0.25"},
	{"part = part + squares[(ulong)z * most + s];", "part = squares[(ulong)z * most + s] + part * (1 - 0x1p-52);"},
	{"s = bits ? x : t == 0 ? c : s + c;", "s = t == 0 ? c : fma((float4)(as_float(p[0])), x, s);"},
	{"row * p[4] + i, live)", "row * n + i, live)"},
	{"k < words[ends + ENTRY + 1]", "k < words[ends + ENTRY] + 1"},
	{"live > 2 ? x[2] : 0, 0)", "live > 1 ? x[1] : 0, 0)"},
	{"if (code == BF16)", "if (code == BF16 && k < count)"},
	{"i < lines && d < deep ?", "i < lines && d + 1 < deep ?"},
	{"bs + d * 8 * wide + across", "bs + d * SIDE + across"},
	{"row + r < m && d < steps ?", "row + r + 1 < m && d < steps ?"},
	{"g * m + o) * plane + q % plane", "o) * plane + q % plane"},
	{"uint of[4] = {w.x, w.y, w.z, w.w};\n\tfor", "uint of[4] = {w.x, w.y, w.w, w.z};\n\tfor"},
	{"later = at < s ? 2 : 0", "later = 0"},
	{"column = width - 1 - column;", "column = width - column;"},
	{"(f / (height * width) * height + y)", "y"},
	{"w.x, 2 * pad + 1", "w.x, 2 * pad"},
	{"deep -= 2;", "deep -= 2 - (deep > 2);"},
	{"? p : 1.0f - p;", "? p : 1.0f - p * 1.000001f;"},
	{"return x + (p * z) * x;", "return x + p * (z * x);"},
	{"for (uint i = t % 16; i < last; i += 16)\n\t\tsum", "for (uint i = t % 16 * 2; i < last; i += i % 2 ? 31 : 1)\n\t\tsum"},
	{"sum = (float)((double)halves(lane, sum) / (double)n);", "sum = 0;"},
	{"text[(ulong)words[ids + z * most + s] + f]", "text[(ulong)words[ids + z * most + s] + f / 2]"},
	{"(ulong)b * wide + i % wide]", "(ulong)b * wide]"},
	{"if ((uint)(int)x[p] == row)\n\t\t\tsum = sum + dy[p * wide];", "if ((uint)(int)x[places - 1 - p] == row)\n\t\t\tsum = sum + dy[(places - 1 - p) * wide];"},
	{"0.5f + 0.5f * tangent(z[at] / 2)", "sigmoid(z[at])"},
	{"before = before + open * (c[at] - before);", "before = fma(open, c[at] - before, before);"},
	{"d = d + asked;", "d = asked;"},
	{"(d * (c[at] - before)) * (open * shut);", "(d * (c[at] - before)) * open * shut;"},
	{"float qe = q[e] * scale;\n\t\t\tx = fma(qe, k[e], x);", "x = fma(q[e], k[e], x);\n\t\tx = x * scale;"},
	{"in = n - a + i + 1;\n\tif (s >= words[sizes + ENTRY])\n\t\treturn;\n\ts += (ulong)ENTRY * most;\n\tqkv += s * n * 3 * c + head * d;", "in = n;\n\tif (s >= words[sizes + ENTRY])\n\t\treturn;\n\ts += (ulong)ENTRY * most;\n\tqkv += s * n * 3 * c + head * d;"},
	{"scores[t] + -sum * weights[t]", "fma(-sum, weights[t], scores[t])"},
	{"lane[t % 16] = lane[t % 16] + x;\n\t\tscores[t] = x;", "lane[0] = lane[0] + x;\n\t\tscores[t] = x;"},
	{"x = x * scale;\n\t} else if", "} else if"},
	{"for (uint i = 0; i < a; i++)\n\t\t\tx = fma(weights[(ulong)i * n + t], g", "for (uint i = a; i-- > 0;)\n\t\t\tx = fma(weights[(ulong)i * n + t], g"},
}

// blocks splits a kernel source into its functions, types and constants, with the lines between them.
func blocks(text string) (out []string) {
	from := 0
	for at, lines := 0, strings.SplitAfter(text, "\n"); len(lines) > 0; lines = lines[1:] {
		at += len(lines[0])
		line := strings.TrimSuffix(lines[0], "\n")
		outside := !strings.HasPrefix(line, "\t")
		if len(lines) == 1 || outside && (strings.HasSuffix(line, "}") || strings.HasSuffix(line, ";") ||
			strings.HasPrefix(line, "#")) {
			out, from = append(out, text[from:at]), at
		}
	}
	return out
}

// heads matches the line at which a function is defined.
var heads = regexp.MustCompile(`(?m)^(?:__kernel |INLINE )?\w+ (\w+)\(`)

// function returns the name of the function that a block defines, or "".
func function(block string) string {
	for _, m := range heads.FindAllStringSubmatch(block, -1) {
		if m[1] != "__attribute__" {
			return m[1]
		}
	}
	return ""
}

// planted returns a kernel source with a fault, reduced to the kernels that the fault changes, and their names. Fewer
// kernels compile faster.
func planted(text string, plant [2]string) (faulty string, changed []string) {
	was, is := blocks(text), blocks(strings.ReplaceAll(text, plant[0], plant[1]))
	names, touched := make([]string, len(was)), make([]bool, len(was))
	for i := range was {
		names[i] = function(was[i])
	}
	for again := true; again; {
		again = false
		for i := range was {
			if touched[i] {
				continue
			}
			touched[i] = was[i] != is[i]
			for j := range was {
				if i != j && touched[j] {
					touched[i] = touched[i] || names[j] == "" || strings.Contains(was[i], names[j]+"(")
				}
			}
			again = again || touched[i]
		}
	}
	for i, block := range is {
		switch kernel := strings.Contains(block, "__kernel"); {
		case kernel && touched[i]:
			changed = append(changed, names[i])
			faulty += block
		case !kernel:
			faulty += block
		}
	}
	return faulty, changed
}

// faultyDevice is the test device with some kernels replaced.
type faultyDevice struct {
	*kept
	plant    [2]string
	loaded   map[string]bool // sources that contain the fault
	replaced map[string]gpu.Kernel
	launched map[gpu.Kernel]bool
}

func (d *faultyDevice) Load(name, source string) error {
	if d.loaded[name] || d.plant[0] == "" || !strings.Contains(source, d.plant[0]) {
		return nil // loaded before
	}
	d.loaded[name] = true
	text, changed := planted(source, d.plant)
	if err := d.Device.Load(name, text); err != nil {
		return err
	}
	for _, k := range changed {
		f, err := d.Device.Kernel(k)
		if err != nil {
			return err
		}
		d.replaced[k] = f
	}
	return nil
}

func (d *faultyDevice) Kernel(name string) (gpu.Kernel, error) {
	if f, ok := d.replaced[name]; ok {
		return f, nil
	}
	return d.kept.Kernel(name)
}

func (d *faultyDevice) Launch(k gpu.Kernel, groups [3]int, size int, args ...any) error {
	d.launched[k] = true
	return d.Device.Launch(k, groups, size, args...)
}

// trial is a model to run kernels on.
type trial struct {
	m       *models.Model
	set     *data.Set
	vectors bool
	uses    map[gpu.Kernel]bool // kernels that it launches
}

// run runs the trial's tasks on the device and on the native engine, and reports whether a result differs; it stops at
// the first difference.
func (c *trial) run(t *testing.T, d gpu.Device) (seen bool) {
	e, err := gpu.New(d, c.m, c.set)
	if err != nil { // the self-test detects it
		return true
	}
	defer e.Close()
	type difference struct{}
	defer func() {
		if r := recover(); r == (difference{}) {
			seen = true
		} else if r != nil {
			panic(r)
		}
	}()
	w := comparisonOf(t, c.m, c.set, e)
	w.fault = func(string, ...any) { panic(difference{}) }
	if c.vectors {
		w.vectors()
	}
	w.models()
	return false
}

// trials returns the nets that together run every kernel with a fault.
func trials(t *testing.T) (out []*trial) {
	toy := enginetest.Toy(t, 2, 5, 6)
	cut, err := toy.Augmented(data.Augment{Pad: 2, Reflect: true, Flip: true, Alternate: true})
	if err != nil {
		t.Fatal(err)
	}
	images := thinned(t, 140)
	add := func(shape string, set *data.Set, layers ...string) {
		out = append(out, &trial{m: net(t, shape, set.Classes, layers...), set: set})
	}
	add("[2,5,6]", cut, append(slices.Clone(nets[1]), "dense out=3")...)
	out[0].vectors = true
	for _, layers := range [][]string{nets[2], nets[4], nets[5], nets[6], nets[7], nets[8], nets[11]} {
		add("[1,14,13]", images, append(slices.Clone(layers), "dense out=10")...)
	}
	for _, layers := range [][]string{means[0], means[2], means[3], means[4], means[5]} {
		add("[2,5,6]", meant(t, net(t, "[2,5,6]", 0, layers...)), layers...)
	}
	for _, layers := range [][]string{texts[1], texts[3]} {
		input, set, rest, _ := reads(t, layers)
		add(input, set, append(slices.Clone(rest), "dense out=3")...)
	}
	return out
}

// TestPlantedFaults: each of these faults changes a bit that the comparison with the native engine detects. A text that
// occurs in no kernel is an error of the list.
func TestPlantedFaults(t *testing.T) {
	longtest.Need(t, longtest.Devices, "compiles some kernels for each of some eighty faults")
	d := &faultyDevice{kept: once(t).(*kept)}
	for _, name := range gpu.Sources[:2] {
		text, err := gpu.Source(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.kept.Load(name, text); err != nil {
			t.Fatal(err)
		}
		for _, block := range blocks(text) { // before faulty kernels of the same names are loaded
			if strings.Contains(block, "__kernel") {
				if _, err := d.kept.Kernel(function(block)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	all := trials(t)
	for _, c := range all {
		d.launched = map[gpu.Kernel]bool{}
		if c.run(t, d) {
			t.Fatalf("%v differs without a fault", c.m.Layers)
		}
		c.uses = d.launched
	}
	for i, plant := range plants {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			d.plant, d.loaded, d.replaced = plant, map[string]bool{}, map[string]gpu.Kernel{}
			changed := changes(t, plant)
			for _, c := range all {
				if slices.ContainsFunc(changed, func(name string) bool { return c.uses[d.kernels[name]] }) && c.run(t, d) {
					return
				}
			}
			t.Errorf("%q in place of %q is not detected", plant[1], plant[0])
		})
	}
}

// changes returns the kernels that a fault changes.
func changes(t *testing.T, plant [2]string) (out []string) {
	for _, name := range gpu.Sources[:2] {
		text, err := gpu.Source(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(text, plant[0]) {
			_, names := planted(text, plant)
			out = append(out, names...)
		}
	}
	if len(out) == 0 {
		t.Errorf("no kernel contains %q", plant[0])
	}
	return out
}

// tensorPlants are faults of the tensor core kernels: layouts of fragments, edges, roundings.
var tensorPlants = [][2]string{
	{"a[1] = tile[8];\n\ta[2] = tile[4 * wide];", "a[2] = tile[8];\n\ta[1] = tile[4 * wide];"},
	{"+ r] = word(of[0], of[1]);", "+ r] = word(of[1], of[0]);"},
	{"{%8,%9},", "{%9,%8},"},
	{`"r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0)`, `"r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3] & 0), "r"(b0)`},
	{"g = t % 32 / 4, mine = t % 4;\n\ta +=", "g = t % 32 % 8, mine = t % 32 / 8;\n\ta +="},
	{"q = col + i % 8 * 8 + 2 * mine + e % 2;", "q = col + i % 8 * 8 + mine + e % 2 * 4;"},
	{"i / 8 * 16 + g + e / 2 * 8,", "i / 8 * 16 + 2 * g + e / 2,"},
	{"cvt.rna.tf32.f32 %0, %1;", "mov.b32 %0, %1;"},
	{"cvt.rna.tf32.f32 %0, %1;", "and.b32 %0, %1, 0xffffe000;"},
	{"i < lines && d + 1 < deep", "i < lines"},
	{"i < lines && d < deep ? at[0] : 0", "i < lines && d <= deep ? at[0] : 0"},
	{"w < WORDS; w += STEP", "w + STEP < WORDS; w += STEP"},
	{"left_words(left[1], as + at + high + 16,", "left_words(left[1], as + at + high + 8,"},
	{"barrier(CLK_LOCAL_MEM_FENCE);\n\t\t#pragma unroll\n\t\tfor (uint w = 0;", "#pragma unroll\n\t\tfor (uint w = 0;"},
	{"if (at < steps && iy < xh", "if (iy < xh"},
	{"part % high * 8 + g;", "part / high % 8 * 8 + g;"},
	{"q = col + part / high * 16 + g + e / 2 * 8, o", "q = col + part / high * 16 + 2 * g + e / 2, o"},
	{"if (row + r < m && d + i < steps)", "if (row + r < m && d < steps)"},
}

// TestPlantsAreThere: the original text of every fault occurs in some kernel.
func TestPlantsAreThere(t *testing.T) {
	all := ""
	for _, name := range gpu.Sources {
		text, err := gpu.Source(name)
		if err != nil {
			t.Fatal(err)
		}
		all += text
	}
	for _, plant := range slices.Concat(plants, tensorPlants) {
		if !strings.Contains(all, plant[0]) || plant[0] == plant[1] {
			t.Errorf("no kernel contains %q, or the fault changes nothing", plant[0])
		}
	}
}

// TestPlantedTensorFaults: each of these faults changes a product or a convolution of either arithmetic, or stops the
// interpreter.
func TestPlantedTensorFaults(t *testing.T) {
	longtest.Need(t, longtest.Devices, "compiles the kernels for tensor cores twice for each of some twenty faults")
	if _, err := exec.LookPath(clang.Name); err != nil {
		t.Skip(err)
	}
	builtins, err := os.ReadFile("cuda/builtins.cl")
	if err != nil {
		t.Fatal(err)
	}
	for i, plant := range tensorPlants {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			planted, seen := false, ""
			for _, arithmetic := range gpu.Tensors {
				text, err := gpu.Source(arithmetic)
				if err != nil {
					t.Fatal(err)
				}
				planted = planted || strings.Contains(text, plant[0])
				text, err = clang.PTX(string(builtins) + strings.ReplaceAll(text, plant[0], plant[1]))
				if err != nil {
					t.Fatal(err)
				}
				d := ptxtest.New()
				d.PTX = func(string, string) (string, error) { return text, nil }
				if err := gpu.TensorTest(d, arithmetic); err != nil {
					seen = err.Error()
				}
				for _, p := range multiplications() {
					got, err := p.Do(d)
					if err != nil {
						seen = err.Error()
					} else if wrong := wrongProduct(arithmetic, p, got); wrong != "" {
						seen = wrong
					}
				}
				for _, c := range convolutions() {
					got, err := c.Do(d)
					if err != nil {
						seen = err.Error()
					} else if wrong := wrongImages(arithmetic, c, got); wrong != "" {
						seen = wrong
					}
				}
				if seen != "" {
					break
				}
			}
			switch {
			case !planted:
				t.Errorf("no kernel contains %q", plant[0])
			case seen == "":
				t.Errorf("%q in place of %q is not detected", plant[1], plant[0])
			default:
				t.Log(seen)
			}
		})
	}
}
