package evaluate

import (
	"context"
	"encoding/json"
	"math"
	"os/exec"
	"reflect"
	"slices"
	"testing"

	"brood/models"
	"brood/models/data"
	"brood/models/enginetest"
	"brood/models/longtest"
	"brood/runtime/report"
)

// predicted returns the PyTorch model and the predictions for its samples by the engine of a name.
func predicted(t *testing.T, engine string) (*Model, [][]float64) {
	t.Helper()
	t.Setenv("BROOD_ENGINE", engine)
	set, _ := torchSamples(t)
	m, err := Open(torchFile, torchModel, "")
	if err != nil {
		t.Fatal(err)
	}
	var all [][]float64
	_, err = m.Predict(context.Background(), set, set.Test(), 2, func(at int, p [][]float64) error {
		if at != len(all) {
			t.Errorf("samples from %d on came after %d", at, len(all))
		}
		all = append(all, p...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return m, all
}

// within compares probabilities of two sources.
func within(t *testing.T, of string, got, want [][]float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d samples, %s has %d", len(got), of, len(want))
	}
	for i := range got {
		for c := range got[i] {
			if math.Abs(got[i][c]-want[i][c]) > 1e-6 {
				t.Errorf("sample %d, class %d: %v, %s has %v", i, c, got[i][c], of, want[i][c])
			}
		}
	}
}

// TestPredictNaively: the probabilities of each engine equal those of the equations in float64, sum to one, and give
// the loss and the error of eval.
func TestPredictNaively(t *testing.T) {
	set, file := torchSamples(t)
	x := file.Find("check.x").F
	for _, engine := range []string{"native", "gorgonia"} {
		m, got := predicted(t, engine)
		var want [][]float64
		for row := range slices.Chunk(x, m.Net.Features) {
			want = append(want, naive(m, row))
		}
		within(t, "the naive prediction", got, want)
		sc, err := m.Score(context.Background(), set, "test", 1)
		if err != nil {
			t.Fatal(err)
		}
		var loss float64
		var right int64
		for i, p := range got {
			var sum float64
			for _, v := range p {
				sum += v
			}
			label := int(set.Label(set.Test()[i]))
			loss -= math.Log(p[label])
			if report.Likeliest(p) == label {
				right++
			}
			if math.Abs(sum-1) > 1e-15*float64(len(p)) {
				t.Errorf("%s: the probabilities of sample %d add up to %v", engine, i, sum)
			}
		}
		if right != sc.Correct || math.Abs(loss-sc.Loss) > 1e-5 {
			t.Errorf("%s: %d right and %v nats, eval has %d and %v", engine, right, loss, sc.Correct, sc.Loss)
		}
	}
}

// naive returns the softmax of the outputs of the model for a sample, computed layer by layer in float64, for the kinds
// of layers of this model.
func naive(m *Model, sample []float32) []float64 {
	tensor := func(i int, stats bool) []float32 {
		if stats {
			x := m.Net.Layout.StatTensors[i]
			return m.Stats[x.Lo : x.Lo+x.Len]
		}
		x := m.Net.Layout.Tensors[i]
		return m.Params[x.Lo : x.Lo+x.Len]
	}
	v := make([]float64, len(sample))
	for i, p := range sample {
		v[i] = float64(p)
	}
	channels, side := 1, 6
	for _, l := range m.Net.Layers {
		var out []float64
		switch l.Kind {
		case models.Conv:
			w, bias, to := tensor(l.Weight, false), tensor(l.Bias, false), side-l.Kernel+1
			for o := range bias {
				for at := range to * to {
					sum := float64(bias[o])
					for k := range channels * l.Kernel * l.Kernel {
						c, dy, dx := k/(l.Kernel*l.Kernel), k/l.Kernel%l.Kernel, k%l.Kernel
						sum += float64(w[o*channels*l.Kernel*l.Kernel+k]) * v[(c*side+at/to+dy)*side+at%to+dx]
					}
					out = append(out, sum)
				}
			}
			channels, side = len(bias), to
		case models.BatchNorm:
			scale, shift, mean, variance := tensor(l.Weight, false), tensor(l.Bias, false), tensor(l.Mean, true),
				tensor(l.Var, true)
			plane := len(v) / len(scale)
			for i, x := range v {
				c := i / plane
				out = append(out, (x-float64(mean[c]))/math.Sqrt(float64(variance[c])+1e-5)*float64(scale[c])+float64(shift[c]))
			}
		case models.ReLU:
			for _, x := range v {
				out = append(out, max(x, 0))
			}
		case models.MaxPool:
			to := side / 2
			for i := range channels * to * to {
				c, y, x := i/(to*to), i/to%to, i%to
				at := (c*side+2*y)*side + 2*x
				out = append(out, max(v[at], v[at+1], v[at+side], v[at+side+1]))
			}
			side = to
		case models.Dense:
			w, bias := tensor(l.Weight, false), tensor(l.Bias, false)
			for o := range bias {
				sum := float64(bias[o])
				for i, x := range v {
					sum += float64(w[o*len(v)+i]) * x
				}
				out = append(out, sum)
			}
		case models.Flatten:
			out = v
		}
		v = out
	}
	var sum float64
	for _, z := range v {
		sum += math.Exp(z)
	}
	for c, z := range v {
		v[c] = math.Exp(z) / sum
	}
	return v
}

// TestViewedNaively: the class of an image with its mirror image is that of the sum of both naive predictions.
func TestViewedNaively(t *testing.T) {
	set, file := torchSamples(t)
	m, _ := predicted(t, "native")
	width, wrong, alone := set.Shape[len(set.Shape)-1], 0, 0
	for i, row := range slices.Collect(slices.Chunk(file.Find("check.x").F, m.Net.Features)) {
		p, mirrored := naive(m, row), slices.Clone(row)
		for line := range slices.Chunk(mirrored, width) {
			slices.Reverse(line)
		}
		label := int(set.Label(set.Test()[i]))
		if report.Likeliest(p) != label {
			alone++
		}
		for k, v := range naive(m, mirrored) {
			p[k] += v
		}
		if report.Likeliest(p) != label {
			wrong++
		}
	}
	plain, err := m.Report(context.Background(), set, set.Test(), 1)
	if err != nil {
		t.Fatal(err)
	}
	made, got, err := m.Viewed(context.Background(), set, set.Test(), 1, data.Views{Flip: true})
	if !reflect.DeepEqual(made, plain) {
		t.Errorf("with views the report is %+v, without %+v", made, plain)
	}
	if err != nil || math.Abs(got-float64(wrong)/float64(len(set.Test()))) > 1e-12 {
		t.Errorf("a share of %g of the samples is misclassified, %v; want %d of %d, and %d without the mirror image", got,
			err, wrong, len(set.Test()), alone)
	}
	if wrong == alone {
		t.Error("the mirror image changes no class, so that the test cannot fail")
	}
}

// TestPredictTorch: the probabilities equal those of torch.softmax of the module.
func TestPredictTorch(t *testing.T) {
	longtest.Need(t, longtest.Arithmetic, "starts PyTorch")
	python := enginetest.Python("torch")
	if python == "" {
		t.Skip("the test needs python3 with the package torch")
	}
	_, got := predicted(t, "")
	_, file := torchSamples(t)
	tensors := map[string]any{}
	for _, x := range file.Tensors {
		if x.F != nil {
			tensors[x.Name] = map[string]any{"shape": x.Shape, "f": x.F}
		}
	}
	c := exec.Command(python, "-c", `
import json, sys, torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1, self.fc1 = nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.Linear(12, 8)
        self.bn2, self.fc2 = nn.BatchNorm1d(8), nn.Linear(8, 3)
    def forward(self, x):
        x = nn.functional.max_pool2d(torch.relu(self.bn1(self.conv1(x))), 2).flatten(1)
        return self.fc2(torch.relu(self.bn2(self.fc1(x))))
held = {k: torch.tensor(v["f"]).reshape(v["shape"]) for k, v in json.load(sys.stdin).items()}
net = Net().eval()
net.load_state_dict({k: v for k, v in held.items() if not k.startswith("check")}, strict=False)
with torch.no_grad():
    print(json.dumps(torch.softmax(net(held["check.x"].reshape(-1, 1, 6, 6)).double(), 1).tolist()))`)
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer in.Close()
		_ = json.NewEncoder(in).Encode(tensors)
	}()
	text, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	var want [][]float64
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	within(t, "PyTorch", got, want)
}
