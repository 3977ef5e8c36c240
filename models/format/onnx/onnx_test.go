package onnx

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"brood/models"
	"brood/models/data"
	"brood/models/engine"
	"brood/models/enginetest"
	"brood/models/longtest"
	"brood/models/native"
	"brood/models/native/kernel"
	"brood/models/noise"
)

// trained is a model with parameters that every layer depends on, and the samples to test.
type trained struct {
	name string
	Model
	set *data.Set
	ids []int32
}

func train(t *testing.T, name string, m *models.Model, set *data.Set, samples int) trained {
	t.Helper()
	form := set.Form()
	x := trained{name, Model{
		Net:    m,
		Params: make([]float32, m.Layout.Params),
		Stats:  make([]float32, m.Layout.Stats),
		Form:   &form,
		Meta:   map[string]string{"classes": `["a","b"]`},
	}, set, set.Train()[:samples]}
	if err := m.Init(3, 0, x.Params); err != nil {
		t.Fatal(err)
	}
	key := noise.Key{Seed: 9}
	uniform := func(i int) float32 { return float32(key.Uint32(i)>>8) / (1 << 24) }
	for _, t := range m.Layout.Tensors {
		if len(t.Shape) == 1 { // scales and shifts start at 1 and 0
			for i := range t.Len {
				x.Params[t.Lo+i] += uniform(i) - 0.5
			}
		}
	}
	for _, t := range m.Layout.StatTensors {
		for i := range t.Len {
			x.Stats[t.Lo+i] = uniform(i)*0.5 - 0.25
			if t.Start > 0 { // a variance
				x.Stats[t.Lo+i] = 0.5 + uniform(i)
			}
		}
	}
	return x
}

// raw returns the samples unnormalised.
func (m trained) raw() tensor {
	x := tensor{dims: append([]int{len(m.ids)}, m.set.Shape...)}
	for _, id := range m.ids {
		for _, b := range m.set.Image(id) {
			x.x = append(x.x, float32(b))
		}
	}
	return x
}

func (m trained) file(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, m.Model); err != nil {
		t.Fatalf("%s: %v", m.name, err)
	}
	return b.Bytes()
}

// agrees compares results with the engine's for the same samples: the loss and the prediction of each.
func (m trained) agrees(t *testing.T, out []float32) {
	t.Helper()
	ctx := context.Background()
	e, err := native.NewEngine(m.Net, m.set, 2, kernel.Best())
	if err != nil {
		t.Fatal(err)
	}
	upload := func(x []float32) engine.Mat {
		if len(x) == 0 {
			return engine.Mat{}
		}
		mat, err := e.Alloc(1, len(x))
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Write(ctx, engine.All(mat), engine.AppendFloats(nil, x)); err != nil {
			t.Fatal(err)
		}
		return mat
	}
	x, stats := upload(m.Params), upload(m.Stats)
	width := len(out) / len(m.ids)
	sample := make([]float32, m.set.Features())
	for i, id := range m.ids {
		task := engine.Evaluate{
			X:       x,
			Rows:    engine.Rows(1),
			Batches: [][]int32{{id}},
			Stats:   stats,
			Loss:    make([]float64, 1),
			Correct: make([]int64, 1),
		}
		if err := e.Do(ctx, task); err != nil {
			t.Fatal(err)
		}
		if err := e.Wait(ctx); err != nil {
			t.Fatal(err)
		}
		z := out[i*width : (i+1)*width]
		var loss float64
		switch {
		case m.Net.MultiLabel():
			right := int64(1)
			for k, v := range z {
				in := float64(m.set.Targets(id)[k])
				loss += (math.Log1p(math.Exp(float64(v))) - in*float64(v)) / float64(width)
				if (v > 0) != (in == 1) {
					right = 0
				}
			}
			if right != task.Correct[0] {
				t.Errorf("%s, sample %d: the verdict differs", m.name, i+1)
			}
		case m.Net.Regression():
			for k, v := range z {
				if m.Form != nil { // it is in the unit of the targets
					v = (v - m.Form.TargetMean[k]) / m.Form.TargetStd[k]
				}
				e := math.Abs(float64(v - m.set.Targets(id)[k]))
				if m.Net.Loss == models.MSE {
					loss += e * e / float64(width)
				} else {
					loss += (min(e, 1)*min(e, 1)/2 + max(0, e-1)) / float64(width)
				}
			}
		case m.Net.Loss == models.Distance:
			if err := m.set.Gather([]int32{id}, sample, make([]int32, 1)); err != nil {
				t.Fatal(err)
			}
			for j, v := range z {
				d := float64(v - sample[j])
				loss += d * d
			}
		default:
			right, positions := false, m.Net.Positions
			for at := range positions {
				z, label := z[at*m.Net.Classes:(at+1)*m.Net.Classes], int(m.set.Label(id))
				if positions > 1 {
					label = int(m.set.Next(id)[at])
				}
				most, sum := math.Inf(-1), 0.0
				for _, v := range z {
					most = max(most, float64(v))
				}
				for _, v := range z {
					sum += math.Exp(float64(v) - most)
				}
				loss += (math.Log(sum) + most - float64(z[label])) / float64(positions)
				right = float64(z[label]) == most // at the last position
			}
			if right != (task.Correct[0] == 1) {
				t.Errorf("%s, sample %d: the verdict differs", m.name, id)
			}
		}
		if math.Abs(loss-task.Loss[0]) > 2e-4*(1+math.Abs(loss)) {
			t.Errorf("%s, sample %d: loss %v, the engine has %v", m.name, id, loss, task.Loss[0])
		}
	}
}

// every calls f with each kind of layer and each model of the zoo, up to this many operations per sample; large ones
// only in long tests.
func every(t *testing.T, most float64, f func(m trained)) {
	enginetest.Kinds(t, func(name string, m *models.Model, set *data.Set) { f(train(t, name, m, set, 3)) })
	for _, name := range models.List() {
		m, err := models.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		if m.Int8 { // not supported
			continue
		}
		if forward, _ := m.Flops(); forward > most || forward > 1e7 && !longtest.On(longtest.Kernels) {
			continue
		}
		if m.Vocabulary > 0 {
			f(train(t, name, m, enginetest.ToyText(t, m.Features), 1))
			continue
		}
		shape := m.Input
		if len(shape) == 1 {
			shape = []int{1, 1, shape[0]}
		}
		f(train(t, name, m, enginetest.Toy(t, shape...), 1))
	}
}

// TestFileComputesTheModel: a simple interpreter of the operators computes the same from the file as the engine.
func TestFileComputesTheModel(t *testing.T) {
	every(t, 3e9, func(m trained) { // larger models would take minutes
		p := read(t, m.file(t))
		if p.ir != IR || p.opset != Opset || p.meta["classes"] != `["a","b"]` || p.inputs[0] != Input ||
			p.outputs[0] != Output {
			t.Errorf("%s: the file begins with %+v", m.name, p.meta)
		}
		m.agrees(t, p.run(t, m.raw()).x)
	})
}

// TestWithoutForm: a model without known data takes normalised samples.
func TestWithoutForm(t *testing.T) {
	enginetest.Kinds(t, func(name string, net *models.Model, set *data.Set) {
		m := train(t, name, net, set, 3)
		m.Form = nil
		x := zeros(append([]int{3}, net.Input...)...)
		if err := set.Gather(m.ids, x.x, make([]int32, 3)); err != nil {
			t.Fatal(err)
		}
		m.agrees(t, read(t, m.file(t)).run(t, x).x)
	})
}

// TestNumbers: numeric samples are passed unnormalised.
func TestNumbers(t *testing.T) {
	key, r := noise.Key{Seed: 4}, data.Raster{Labels: make([]uint16, 12)}
	for i := range 12 * 6 {
		r.Values = append(r.Values, 100*float32(i%6)+float32(key.Uint32(i)>>8)/(1<<20))
	}
	raw := slices.Clone(r.Values)
	set, err := data.New(data.Info{Name: "table", Shape: []int{6}, Classes: 3}, r, data.Raster{}, 0.25)
	if err != nil {
		t.Fatal(err)
	}
	m := train(t, "table", enginetest.Compile(t, "[6]", "dense out=5", "relu", "dense out=3"), set, 4)
	x := tensor{dims: []int{4, 6}}
	for _, id := range m.ids {
		x.x = append(x.x, raw[6*id:6*id+6]...)
	}
	m.agrees(t, read(t, m.file(t)).run(t, x).x)
}

// TestFloat64Input: if float32 is too coarse for the samples, the input and the normalisation are float64.
func TestFloat64Input(t *testing.T) {
	r := data.Raster{Labels: make([]uint16, 12)}
	for i := range 12 {
		r.Doubles = append(r.Doubles, 1.7e9+float64(i), float64(i%5))
	}
	set, err := data.New(data.Info{Name: "table", Shape: []int{2}, Classes: 3}, r, data.Raster{}, 0.25)
	if err != nil {
		t.Fatal(err)
	}
	m := train(t, "table", enginetest.Compile(t, "[2]", "dense out=3"), set, 4)
	file := m.file(t)
	mean := binary.LittleEndian.AppendUint64(nil, math.Float64bits(set.Mean[0]))
	graph := parse(t, parse(t, file)[7][0].([]byte))
	input := parse(t, parse(t, parse(t, graph[11][0].([]byte))[2][0].([]byte))[1][0].([]byte))
	if kind := input.ints(1)[0]; kind != typeDouble || !bytes.Contains(file, mean) {
		t.Errorf("the input is of type %d, and the file holds the mean %g: %t", kind, set.Mean[0], bytes.Contains(file, mean))
	}
	var operators []string
	for _, s := range read(t, file).steps {
		operators = append(operators, s.op)
	}
	if want := []string{"Sub", "Div", "Cast", "Gemm", "Identity"}; !slices.Equal(operators, want) {
		t.Errorf("operators %v, want %v", operators, want)
	}
}

func TestRefuses(t *testing.T) {
	m := enginetest.Compile(t, "[6]", "dense out=3")
	m.Layers[0].Kind = "strange"
	err := Write(&bytes.Buffer{}, Model{Net: m, Params: make([]float32, m.Layout.Params)})
	if err == nil || err.Error() != "model test: layer 1: strange has no form in ONNX: export the model as safetensors" {
		t.Error(err)
	}
	m.Layout.Params = 1 << 30
	if err := Write(&bytes.Buffer{}, Model{Net: m}); err == nil ||
		!strings.Contains(err.Error(), "more than an ONNX file can hold") {
		t.Error(err)
	}
}

// TestChecker: the checker of the onnx package accepts the files, with inferred shapes.
func TestChecker(t *testing.T) {
	at := slices.IndexFunc([]string{"python3", "/usr/bin/python3"},
		func(p string) bool { return exec.Command(p, "-c", "import onnx").Run() == nil })
	if at < 0 {
		t.Skip("no python3 here has the package onnx")
	}
	tmp := t.TempDir()
	every(t, math.Inf(1), func(m trained) {
		if m.Net.Layout.Params > 1<<22 && !longtest.On(longtest.Kernels) {
			return
		}
		if err := os.WriteFile(filepath.Join(tmp, strings.ReplaceAll(m.name, " ", "-")+".onnx"), m.file(t),
			0o644); err != nil {
			t.Fatal(err)
		}
	})
	out, err := exec.Command([]string{"python3", "/usr/bin/python3"}[at], "-c", `
import glob, onnx, sys
for name in glob.glob(sys.argv[1] + "/*.onnx"):
    onnx.checker.check_model(onnx.load(name), full_check=True)`, tmp).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestRuntime: ONNX Runtime, from npm's onnxruntime-web, computes the same.
func TestRuntime(t *testing.T) {
	dir := os.Getenv("BROOD_NODE")
	if dir == "" {
		t.Skip("BROOD_NODE is not set: the directory in which npm installed onnxruntime-web")
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "onnxruntime-web")); err != nil {
		t.Skip("onnxruntime-web is not installed in BROOD_NODE")
	}
	type job struct {
		File, Input string
		Dims        []int
	}
	var jobs []job
	var all []trained
	tmp := t.TempDir()
	every(t, math.Inf(1), func(m trained) {
		name := filepath.Join(tmp, strings.ReplaceAll(m.name, " ", "-"))
		x := m.raw()
		p := make([]byte, len(x.x))
		for i, v := range x.x {
			p[i] = byte(v)
		}
		for ending, b := range map[string][]byte{".onnx": m.file(t), ".raw": p} {
			if err := os.WriteFile(name+ending, b, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		jobs, all = append(jobs, job{name + ".onnx", name + ".raw", x.dims}), append(all, m)
	})
	list, err := json.Marshal(jobs)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(tmp, "jobs.json"), list, 0o644); err != nil {
		t.Fatal(err)
	}
	c := exec.Command("node", "--input-type=module", "-e", `
import * as ort from 'onnxruntime-web'
import { readFileSync } from 'fs'
ort.env.wasm.numThreads = 1
for (const job of JSON.parse(readFileSync(process.argv[process.argv.length - 1]))) {
  const session = await ort.InferenceSession.create(readFileSync(job.File))
  const out = await session.run({ input: new ort.Tensor('uint8', new Uint8Array(readFileSync(job.Input)), job.Dims) })
  console.log(JSON.stringify(Array.from(out.output.data)))
  await session.release()
}`, "--", filepath.Join(tmp, "jobs.json"))
	c.Dir, c.Stderr = dir, os.Stderr
	text, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	for i, m := range all {
		var out []float32
		if err := json.Unmarshal([]byte(lines[i]), &out); err != nil {
			t.Fatal(err)
		}
		m.agrees(t, out)
	}
}
