package evaluate

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"brood/models/data"
	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/option"
)

// TestResizedModel: a session of pictures of several sizes and its model file read others of any size, and its ONNX
// file says what its input is.
func TestResizedModel(t *testing.T) {
	dir := t.TempDir()
	draw := func(path string, w, h int, shade byte) {
		t.Helper()
		img := image.NewGray(image.Rect(0, 0, w, h))
		for i := range img.Pix {
			img.Pix[i] = shade
		}
		img.SetGray(w/2, h/2, color.Gray{255 - shade})
		var b bytes.Buffer
		if err := png.Encode(&b, img); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, path, b.Bytes())
	}
	pictures := filepath.Join(dir, "pictures")
	for i := range 24 {
		draw(filepath.Join(pictures, "dark", fmt.Sprint(i, ".png")), 10+i, 30-i, byte(i))
		draw(filepath.Join(pictures, "light", fmt.Sprint(i, ".png")), 20, 9+i, byte(255-i))
	}
	o := host.Options{Model: "linear", Data: pictures, Algorithm: "dp-sgd", Members: 1, Seed: 1, By: "test",
		Limit: event.Limit{Rounds: 60}, Set: []event.Setting{{Knob: "eta", Expr: "0.05"}, {Knob: "batch", Expr: "8"}}}
	if err := option.Resize.Set(&o, "12,letterbox"); err != nil {
		t.Fatal(err)
	}
	session := filepath.Join(dir, "s")
	train(t, session, prepare(t, o), nil, nil)
	m, err := Export(t.Context(), nil, session, 0, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "m.safetensors")
	if err := m.Save(file); err != nil {
		t.Fatal(err)
	}
	again, err := Open(file, "", "")
	if err != nil {
		t.Fatal(err)
	}
	if want := (data.Resize{Side: 12, Letterbox: true}); m.Read.Form.Resize != want || again.Read.Form.Resize != want {
		t.Fatalf("the session resizes by %v, its file by %v", m.Read.Form.Resize, again.Read.Form.Resize)
	}
	one := filepath.Join(dir, "one.png")
	draw(one, 77, 40, 240)
	for _, x := range []*Model{m, again} {
		asked, err := x.Read.Ask(one)
		if err != nil {
			t.Fatal(err)
		}
		_, err = x.Predict(t.Context(), asked.Set, asked.IDs, 1, func(_ int, p [][]float64) error {
			if len(p) != 1 || p[0][1] < 0.6 {
				t.Errorf("a light picture is predicted as %v", p)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	var b bytes.Buffer
	if err := again.ONNX(&b); err != nil ||
		!strings.Contains(b.String(), "the input is pictures as [1 12 12] bytes, scaled to fit into 12 x 12 pixels") {
		t.Errorf("the ONNX file does not describe its input, %v", err)
	}
}
