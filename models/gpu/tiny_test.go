package gpu_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"brood/models"
	"brood/models/data"
	"brood/models/engine"
	"brood/models/enginetest"
	"brood/models/gpu"
	"brood/models/longtest"
	"brood/models/noise"
)

// tiny are nets that together run every kernel.
var tiny = [][]string{
	{"conv out=3 kernel=3 pad=1 name='a'", "relu", "conv out=3 kernel=3 pad=1 groups=3", "batchnorm", "add with='a'", "maxpool kernel=2", "dropout rate=0.2", "flatten", "dense out=5", "relu", "dense out=32", "relu", "dense out=3"},
	{"avgpool kernel=2", "relu", "globalavgpool", "dense out=3"},
	{"flatten", "layernorm", "tanh", "dense out=18", "gelu", "layernorm", "leakyrelu", "scale factor=-0.7", "silu", "dense out=3"},
	{"loss distance", "constant out=60"},
	{"text 3", "constant out=12 name='p'", "embedding out=4 vocabulary=3 from='input'", "add with='p'", "attention heads=2 sequence=true", "layernorm positions=true", "dense out=2 positions=true", "attention", "dense out=3"},
	{"text 3", "embedding out=2 vocabulary=3", "mingru out=3 sequence=true", "mingru out=2", "dense out=3"},
}

// tinyNet returns a tiny net and its data: toy images, or a text in windows of the layers' context.
func tinyNet(t *testing.T, layers []string) (*models.Model, *data.Set) {
	t.Helper()
	if input, set, rest, ok := reads(t, layers); ok {
		return net(t, input, 3, rest...), set
	}
	return net(t, "[2,5,6]", 3, layers...), enginetest.Toy(t, 2, 5, 6)
}

// TestTinyShapes compares small shapes with the native engine, for memory checkers.
func TestTinyShapes(t *testing.T) {
	for i, layers := range tiny {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			m, set := tinyNet(t, layers)
			w := newComparison(t, m, set)
			if os.Getenv("OCLGRIND_LOG") != "" { // interpreted; together the nets run every variant
				w.kinds = []int{2 * i % ways, (2*i + 7) % ways, (2*i + 12) % ways}
			}
			if i == 0 && os.Getenv("OCLGRIND_LOG") == "" {
				w.vectors()
			}
			w.models()
		})
	}
}

// oclgrind is the library of Oclgrind, an OpenCL device that detects out-of-bounds accesses and data races.
const oclgrind = "/usr/lib/oclgrind/liboclgrind-rt.so"

// onOclgrind runs a test of this package on Oclgrind, and returns whether it passes, its output, and Oclgrind's
// messages.
func onOclgrind(t *testing.T, which string) (passes bool, out, log []byte) {
	t.Helper()
	longtest.Need(t, longtest.Devices, "kernels are interpreted")
	if _, err := os.Stat(oclgrind); err != nil {
		t.Skipf("%v: install oclgrind", err)
	}
	logFile := filepath.Join(t.TempDir(), "log")
	c := exec.Command(os.Args[0], "-test.run="+which, "-test.v")
	c.Env = append(os.Environ(), "BROOD_OPENCL="+oclgrind, "OCLGRIND_DATA_RACES=1", "OCLGRIND_CHECK_API=1",
		"OCLGRIND_LOG="+logFile)
	out, err := c.CombinedOutput()
	log, _ = os.ReadFile(logFile)
	name, _, _ := strings.Cut(strings.Trim(which, "^"), "$")
	return err == nil && strings.Contains(string(out), "--- PASS: "+name), out, log
}

// TestOclgrind: Oclgrind reports nothing in TestTinyShapes. TestTinyTiles covers the tasks that need no model.
func TestOclgrind(t *testing.T) {
	passes, out, log := onOclgrind(t, "^TestTinyShapes$")
	if !passes {
		t.Errorf("%.2000s", out)
	}
	if len(log) > 0 {
		t.Errorf("Oclgrind reports: %.4000s", log)
	}
}

// races are faults that may not change bits if work items run one after the other: missing barriers, and columns that
// two work items process.
var races = [][2]string{
	{"", ""}, // no fault
	{"barrier(CLK_LOCAL_MEM_FENCE);\n\t\tload(", "load("},
	{"barrier(CLK_LOCAL_MEM_FENCE);\n\t\tfor (uint d = 0; d < deep; d++)", "for (uint d = 0; d < deep; d++)"},
	{"barrier(CLK_LOCAL_MEM_FENCE);\n\t\tif (t < SHALLOW)", "if (t < SHALLOW)"},
	{"barrier(CLK_LOCAL_MEM_FENCE);\n\t\tfor (uint e = t; e < 8 * wide", "for (uint e = t; e < 8 * wide"},
	{"barrier(CLK_LOCAL_MEM_FENCE);\n\t\tfor (uint d = 0; d < steps; d++)", "for (uint d = 0; d < steps; d++)"},
	{"barrier(CLK_LOCAL_MEM_FENCE);\n\t\t\t\t\tfor (uint d = lane;", "for (uint d = lane;"},
	{"barrier(CLK_LOCAL_MEM_FENCE);\n\t\t\t\t#pragma unroll\n\t\t\t\tfor (uint i = 0; i < TAPS", "#pragma unroll\n\t\t\t\tfor (uint i = 0; i < TAPS"},
	{"barrier(CLK_LOCAL_MEM_FENCE);\n\t\t\tblock[lane] = v;", "block[lane] = v;"},
	{"ulong i = COLUMN * 4;", "ulong i = COLUMN * 3;"},
	{"lane[t] = v;\n\tfor (uint h = 8; h > 0; h /= 2) {\n\t\tbarrier(CLK_LOCAL_MEM_FENCE);", "lane[t] = v;\n\tfor (uint h = 8; h > 0; h /= 2) {"},
	{"block[lane] = v;\n\t\t\tbarrier(CLK_LOCAL_MEM_FENCE);", "block[lane] = v;"},
}

// TestTinyTiles runs a small gradient of augmented samples, some statements, steps and a small sum with one of the
// races inserted; Oclgrind runs it.
func TestTinyTiles(t *testing.T) {
	if os.Getenv("OCLGRIND_LOG") == "" {
		t.Skip("TestRaces runs it")
	}
	for i, race := range races {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			d := &brokenDevice{Device: open(t), edit: func(source string) string {
				return strings.ReplaceAll(source, race[0], race[1])
			}}
			m := net(t, "[2,5,6]", 3, "conv out=3 kernel=3 pad=1", "relu", "dropout rate=0.5", "conv out=4 kernel=2 stride=2",
				"flatten", "layernorm", "dense out=3")
			set, err := enginetest.Toy(t, 2, 5, 6).Augmented(data.Augment{Pad: 2, Flip: true})
			if err != nil {
				t.Fatal(err)
			}
			e, err := gpu.New(d, m, set)
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			x, err := e.Alloc(3, m.Layout.Params)
			if err != nil {
				t.Fatal(err)
			}
			y, err := e.Alloc(4, m.Layout.Params)
			if err != nil {
				t.Fatal(err)
			}
			adam := func(r engine.Row) engine.Task {
				return engine.Adam{
					X:    y.Sub(r, 1),
					M:    y.Sub(2+r, 1),
					V:    x.Sub(r, 1),
					G:    x.Sub(2, 1),
					Rows: engine.Rows(1),
					Eta:  0.1,
					Eps:  1,
					T:    1,
				}
			}
			err = e.Do(t.Context(), engine.Gradients{
				X:       x,
				Rows:    engine.Rows(1),
				Batches: [][]int32{{1, 2}},
				G:       x.Sub(1, 1),
				Masks:   make([]noise.Key, 1),
				Loss:    make([]float32, 1),
			},
				engine.Update{
					Rows: []engine.Row{0, 2}, Prog: []engine.Lin{
						{Dst: x, Terms: []engine.Term{{C: 2, Src: x}, {C: 3, Src: y}, {C: 1, Src: x.Sub(1, 1)}}},
						{Dst: y, Terms: []engine.Term{{C: 1, Src: x}}},
					},
				},
				engine.Copy{Dst: engine.RowOf(y, 3), Src: engine.RowOf(x, 0)}, engine.Fill{Dst: engine.RowOf(x, 0), Value: 1},
				adam(0), adam(1),
				engine.Sum{
					Dst:  engine.RowOf(x, 0),
					Src:  []engine.Span{engine.RowOf(x, 0), engine.RowOf(x, 1), engine.RowOf(x, 2)},
					Tree: [][2]int{{0, 1}, {2, 3}},
					Code: engine.Int8,
				})
			if err == nil {
				err = e.Wait(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestRaces: Oclgrind detects each of the races, and reports none without a fault.
func TestRaces(t *testing.T) {
	for i, race := range races {
		passes, out, log := onOclgrind(t, fmt.Sprintf("^TestTinyTiles$/^%d$", i))
		switch found := strings.Contains(string(log), "data race"); {
		case !passes:
			t.Errorf("%d: %.2000s", i, out)
		case i == 0 && len(log) > 0:
			t.Errorf("Oclgrind reports: %.4000s", log)
		case i > 0 && !found:
			t.Errorf("%q in place of %q is not reported as a race: %.500s", race[1], race[0], log)
		}
	}
}
