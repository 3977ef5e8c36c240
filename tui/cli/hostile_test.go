package cli

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"

	"brood/models"
	"brood/models/format/safetensors"
	"brood/optim/collective"
	"brood/runtime/event"
	"brood/runtime/session"
	"brood/runtime/view/sourcetest"
)

// evilSession records a run with evil in every text.
func evilSession(t *testing.T, dir string, seed uint64) {
	t.Helper()
	records := []event.Record{
		{Config: &event.Config{Version: 3, Preset: evil, Model: evil, Data: evil, Seed: seed, Kernels: evil + fmt.Sprint(seed), Limit: event.Limit{Rounds: 9}}},
		{Plan: &event.Plan{Epoch: 1, From: event.Fresh, Algorithm: evil, New: collective.Place(collective.IDs(1), []int{0}), Cause: event.CauseStart, Note: evil}},
		{Edit: &event.Edit{Algorithm: evil, Knob: evil, Expr: evil, By: evil, Why: evil}},
		{Alert: &event.Alert{Level: event.LevelInfo, Kind: evil, Text: evil}},
		{Points: &event.Points{Round: 1, Series: "loss", Members: collective.IDs(1), Values: []float64{float64(seed)}}},
		{Points: &event.Points{Round: 2, Series: "loss", Members: collective.IDs(1), Values: []float64{1}}},
		{Commit: &event.Commit{Epoch: 1, To: 2, Rounds: 2, Nanos: 1e9, Progress: event.Progress{Rounds: 2, Samples: 9}, Hash: evil}},
		{State: &event.State{Phase: event.Failed, Round: 2, Reason: evil}},
	}
	for i := range records {
		records[i].At = 1e18
	}
	about := `{"name":"a\u202eb","tags":["x\u2066y"]}`
	sourcetest.Write(t, dir, records...)
	if err := os.WriteFile(filepath.Join(dir, session.AboutName), []byte(about), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestHostileNames: names of files, tensors, classes and sessions are shown without any other effect on the terminal,
// and do not break lines.
func TestHostileNames(t *testing.T) {
	if goruntime.GOOS == "windows" {
		t.Skip("no file has such a name there")
	}
	home := t.TempDir()
	t.Setenv("BROOD_SESSIONS", home)
	dir := filepath.Join(t.TempDir(), evil)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	put := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	one, two := filepath.Join(home, evil+"1"), filepath.Join(home, evil+"2")
	evilSession(t, one, 1)
	evilSession(t, two, 2)
	if err := os.Mkdir(filepath.Join(home, evil+"3"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, evil+"3", "log-000001.brood"), []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}

	table := `"a` + evil + `",label` + "\n"
	for i := range 40 {
		table += fmt.Sprintf("%d,\"%d%s\"\n", i, i%2, strings.ReplaceAll(evil, "\n", ""))
	}
	classes := put("classes.csv", table)
	var packed bytes.Buffer
	z := zip.NewWriter(&packed)
	for _, name := range []string{"x_train" + evil, evil} {
		if _, err := z.Create(name + ".npy"); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	arrays := put("arrays.npz", packed.String())

	m, err := models.Load("softmax")
	if err != nil {
		t.Fatal(err)
	}
	var f safetensors.File
	for _, x := range m.Layout.Tensors {
		f.Tensors = append(f.Tensors, safetensors.Tensor{Name: x.Name, Shape: x.Shape, F: make([]float32, x.Len)})
	}
	f.Tensors = append(f.Tensors, safetensors.Tensor{Name: evil, Shape: []int{1}, F: make([]float32, 1)})
	spare, lacks := filepath.Join(dir, "spare.safetensors"), filepath.Join(dir, "lacks.safetensors")
	if err := errors.Join(safetensors.Save(spare, f),
		safetensors.Save(lacks, safetensors.File{Tensors: f.Tensors[len(f.Tensors)-1:],
			Meta: map[string]string{"brood.model": evil}})); err != nil {
		t.Fatal(err)
	}

	missing := filepath.Join(dir, "missing")
	tiny := []string{"run", "--plain", "--data", "glyphs", "--model", "softmax", "--algorithm", "dp-sgd", "--members", "1",
		"--rounds", "1", "--workers", "1"}
	for _, c := range []struct {
		args []string
		says string // in the output or the error
		fail bool
	}{
		{args: []string{"sessions"}, says: "x ��2J����2"},
		{args: []string{"sessions", home}, says: "log is empty"},
		{args: []string{"log", one}, says: "alert"},
		{args: []string{"compare", one, two}, says: "2 runs"},
		{args: []string{"compare", home}, says: "2 runs"},
		{args: []string{"replay", one}, says: "round"},
		{args: []string{"export", one, "--to", "csv", "-o", missing + ".csv"}, says: "2 rows"},
		{args: []string{"data", "info", classes}, says: "2 classes"},
		{args: []string{"data", "info", arrays}, fail: true, says: "x_train"},
		{args: []string{"data", "info", missing}, fail: true, says: "missing"},
		{args: []string{"eval", spare, "--model", "softmax", "--data", "glyphs"}, says: "the model does not use"},
		{args: []string{"eval", lacks, "--model", "softmax", "--data", "glyphs"}, fail: true, says: "has no tensor"},
		{args: []string{"eval", lacks}, fail: true, says: "model"},
		{args: []string{"eval", missing}, fail: true, says: "missing"},
		{args: append(tiny, "--init", spare), says: "the model does not use"},
		{args: append(tiny, "--init", lacks), fail: true, says: "has no tensor"},
		{args: append(tiny, "--init", missing), fail: true, says: "missing"},
		{args: []string{"run", missing + ".toml"}, fail: true, says: "missing"},
		{args: []string{"log", missing}, fail: true, says: "missing"},
		{args: []string{evil}, fail: true, says: "unknown command"},
		{args: []string{"rm", one}, says: "removed"},
		{args: []string{"prune", "--keep", "1"}, says: "freed"},
	} {
		status, stdout, stderr := typing(c.args...)
		what := fmt.Sprintf("brood %.40q", c.args)
		harmless(t, what, stdout)
		harmless(t, what, stderr)
		if (status != 0) != c.fail || !strings.Contains(stdout+stderr, c.says) {
			t.Errorf("%s: status %d, without %q: %q, %q", what, status, c.says, stdout, stderr)
		}
		for line := range strings.Lines(stderr) {
			if !strings.HasPrefix(line, "brood: ") {
				t.Errorf("%s: the error has a line %q", what, line)
			}
		}
		if strings.Contains(stdout, "\n��2J") {
			t.Errorf("%s: a name begins a line: %q", what, stdout)
		}
	}
	// error text of a device compiler
	if text := sentence(fmt.Errorf("load gemm: %w: %s", errors.New("build failed"), "a.cl:1: "+evil)); strings.Contains(
		text, "\n") || strings.Contains(text, "\x1b") {
		t.Errorf("an error of a device is %q", text)
	}
}
