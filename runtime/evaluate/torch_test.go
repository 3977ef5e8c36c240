package evaluate

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"brood/models/data"
	"brood/models/format/safetensors"
	"brood/runtime/event"
	"brood/runtime/host"
)

// The state of a PyTorch module with conv1, bn1, fc1, bn2 and fc2 after twenty training steps, saved by safetensors,
// with the scored samples and their classes as tensors that no model needs.
const (
	torchFile, torchModel = "testdata/torch.safetensors", "testdata/torch.toml"
	torchLoss, torchError = 0.5974053, 100. / 12 // of module.eval(), by torch.nn.functional.cross_entropy
)

func torchSamples(t *testing.T) (*data.Set, safetensors.File) {
	t.Helper()
	file, err := safetensors.Open(torchFile)
	if err != nil {
		t.Fatal(err)
	}
	x := data.Raster{Values: file.Find("check.x").F}
	for _, y := range file.Find("check.y").F {
		x.Labels = append(x.Labels, uint16(y))
	}
	set, err := data.New(data.Info{
		Name:    "torch",
		Shape:   []int{1, 6, 6},
		Classes: 3,
		Mean:    []float64{0},
		Std:     []float64{1},
	}, x, x, 0)
	if err != nil {
		t.Fatal(err)
	}
	return set, file
}

// TestTorch: a state dict with the tensor names of brood has the score of PyTorch: with its running statistics, and
// without its batch counters.
func TestTorch(t *testing.T) {
	set, _ := torchSamples(t)
	got, err := Open(torchFile, torchModel, "")
	if err != nil {
		t.Fatal(err)
	}
	sc, err := got.Score(context.Background(), set, "test", 1)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"check.x", "check.y"}; !slices.Equal(got.Spare, want) {
		t.Errorf("ignored %q, want %q", got.Spare, want)
	}
	if math.Abs(sc.Mean()-torchLoss) > 1e-6 || math.Abs(sc.Error()-torchError) > 1e-4 {
		t.Errorf("%v nats and %v %%, PyTorch has %v and %v", sc.Mean(), sc.Error(), torchLoss, torchError)
	}
}

// TestTorchWeights: the loss with class weights over all training samples equals that of PyTorch's cross_entropy with
// the same weights, sum(w l)/sum(w), since the mean weight of the samples is 1. Test samples have no weights.
func TestTorchWeights(t *testing.T) {
	set, _ := torchSamples(t)
	model, err := Open(torchFile, torchModel, "")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]float64{"balanced": 0.7313168, "0=4,2=0.5": 0.4940085, "": torchLoss} {
		w, err := data.ParseWeights(text)
		if err != nil {
			t.Fatal(err)
		}
		weighted, err := set.Weighted(w)
		if err != nil {
			t.Fatal(err)
		}
		for split, want := range map[string]float64{"train": want, "test": torchLoss} {
			sc, err := model.Score(context.Background(), weighted, split, 1)
			if err != nil || math.Abs(sc.Mean()-want) > 1e-6 {
				t.Errorf("%q, %s: %v nats, PyTorch has %v (%v)", text, split, sc.Mean(), want, err)
			}
		}
	}
}

// TestShapes: a tensor of the right length and another shape is refused with both shapes.
func TestShapes(t *testing.T) {
	_, file := torchSamples(t)
	path := filepath.Join(t.TempDir(), "transposed.safetensors")
	file.Tensors = slices.DeleteFunc(file.Tensors, func(x safetensors.Tensor) bool { return x.F == nil })
	file.Find("fc1.weight").Shape = []int{12, 8}
	if err := safetensors.Save(path, file); err != nil {
		t.Fatal(err)
	}
	_, err := Open(path, torchModel, "")
	for _, want := range []string{"fc1.weight", "[12 8]", "[8 12]"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a transposed weight: %v, want %s", err, want)
		}
	}
	turned := safetensors.File{Tensors: []safetensors.Tensor{
		{Name: "fc1.weight", Shape: []int{784, 10}, F: make([]float32, 7840)},
		{Name: "fc1.bias", Shape: []int{10}, F: make([]float32, 10)},
	}}
	if err := safetensors.Save(path, turned); err != nil {
		t.Fatal(err)
	}
	_, err = host.Prepare(host.Options{Model: "softmax", Data: "glyphs", Init: path, Limit: event.Limit{Rounds: 1}})
	if err == nil || !strings.Contains(err.Error(), "fc1.weight has shape [784 10], but model softmax needs [10 784]") {
		t.Errorf("a run from it: %v", err)
	}
}

// TestSpareTensor: the bias of a layer without a bias in the model is refused.
func TestSpareTensor(t *testing.T) {
	text, err := os.ReadFile(torchModel)
	if err != nil {
		t.Fatal(err)
	}
	unbiased := filepath.Join(t.TempDir(), "unbiased.toml")
	write(t, unbiased, []byte(strings.Replace(string(text), "kernel = 3\n", "kernel = 3\nbias = false\n", 1)))
	if _, err := Open(torchFile, unbiased, ""); err == nil ||
		!strings.Contains(err.Error(), "has a tensor conv1.bias, which this layer of model torch does not have") {
		t.Errorf("a bias without a place: %v", err)
	}
}
