package host

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"brood/models/gpu"
	"brood/models/gpu/ptxtest"
	"brood/models/longtest"
	"brood/runtime/event"
)

// interpreted is a CUDA driver with one card: an interpreter of PTX.
type interpreted struct{}

func (interpreted) Name() string                   { return "cuda" }
func (d interpreted) Devices() ([]gpu.Info, error) { return []gpu.Info{ptxtest.New().Info()}, nil }
func (d interpreted) Open(int) (gpu.Device, error) { return ptxtest.New(), nil }

// petals returns the path of a table with three classes of points with four features.
func petals(t *testing.T) string {
	t.Helper()
	text := "a,b,c,d,label\n"
	for i := range 150 {
		class := i % 3
		x := func(n int) float64 { return 1.4 * math.Sin(float64(i*i+97*n)) }
		text += fmt.Sprintf("%.3f,%.3f,%.3f,%.3f,%d\n", x(1)+float64(class), x(2)-float64(class%2), x(3),
			x(4)+0.5*float64(class), class)
	}
	path := filepath.Join(t.TempDir(), "petals.csv")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestTensorRuns: dp-sgd and openai-es train in tf32 and bf16, interpreted, to about the loss of f32/1. The log records
// their own kernel kind; the session verifies where tensor cores of this kind are available, and is rejected elsewhere.
// Without BROOD_LONG each algorithm takes one of the two arithmetics.
func TestTensorRuns(t *testing.T) {
	longtest.Need(t, longtest.Devices, "interprets whole runs")
	was := drivers
	t.Cleanup(func() { drivers = was })
	set, model := petals(t), spec(t, "name = 'small'\ninput = [4]\nclasses = 3\nlayer = [{kind = 'flatten'}, "+
		"{kind = 'dense', out = 12}, {kind = 'relu'}, {kind = 'dense', out = 3}]")
	for _, alg := range []struct {
		name    string
		few     string // arithmetic without BROOD_LONG
		members int
		rounds  uint64
		near    float64 // maximum difference of the loss from that of f32/1
		set     []event.Setting
	}{
		{"dp-sgd", "bf16", 2, 6, 0.02, []event.Setting{{Knob: "eta", Expr: "0.2"}, {Knob: "batch", Expr: "16"}}},
		{"openai-es", "tf32", 16, 8, 0.02, []event.Setting{{Knob: "batch", Expr: "16"}, {Knob: "sigma", Expr: "0.1"}, {Knob: "eta", Expr: "0.1"}}},
	} {
		hashes, firsts, losses := map[string]string{}, map[string]float64{}, map[string]float64{}
		for _, device := range []string{"cpu", "cuda:0,tf32", "cuda:0,bf16"} {
			_, arithmetic, _ := strings.Cut(device, ",")
			if device != "cpu" && arithmetic != alg.few && !longtest.On(longtest.Arithmetic) {
				continue
			}
			drivers = []gpu.Driver{interpreted{}}
			o := Options{Algorithm: alg.name, Model: model, Data: set, Members: alg.members, Workers: 1, Threads: 1, Seed: 3,
				Limit: event.Limit{Rounds: alg.rounds}, By: "test", Set: alg.set,
				Device: device, Probe: alg.rounds}
			dir := filepath.Join(t.TempDir(), "s")
			j := prepare(t, o)
			hashes[device] = train(t, dir, j, nil, func(_ *Run, rec event.Record) {
				if p := rec.Points; p != nil && p.Series == "centre.loss" {
					if losses[device] = p.Values[0]; firsts[device] == 0 {
						firsts[device] = losses[device]
					}
				}
			})
			first := firsts[device]
			t.Logf("%s on %s: loss %.4f, then %.4f", alg.name, device, first, losses[device])
			if !(losses[device] < 0.8*first) || math.Abs(losses[device]-losses["cpu"]) > alg.near {
				t.Errorf("%s on %s: loss %g, then %g; want about the %g of f32/1", alg.name, device, first, losses[device],
					losses["cpu"])
			}
			if device == "cpu" {
				continue
			}
			kind := arithmetic + "/1/ptx"
			if j.Config.Kernels != kind || first == firsts["cpu"] {
				t.Errorf("%s on %s: the log names %s, and the first loss is %g as in f32/1", alg.name, device,
					j.Config.Kernels, first)
			}
			v, err := Verify(context.Background(), dir, 1, nil)
			if err != nil || v.Last.Hash != hashes[device] {
				t.Errorf("%s on %s, again: %v, %v", alg.name, device, v.Last, err)
			}
			elsewhere := CarryHome(t, dir)
			drivers = nil
			want := "the session was computed by kernels " + kind + ", which is " + arithmetic +
				" on tensor cores of compute capability ptx, and this machine has no such card: execute it on a machine with " +
				"one; brood replay shows its contents"
			if _, err := Verify(context.Background(), dir, 1, nil); err == nil || err.Error() != want {
				t.Errorf("without a card: %v", err)
			}
			elsewhere(kind)
		}
	}
}

// CarryHome exports the model of a session. It returns a check, to be called without a card, that exports the model
// again from its saved round and evaluates it. tensor_evaluate_test.go sets it, since tests of this package cannot
// import package evaluate.
var CarryHome func(t *testing.T, dir string) (elsewhere func(kind string))

// TestTensorKinds: which device and which worker computes which kernel kind.
func TestTensorKinds(t *testing.T) {
	longtest.Need(t, longtest.Devices, "compiles for many devices")
	was := drivers
	t.Cleanup(func() { drivers = was })
	drivers = []gpu.Driver{interpreted{}, cards{name: "opencl", makes: []string{"other"}}}
	j := prepare(t, tiny(1))
	for _, c := range []struct{ kind, device, computes, refusal string }{
		{"bf16/1/ptx", "", "bf16/1/ptx", ""},
		{"bf16/1/ptx", "cuda:0", "bf16/1/ptx", ""}, // as a joining worker opens it
		{"tf32/1/ptx", "cuda:0", "tf32/1/ptx", ""},
		{"", "gpu,tf32", "tf32/1/ptx", ""},
		{"", "cuda:0", "f32/1", ""},
		{"f32/1", "cuda:0", "f32/1", ""},
		{"f32/1", "cuda:0,bf16", "", "device cuda:0,bf16 computes bf16/1/ptx, and the session was computed by kernels f32/1"},
		{"tf32/1/ptx", "cuda:0,bf16", "", "device cuda:0,bf16 computes bf16/1/ptx"},
		{"bf16/1/cuda9.0", "cuda:0", "", "device cuda:0 computes bf16/1/ptx, and the session was computed by kernels bf16/1/cuda9.0: the bits may differ"},
		{"bf16/1/cuda9.0", "", "", "which is bf16 on tensor cores of compute capability 9.0, and this machine has no such card"},
		{"bf16/1/ptx", "cpu", "", "a processor has no bf16: omit --device cpu"},
		{"bf16/1/ptx", "opencl:0", "", "device opencl:0: it has no tensor cores for bf16"},
		{"", "gpu:1,bf16", "", "device gpu:1,bf16: this machine has one, with the number 0"},
	} {
		j.Device = c.device
		e, err := j.engine(c.kind, 1)
		if c.refusal != "" {
			if err == nil || !strings.Contains(err.Error(), c.refusal) {
				t.Errorf("%s on %q: %v, want %s", c.kind, c.device, err, c.refusal)
			}
		} else if err != nil || e.Kernels() != c.computes {
			t.Errorf("%s on %q: %v, %v, want %s", c.kind, c.device, e, err, c.computes)
		}
		if err == nil {
			Release(e)
		}
	}
	drivers = []gpu.Driver{cards{name: "opencl"}}
	want := "; a run in bf16 needs this card on the machine that starts or serves it, not only on its workers"
	if _, err := device("gpu,bf16"); err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("without a card: %v", err)
	}
	if _, err := device("cuda:0"); err == nil || strings.Contains(err.Error(), "bf16") {
		t.Errorf("without a card: %v", err)
	}
	drivers = []gpu.Driver{interpreted{}, cards{name: "opencl", makes: []string{"other"}}}
	for at, want := range map[string][]string{"cuda:0": {"f32/1", "tf32/1/ptx", "bf16/1/ptx"}, "gpu,bf16": {"bf16/1/ptx"},
		"opencl:0": {"f32/1"}, "cpu,bf16": {"bf16-fma/1"}, "cpu,amx": {"bf16-amx/1"}} {
		if got, err := (*Own)(nil).Kernels(at); err != nil || !slices.Equal(got, want) {
			t.Errorf("a worker on %s has %v, %v", at, got, err)
		}
	}
	if slices.ContainsFunc(AllKernels(), func(kind string) bool {
		return strings.HasPrefix(kind, "tf32") || strings.HasPrefix(kind, "bf16/")
	}) {
		t.Errorf("without a device: %v", AllKernels())
	}
	for _, c := range []struct {
		run  string
		has  []string
		want string
	}{
		{"f32/1", []string{"bf16/1/ptx"}, "this run computes with kernels f32/1, and your worker requests bf16: remove ,bf16 from --device"},
		{"bf16/1/cuda9.0", []string{"f32/1"}, "this run computes with kernels bf16/1/cuda9.0, which is bf16 on tensor cores of compute capability 9.0: join with --device cuda:0 on a machine that has such a card"},
		{"f32/1", []string{"bf16-fma/1"}, "this run computes with kernels f32/1, and your worker requests bf16: omit --device"},
		{"bf16-fma/1", []string{"f32/1", "bf16/1/ptx"}, "this run computes with kernels bf16-fma/1, which every processor has and no device: omit --device, or join with a newer brood"},
		{"bf16-amx/1", []string{"f32/1", "gorgonia/gonum/amd64", "bf16-fma/1"}, "this run computes with kernels bf16-amx/1, which every processor has and no device: omit --device, or join with a newer brood"},
		{"f32/1", []string{"bf16-amx/1"}, "this run computes with kernels f32/1, and your worker requests amx: omit --device"},
		{"bf16-fma/1", []string{"bf16-amx/1"}, "this run computes with kernels bf16-fma/1, which every processor has and no device: omit --device, or join with a newer brood"},
		{"f32/2", []string{"f32/1", "bf16/1/ptx"}, ""},
		{"f32/2", []string{"bf16/1/ptx", "f32/1"}, ""},
		{"f32/1", nil, ""},
	} {
		if got := TensorMismatch(c.run, c.has); got != c.want {
			t.Errorf("a worker with %v that joins a run of %s: %s", c.has, c.run, got)
		}
	}
	t.Setenv("BROOD_CPU", "z80")
	if _, err := selectedEngine("bf16/1/ptx"); err == nil || !strings.Contains(err.Error(), "z80") {
		t.Errorf("an unknown processor: %v", err)
	}
	list, _ := Devices()
	if kinds, why, err := list[0].Test(); err != nil || len(why) > 0 ||
		!slices.Equal(kinds, []string{"f32/1", "tf32/1/ptx", "bf16/1/ptx"}) {
		t.Errorf("%v, %v, %v", kinds, why, err)
	}
}

// TestAssembled: Assemble parses the report of an assembler for each source of kernels, including spilled registers.
func TestAssembled(t *testing.T) {
	was := drivers
	t.Cleanup(func() { drivers = was })
	drivers = []gpu.Driver{interpreted{}}
	list, _ := Devices()
	spills, err := filepath.Abs("../../models/gpu/toolkit/testdata/spills.txt")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	script := "#!/bin/sh\n[ \"$2\" = -arch=sm_ptx ] && cat " + spills + "\n"
	if err := os.WriteFile(filepath.Join(dir, "ptxas"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	ptxas, err := Assembler()
	if err != nil {
		t.Fatal(err)
	}
	all, err := list[0].Assemble(context.Background(), ptxas)
	if err != nil || len(all) != len(gpu.Sources) {
		t.Fatalf("%+v, %v", all, err)
	}
	want := "gemm_tensor writes 1016 bytes of registers and reads 808"
	if a := all[2]; a.Source != "tf32" || a.Kernels != 2 || a.Registers != 32 || a.Of != "conv_tensor" || a.Stack != 600 ||
		a.StackOf != "gemm_tensor" || len(a.Spills) != 2 || a.Spills[1] != want {
		t.Errorf("%+v", a)
	}
}
