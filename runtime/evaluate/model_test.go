package evaluate

import (
	"context"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zeebo/blake3"

	"brood/models/engine"
	"brood/models/format/safetensors"
	"brood/models/longtest"
	"brood/optim/catalog"
	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/option"
)

// TestExport: the exported file has exactly the centre that the run tested, and its score equals the recorded one.
// Without BROOD_LONG the test covers one algorithm for each kind of centre: a mean of members, the first or the best of
// them, a vector of the population, weighted members, whole numbers.
func TestExport(t *testing.T) {
	for _, a := range catalog.All() {
		if !a.Needs.Model() || !longtest.On(longtest.Conformance) &&
			!slices.Contains([]string{"parle", "openai-es", "pesgd", "easgd", "sgp", "ga", "egg"}, a.Name) {
			continue
		}
		t.Run(a.Name, func(t *testing.T) { exports(t, trains(a, "softmax"), a.Name) })
	}
	t.Run("statistics", func(t *testing.T) { exports(t, "lenets", "dp-sgd") })
}

func exports(t *testing.T, model, algorithm string) {
	home, ctx := t.TempDir(), context.Background()
	dir, path := filepath.Join(home, "s"), filepath.Join(home, "model.safetensors")
	j := prepare(t, host.Options{
		Model:     model,
		Data:      fewImages,
		Algorithm: algorithm,
		Members:   4,
		Workers:   2,
		Seed:      5,
		Limit:     event.Limit{Rounds: 3},
		By:        "test",
	})
	var tested *event.Evaluation
	train(t, dir, j, nil, func(_ *host.Run, r event.Record) {
		if r.Evaluation != nil {
			tested = r.Evaluation
		}
	})
	out, err := Export(ctx, nil, dir, 0, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := out.Save(path); err != nil {
		t.Fatal(err)
	}
	// An average with decay 0 is the last centre, and centres of earlier rounds do not change the state.
	if last, err := ExportModels(ctx, nil, dir, 0, []Of{{Name: OfEMA}}, 1, nil); err != nil ||
		!slices.Equal(last[0].Params, out.Params) {
		t.Errorf("the centre after the last round is another one, %v", err)
	}
	p, err := (*host.Own)(nil).Past(dir, 0)
	if err != nil || p.Loadable() != (len(out.Stats) == 0) {
		t.Fatalf("no checkpoint of the last round: %v", err)
	}
	if p.Loadable() { // the same without the data
		p.Job.Samples = nil
		w, err := p.Load(ctx, 1)
		if err != nil {
			t.Fatal(err)
		}
		if x, _, err := w.Centre(ctx); err != nil || !slices.Equal(x.Row(0), out.Params) {
			t.Errorf("without the data another centre, %v", err)
		}
	}
	got, err := Open(path, "", "")
	if err != nil {
		t.Fatal(err)
	}
	if hash := fmt.Sprintf("blake3:%x", blake3.Sum256(engine.AppendFloats(nil, got.Params))); hash != tested.Centre {
		t.Errorf("the file has %s, the run tested %s", hash, tested.Centre)
	}
	if got.Round != 3 || got.Algorithm != algorithm || got.Data != fewImages || got.Session != "s" ||
		got.Net.Name != model {
		t.Errorf("the file has %s on %s by %s in %s, round %d", got.Net.Name, got.Data, got.Algorithm, got.Session, got.Round)
	}
	sc, err := got.Score(ctx, j.Samples, "test", 2)
	if err != nil {
		t.Fatal(err)
	}
	if sc.Error() != tested.TestError || sc.Mean() != tested.TestLoss || sc.Samples != tested.Samples {
		t.Errorf("scored %v %% and %v nats on %d samples, the run recorded %v, %v and %d", sc.Error(), sc.Mean(), sc.Samples,
			tested.TestError, tested.TestLoss, tested.Samples)
	}
}

// TestExportEarlier: the centre of an earlier round is recomputed and equals that of a run that ended there.
func TestExportEarlier(t *testing.T) {
	home, ctx := t.TempDir(), context.Background()
	train(t, filepath.Join(home, "long"), prepare(t, tiny(7)), nil, nil)
	train(t, filepath.Join(home, "short"), prepare(t, tiny(4)), nil, nil)
	a, err := Export(ctx, nil, filepath.Join(home, "long"), 4, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Export(ctx, nil, filepath.Join(home, "short"), 0, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if a.Round != 4 || !slices.Equal(a.Params, b.Params) {
		t.Errorf("round %d of the longer run is not the end of the shorter", a.Round)
	}
	if _, err := Export(ctx, nil, filepath.Join(home, "short"), 5, 1, nil); err == nil ||
		!strings.Contains(err.Error(), "round 5 is after") {
		t.Errorf("a round after the end: %v", err)
	}
}

// TestSplitOfModel: a model is scored on the validation split of its session.
func TestSplitOfModel(t *testing.T) {
	home := t.TempDir()
	for text, want := range map[string]int{"0": 0, "100": 100} {
		o := tiny(2)
		if err := option.Validation.Set(&o, text); err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(home, "v"+text)
		train(t, dir, prepare(t, o), nil, nil)
		if m, err := Export(t.Context(), nil, dir, 0, 1, nil); err != nil {
			t.Error(err)
		} else if set, err := m.Load(fewImages); err != nil || len(set.Validation()) != want {
			t.Errorf("--validation %q: the model is scored on another split, %v", text, err)
		}
	}
}

// TestOpenOther: the error for a file of another form names the form, and the error for a damaged file the damage.
func TestOpenOther(t *testing.T) {
	dir := t.TempDir()
	for name, want := range map[string]string{"net.onnx": "is not a safetensors file", "net.safetensors": "a header of "} {
		path := filepath.Join(dir, name)
		write(t, path, []byte("\x08\x08\x12\x05brood and more bytes"))
		if _, err := Open(path, "mlp-small", ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

// TestOpenWrong: the error for a file without a model names the kind of the file, whatever its name.
func TestOpenWrong(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string][2]string{
		"net.safetensors": {"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", `net.safetensors is a Git LFS pointer, not the file itself: run "git lfs pull"`},
		"net.bin":         {"<!doctype html>", "net.bin is an HTML page"},
		"net.pt":          {"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P", "net.pt is a Python pickle, which may run code when it is read: load it in Python and save its tensors as safetensors"},
	} {
		path := filepath.Join(dir, name)
		write(t, path, []byte(c[0]))
		if _, err := Open(path, "mlp-small", ""); err == nil || !strings.Contains(err.Error(), c[1]) {
			t.Errorf("%s: %v, want %q", name, err, c[1])
		}
	}
}

// TestOpenTypes: a tensor of an unsupported type is refused if the model needs it, and ignored otherwise.
func TestOpenTypes(t *testing.T) {
	open := func(weight string, n int, other string) error {
		header := fmt.Sprintf(
			`{"fc1.weight":{"dtype":%q,"shape":[10,784],"data_offsets":[0,%d]},"fc1.bias":{"dtype":"F32","shape":[10],"data_offsets":[%d,%d]},"fc1.num_batches_tracked":{"dtype":%q,"shape":[1],"data_offsets":[%d,%d]}}`,
			weight, n, n, n+40, other, n+40, n+48)
		path := filepath.Join(t.TempDir(), "x.safetensors")
		write(t, path, append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...),
			make([]byte, n+48)...))
		_, err := Open(path, "softmax", "")
		return err
	}
	for _, other := range []string{"I64", "Q7"} {
		if err := open("F32", 31360, other); err != nil {
			t.Errorf("%s where it is not needed: %v", other, err)
		}
	}
	if err := open("F8_E4M3", 7840, "I64"); err == nil ||
		!strings.Contains(err.Error(), "tensor fc1.weight has type F8_E4M3; save it as F32") {
		t.Errorf("a type that is not read where it is needed: %v", err)
	}
}

// TestOpenRefuses: the error for a file that lacks a part of the model names the part.
func TestOpenRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.safetensors")
	save := func(meta map[string]string) {
		t.Helper()
		file := safetensors.File{Meta: meta, Tensors: []safetensors.Tensor{{Name: "other", Shape: []int{1}, F: []float32{1}}}}
		if err := safetensors.Save(path, file); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		meta        map[string]string
		model, want string
	}{
		{nil, "", "name it with --model"},
		{nil, "softmax", "has no tensor fc1.weight of shape [10 784], which model softmax needs; it has other: name the model that it was trained as, or rename tensors with --rename FROM=TO"},
		{nil, "no-such-model", "no-such-model"},
		{map[string]string{"layers": "not TOML ["}, "", path},
	} {
		save(c.meta)
		if _, err := Open(path, c.model, ""); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("metadata %v, model %q: %v, want %q", c.meta, c.model, err, c.want)
		}
	}
}
