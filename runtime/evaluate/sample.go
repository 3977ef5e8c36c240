package evaluate

import (
	"context"
	"fmt"
	"math"
	goruntime "runtime"
	"slices"

	"brood/models/data"
	"brood/models/engine"
	"brood/models/noise"
	"brood/models/usererr"
	"brood/runtime/host"
)

// Sampling says how a text model continues a text.
type Sampling struct {
	Prompt      []byte
	Length      int     // bytes to write behind the prompt
	Temperature float64 // divides the logits: 1 draws from the model's distribution, 0 takes the likeliest byte
	Seed        uint64
	Threads     int // 0: one per processor
}

// Sample continues a text and calls each with every byte behind the prompt, in order; an error of each ends it. A byte
// is drawn from the model's distribution behind the last bytes, as many as the model reads, by word i of the noise of
// the seed for byte i, so that a longer text begins with the shorter one. A model whose loss is at each position also
// continues a text shorter than its context. It returns an error if the model is none of texts, if it cannot read the
// prompt, or if an output is not finite.
func (t *Model) Sample(ctx context.Context, s Sampling, each func(b byte) error) error {
	context, known := t.Net.Context(), min(t.Net.Classes, t.Net.Vocabulary)
	least := 1
	if t.Net.Positions == 1 {
		least = context
	}
	switch {
	case context == 0:
		return usererr.Errorf("model %s writes no text, since it has no embedding of bytes: brood predict has what it "+
			"predicts", t.Net.Name)
	case len(s.Prompt) < least:
		return usererr.Errorf("the prompt has %d bytes, and model %s reads at least %d before it predicts one: "+
			"give a longer prompt", len(s.Prompt), t.Net.Name, least)
	}
	for i, b := range s.Prompt {
		if int(b) >= known {
			return usererr.Errorf("byte %d of the prompt is %d, and model %s knows the bytes below %d: "+
				"give a prompt of those", i+1, b, t.Net.Name, known)
		}
	}
	if s.Threads == 0 {
		s.Threads = goruntime.NumCPU()
	}
	// The engine reads its samples from text, in which each byte is written before the first window that contains it.
	n := len(s.Prompt)
	text := make([]byte, max(n+s.Length, context)+1)
	copy(text, s.Prompt)
	set, err := data.NewText(data.Info{Name: "prompt", Shape: []int{context}, Classes: known}, text, 0, 0)
	if err != nil {
		return err
	}
	eng, of, err := t.predictor(set, s.Threads)
	if err != nil {
		return err
	}
	defer host.Release(eng)
	key := noise.Key{Seed: s.Seed, Purpose: noise.Sample}
	z := make([]float32, t.Net.Positions*t.Net.Classes)
	for i := range s.Length {
		first := max(0, n+i-context)
		if err := of.Logits(ctx, t.Params, t.givenStats(), []int32{int32(first)}, z); err != nil {
			return err
		}
		row := z
		if t.Net.Positions > 1 {
			at := n + i - first - 1
			row = z[at*t.Net.Classes : (at+1)*t.Net.Classes]
		}
		b, err := draw(row[:known], s.Temperature, key.Uniform(i))
		if err != nil {
			return fmt.Errorf("model %s, byte %d: %w", t.Net.Name, n+i+1, err)
		}
		text[n+i] = b
		if err := each(b); err != nil {
			return err
		}
	}
	return nil
}

// draw returns the byte at u, in [0, 1), of the distribution of logits at a temperature: that of exp(z/temperature), or
// the likeliest byte for 0.
func draw(z []float32, temperature float64, u float32) (byte, error) {
	if !engine.AllFinite(z) {
		return 0, errNotFinite
	}
	best := slices.Index(z, slices.Max(z))
	if temperature == 0 {
		return byte(best), nil
	}
	weights, total := make([]float64, len(z)), 0.0
	for c, v := range z {
		weights[c] = math.Exp((float64(v) - float64(z[best])) / temperature)
		total += weights[c]
	}
	sum, at := 0.0, float64(u)*total
	for c, w := range weights {
		if sum += w; at < sum {
			return byte(c), nil
		}
	}
	return byte(best), nil
}
