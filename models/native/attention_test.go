package native

import (
	"testing"

	"brood/models"
)

// TestAttentionHasTheSameBits: a transformer computes the same bits with every variant and any number of threads, with
// few channels per head and more positions than a tile has rows.
func TestAttentionHasTheSameBits(t *testing.T) {
	m, err := models.FromSource("transformer", []byte(`
name = "transformer"
input = [19]
classes = 128
layer = [
	{kind = "embedding", vocabulary = 128, out = 15, name = "x"}, {kind = "layernorm", positions = true},
	{kind = "attention", heads = 5, sequence = true}, {kind = "add", with = "x"}, {kind = "dense", out = 33, positions = true}, {kind = "gelu"},
	{kind = "attention", heads = 3}, {kind = "dense", out = 128},
]`))
	if err != nil {
		t.Fatal(err)
	}
	set := text(t, m)
	var want string
	for _, variant := range variantsHere() {
		for _, threads := range []int{1, 3} {
			got := teamwork(t, m, set, 1, threads, variant)
			if want == "" {
				want = got
			}
			if got != want {
				t.Errorf("%s on %d threads: %s, want %s", variant, threads, got, want)
			}
		}
	}
}
