package evaluate

import (
	"fmt"
	"strings"
	"testing"

	"brood/models"
)

// writer returns an untrained model of texts of six bytes below 50.
func writer(t *testing.T, layers string) *Model {
	t.Helper()
	text := "name = 'w'\ninput = [6]\nclasses = 50\nlayer = [{kind = 'embedding', vocabulary = 60, out = 8}, " +
		layers + "]"
	net, err := models.FromSource("w", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	m := &Model{Net: net, Params: make([]float32, net.Layout.Params)}
	if err := net.Init(5, 0, m.Params); err != nil {
		t.Fatal(err)
	}
	return m
}

const (
	eachPosition = "{kind = 'attention', heads = 2, sequence = true}, {kind = 'dense', out = 50, positions = true}"
	lastPosition = "{kind = 'attention', heads = 2, sequence = true}, {kind = 'last'}, {kind = 'dense', out = 50}"
)

// written returns the bytes that a model writes.
func written(t *testing.T, m *Model, s Sampling) (out []byte) {
	t.Helper()
	if err := m.Sample(t.Context(), s, func(b byte) error { out = append(out, b); return nil }); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestSample: a seed gives one text, on any engine and number of threads, and a longer text begins with a shorter one.
// Without temperature, what is written from a prompt continues what is written from its beginning.
func TestSample(t *testing.T) {
	for _, layers := range []string{eachPosition, lastPosition} {
		m := writer(t, layers)
		s := Sampling{Prompt: []byte("\x01\x02\x03\x04\x05\x06"), Length: 40, Temperature: 0.7, Seed: 3, Threads: 1}
		text := string(written(t, m, s))
		for _, b := range []byte(text) {
			if b >= 50 {
				t.Errorf("byte %d is no class of the model", b)
			}
		}
		s.Threads, s.Length = 2, 25
		if got := string(written(t, m, s)); got != text[:25] {
			t.Errorf("%q, and with another length and threads %q", text, got)
		}
		s.Seed = 4
		if got := string(written(t, m, s)); got == text[:25] {
			t.Errorf("%q with each seed", text)
		}
		s.Temperature = 0
		greedy := written(t, m, s)
		longer := s
		longer.Prompt, longer.Length = append(s.Prompt[:6:6], greedy[:9]...), 16
		if got := string(written(t, m, longer)); got != string(greedy[9:]) {
			t.Errorf("%q, and from its tenth byte on %q", greedy, got)
		}
	}
}

// TestSampleShortPrompt: a model whose loss is at each position continues one byte as it predicts in a full window.
func TestSampleShortPrompt(t *testing.T) {
	m := writer(t, eachPosition)
	s := Sampling{Prompt: []byte{7}, Length: 12}
	text := string(written(t, m, s))
	for n := 1; n < 12; n++ {
		s.Prompt, s.Length = append([]byte{7}, text[:n]...), 12-n
		if got := string(written(t, m, s)); got != text[n:] {
			t.Errorf("from byte %d on %q, want %q", n+1, got, text[n:])
		}
	}
}

// TestSampleFrequencies: at temperature 1 the bytes follow the probabilities that the model predicts.
func TestSampleFrequencies(t *testing.T) {
	m := writer(t, lastPosition)
	z := []float32{1, 3, -40, 2.5}
	p := softmax(z)
	var count [4]float64
	for i := range 10000 {
		b, err := draw(z, 1, (float32(i)+0.5)/10000)
		if err != nil {
			t.Fatal(err)
		}
		count[b]++
	}
	for c, n := range count {
		if n < 10000*p[c]-2 || n > 10000*p[c]+2 {
			t.Errorf("byte %d is drawn %v times of 10000, its probability is %v", c, n, p[c])
		}
	}
	m.Params[0] /= float32(0 * len(z))
	s := Sampling{Prompt: make([]byte, 6), Length: 1}
	err := m.Sample(t.Context(), s, func(byte) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "model w, byte 7: the model's results are not finite") {
		t.Errorf("the error is %v", err)
	}
}

func TestSampleErrors(t *testing.T) {
	net, err := models.Load("softmax")
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		m       *Model
		prompt  string
		wantErr string
	}{
		{&Model{Net: net}, "a", "model softmax writes no text, since it has no embedding of bytes"},
		{writer(t, eachPosition), "", "the prompt has 0 bytes, and model w reads at least 1 before it predicts one"},
		{writer(t, lastPosition), "\x01\x02", "the prompt has 2 bytes, and model w reads at least 6 before it predicts one"},
		{writer(t, eachPosition), "\x013", "byte 2 of the prompt is 51, and model w knows the bytes below 50"},
	} {
		err := c.m.Sample(t.Context(), Sampling{Prompt: []byte(c.prompt), Length: 1}, func(byte) error {
			return fmt.Errorf("case %d wrote a byte", i)
		})
		if err == nil || !strings.Contains(err.Error(), c.wantErr) {
			t.Errorf("case %d: %v, want %q", i, err, c.wantErr)
		}
	}
}
