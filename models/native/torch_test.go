package native

import (
	"encoding/binary"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"brood/models"
	"brood/models/data"
	"brood/models/engine"
	"brood/models/enginetest"
	"brood/models/longtest"
	"brood/models/native/kernel"
)

// torchNet has each kind of layer that PyTorch has as a module, on flat values and on images.
const torchNet = `
name = "modules"
input = [1, 28, 28]
classes = 10
layer = [
	{kind = "conv", out = 4, kernel = 5, stride = 2}, {kind = "layernorm"}, {kind = "gelu"}, {kind = "conv", out = 3, kernel = 3, stride = 2}, {kind = "silu"},
	{kind = "flatten"}, {kind = "dense", out = 40}, {kind = "layernorm"}, {kind = "tanh"}, {kind = "dense", out = 21}, {kind = "leakyrelu"},
	{kind = "dense", out = 19}, {kind = "leakyrelu", slope = 0.25}, {kind = "dense", out = 10},
]`

// torchNets are models, the equivalent PyTorch modules, and the shape in which those take the samples.
var torchNets = []struct{ ours, theirs, view string }{
	{torchNet,
		`nn.Sequential(nn.Conv2d(1, 4, 5, 2), nn.LayerNorm((4, 12, 12)), nn.GELU(), nn.Conv2d(4, 3, 3, 2), nn.SiLU(),
    nn.Flatten(), nn.Linear(75, 40), nn.LayerNorm(40), nn.Tanh(), nn.Linear(40, 21), nn.LeakyReLU(),
    nn.Linear(21, 19), nn.LeakyReLU(0.25), nn.Linear(19, 10))`, "view(-1, 1, 28, 28)"},
	{`
name = "labels"
input = [2, 3, 4]
classes = 5
loss = "bce"
layer = [{kind = "flatten"}, {kind = "dense", out = 19}, {kind = "tanh"}, {kind = "dense", out = 5}]`,
		"nn.Sequential(nn.Linear(24, 19), nn.Tanh(), nn.Linear(19, 5))", "view(-1, 24)"},
	{`
name = "text"
input = [6]
classes = 128
layer = [{kind = "embedding", vocabulary = 128, out = 5}, {kind = "dense", out = 32}, {kind = "tanh"}, {kind = "dense", out = 128}]`,
		"nn.Sequential(nn.Embedding(128, 5), nn.Flatten(), nn.Linear(30, 32), nn.Tanh(), nn.Linear(32, 128))",
		"view(-1, 6).long()"},
	{`
name = "recurrent"
input = [9]
classes = 128
layer = [{kind = "embedding", vocabulary = 128, out = 7}, {kind = "mingru", out = 33, sequence = true}, {kind = "gelu"}, {kind = "mingru", out = 21}, {kind = "dense", out = 128}]`,
		"nn.Sequential(nn.Embedding(128, 7), MinGRU(7, 33), nn.GELU(), MinGRU(33, 21), Last(), nn.Linear(21, 128))",
		"view(-1, 9).long()"},
	{`
name = "attention"
input = [11]
classes = 128
layer = [
	{kind = "embedding", vocabulary = 128, out = 12, name = "e"}, {kind = "layernorm", positions = true}, {kind = "attention", heads = 3, sequence = true}, {kind = "add", with = "e", name = "a"},
	{kind = "layernorm", positions = true}, {kind = "dense", out = 40, positions = true}, {kind = "gelu"}, {kind = "dense", out = 12, positions = true}, {kind = "add", with = "a"},
	{kind = "attention", heads = 4}, {kind = "dense", out = 128},
]`,
		`nn.Sequential(nn.Embedding(128, 12), Beside(nn.LayerNorm(12), Attention(12, 3)),
    Beside(nn.LayerNorm(12), nn.Linear(12, 40), nn.GELU(), nn.Linear(40, 12)), Attention(12, 4), Last(), nn.Linear(12, 128))`, "view(-1, 11).long()"},
}

// torchModule trains modules by SGD: it reads parameters, samples and labels from raw files, and writes the losses of
// each step and the final parameters.
const torchModule = `
import sys, torch
from torch import nn
torch.set_num_threads(1)
at, steps = sys.argv[1], int(sys.argv[2])
raw = lambda name, kind: torch.frombuffer(bytearray(open(at + "/" + name, "rb").read()), dtype=kind)
class MinGRU(nn.Module):
    def __init__(self, wide, units):
        super().__init__()
        self.state, self.gate = nn.Linear(wide, units), nn.Linear(wide, units)
    def forward(self, x):
        z, c, h, all = torch.sigmoid(self.gate(x)), self.state(x), 0, []
        for t in range(x.shape[1]):
            h = (1 - z[:, t]) * h + z[:, t] * c[:, t]
            all.append(h)
        return torch.stack(all, 1)
class Attention(nn.Module):
    def __init__(self, wide, heads):
        super().__init__()
        self.of = nn.MultiheadAttention(wide, heads, batch_first=True)
    def forward(self, x):
        n = x.shape[1]
        return self.of(x, x, x, attn_mask=torch.ones(n, n).triu(1).bool(), need_weights=False)[0]
class Beside(nn.Sequential):
    def forward(self, x):
        return x + super().forward(x)
class Last(nn.Module):
    def forward(self, x):
        return x[:, -1]
net = NET
params, i = raw("params", torch.float32), 0
for p in net.parameters():
    p.data = params[i:i + p.numel()].clone().view(p.shape)
    i += p.numel()
assert i == len(params)
x, y = raw("x", torch.float32).VIEW, raw("y", torch.int32).long()
score = lambda z: nn.functional.cross_entropy(z, y)
if len(y) > len(x):
    score = lambda z: nn.functional.binary_cross_entropy_with_logits(z, y.view(len(x), -1).float())
losses, opt = [], torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(steps):
    opt.zero_grad()
    loss = score(net(x))
    loss.backward()
    opt.step()
    losses.append(loss.item())
torch.tensor(losses, dtype=torch.float32).numpy().tofile(at + "/losses")
torch.cat([p.data.flatten() for p in net.parameters()]).numpy().tofile(at + "/trained")
`

// TestTorchAgrees: with the same parameters and samples, PyTorch's losses over twenty steps of SGD and its final
// parameters equal the parameters of this engine.
func TestTorchAgrees(t *testing.T) {
	longtest.Need(t, longtest.Kernels, "starts PyTorch five times")
	python := enginetest.Python("torch, numpy")
	if python == "" {
		t.Skip("no python3 here has the package torch (Debian: python3-torch)")
	}
	for _, net := range torchNets {
		m, err := models.FromSource("modules", []byte(net.ours))
		if err != nil {
			t.Fatal(err)
		}
		set := small(t)
		switch {
		case m.Vocabulary > 0:
			set = text(t, m)
		case m.MultiLabel():
			set = enginetest.ToyLabels(t, m.Classes, 120, m.Input...)
		}
		t.Run(m.Name, func(t *testing.T) {
			torchAgrees(t, python, m, set, strings.NewReplacer("NET", net.theirs, "VIEW", net.view).Replace(torchModule))
		})
	}
}

func torchAgrees(t *testing.T, python string, m *models.Model, set *data.Set, module string) {
	const steps, samples = 20, 64
	g := task(t, m, set, 1, samples)
	g.Masks, g.Stats = nil, engine.Mat{}
	x, labels := make([]float32, samples*m.Features), make([]int32, samples)
	if err := set.Gather(g.Batches[0], x, labels); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	put := func(name string, p []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), p, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var y []byte
	for i, id := range g.Batches[0] {
		if m.MultiLabel() {
			for _, z := range set.Targets(id) {
				y = binary.LittleEndian.AppendUint32(y, uint32(z))
			}
			continue
		}
		y = binary.LittleEndian.AppendUint32(y, uint32(labels[i]))
	}
	put("params", engine.AppendFloats(nil, flat(g.X)))
	put("x", engine.AppendFloats(nil, x))
	put("y", y)
	put("module.py", []byte(module))
	if out, err := exec.Command(python, filepath.Join(dir, "module.py"), dir, "20").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	get := func(name string, n int) []float32 {
		p, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || len(p) != 4*n {
			t.Fatalf("%s has %d bytes: %v", name, len(p), err)
		}
		out := make([]float32, n)
		engine.ReadFloats(out, p)
		return out
	}
	losses, trained := get("losses", steps), get("trained", m.Layout.Params)
	for step, want := range descend(t, m, set, g, steps, 0.1) {
		if math.Abs(float64(losses[step]-want)) > 2e-5*float64(want) {
			t.Errorf("step %d: PyTorch's loss is %v, ours %v", step, losses[step], want)
		}
	}
	for i, v := range flat(g.X) {
		if math.Abs(float64(v-trained[i])) > 2e-5 {
			t.Fatalf("parameter %d is %v, with PyTorch %v", i, v, trained[i])
		}
	}
}

// descend runs steps of SGD on one batch, and returns their losses.
func descend(t *testing.T, m *models.Model, set *data.Set, g engine.Gradients, steps int,
	rate float32) (losses []float32) {
	t.Helper()
	e, err := NewEngine(m, set, 2, kernel.Best())
	if err != nil {
		t.Fatal(err)
	}
	step := engine.Update{Rows: engine.Rows(1),
		Prog: []engine.Lin{{Dst: g.X, Terms: []engine.Term{{C: 1, Src: g.X}, {C: -rate, Src: g.G}}}}}
	for range steps {
		if err := e.Do(t.Context(), g, step); err != nil {
			t.Fatal(err)
		}
		losses = append(losses, g.Loss[0])
	}
	return losses
}

// TestGELUTrains: the zoo's model with layer normalisation and GELU fits a batch of glyphs by gradient descent.
func TestGELUTrains(t *testing.T) {
	m, err := models.Load("mlp-gelu")
	if err != nil {
		t.Fatal(err)
	}
	set := small(t)
	g := task(t, m, set, 1, 100)
	g.Masks, g.Stats = nil, engine.Mat{}
	losses := descend(t, m, set, g, 60, 0.1)
	if first, last := losses[0], losses[59]; !(first > 2 && last < 0.1) {
		t.Errorf("the loss goes from %v to %v", first, last)
	}
}
