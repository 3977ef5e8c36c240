package cli

import (
	"context"
	"io"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"brood/runtime/evaluate"
	"brood/runtime/option"
)

// mostSampled bounds --length of `brood sample`.
const mostSampled = 1 << 20

// sampleFlags holds the argument and flags of `brood sample`.
type sampleFlags struct {
	modelFlags
	by     evaluate.Sampling
	prompt string
}

func sampleCommand(s streams) *cobra.Command {
	var x sampleFlags
	c := &cobra.Command{
		Use:   "sample FILE.safetensors|SESSION",
		Short: "Let a trained model of a text continue a prompt",
		Long: "Let a trained model of a text continue a prompt, byte by byte, and print both. The same seed gives\n" +
			"the same text, and a longer one begins with it. For a session the model is taken from the newest checkpoint,\n" +
			"or from the round --at. Control characters are replaced.",
		Args: exactly("a FILE or SESSION"),
		RunE: func(c *cobra.Command, args []string) error {
			x.what = args[0]
			switch {
			case x.by.Length < 1 || x.by.Length > mostSampled:
				return usage("--length %d: give 1 to %d bytes", x.by.Length, mostSampled)
			case !(x.by.Temperature >= 0 && x.by.Temperature <= 100):
				return usage("--temperature %v: give 0, the likeliest byte, to 100", x.by.Temperature)
			}
			all, err := x.open(c, s)
			if err != nil {
				return err
			}
			if len(all) > 1 {
				return usage("--of %s: a text is of one model; run sample once for each", x.of)
			}
			return x.execute(c.Context(), s.out, all[0])
		},
	}
	x.registerModel(c, "model of a session: "+evaluate.OfForms+" (default: centre)")
	fl := c.Flags()
	fl.StringVar(&x.prompt, "prompt", "\n", "text to continue")
	fl.IntVar(&x.by.Length, "length", 500, "bytes to write behind the prompt")
	fl.Float64Var(&x.by.Temperature, "temperature", 1,
		"divides the logits: below 1 likely bytes are drawn more often, 0 takes the likeliest one")
	fl.Uint64Var(&x.by.Seed, option.Seed.Name, 1, "seed of the draws")
	return c
}

// execute prints the prompt and its continuation, each character when it is complete. It prints nothing if the model
// rejects the prompt.
func (x *sampleFlags) execute(ctx context.Context, out io.Writer, t *evaluate.Model) error {
	x.by.Prompt, x.by.Threads = []byte(x.prompt), x.threads
	begun := false
	var pending []byte // bytes of a character that is not complete
	err := t.Sample(ctx, x.by, func(b byte) error {
		if !begun {
			begun = true
			if _, err := out.Write(x.by.Prompt); err != nil {
				return err
			}
		}
		if pending = append(pending, b); !utf8.FullRune(pending) {
			return nil
		}
		_, err := out.Write(pending)
		pending = pending[:0]
		return err
	})
	if err != nil {
		return err
	}
	_, err = out.Write(append(pending, '\n'))
	return err
}
