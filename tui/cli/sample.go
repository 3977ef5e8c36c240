package cli

import (
	"fmt"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"brood/runtime/evaluate"
)

// mostSampled bounds --length of `brood sample`.
const mostSampled = 1 << 20

func sampleCommand(s streams) *cobra.Command {
	var x modelFlags
	var prompt string
	var by evaluate.Sampling
	c := &cobra.Command{
		Use:   "sample FILE.safetensors|SESSION",
		Short: "Let a trained model of a text continue a prompt",
		Long: "Let a trained model of a text continue a prompt, byte by byte, and print both. The same seed gives the same text.\n" +
			"For a session the model is taken from the newest checkpoint, or from the round --at. Control characters are replaced.",
		Args: exactly("a FILE or SESSION"),
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case by.Length < 1 || by.Length > mostSampled:
				return usage("--length %d: give 1 to %d bytes", by.Length, mostSampled)
			case !(by.Temperature >= 0 && by.Temperature <= 100):
				return usage("--temperature %v: give 0, the likeliest byte, to 100", by.Temperature)
			}
			x.what = args[0]
			all, err := x.open(c, s)
			if err != nil {
				return err
			}
			if len(all) > 1 {
				return usage("--of %s: a text is of one model; run sample once for each", x.of)
			}
			by.Prompt, by.Threads = []byte(prompt), x.threads
			begun := false
			var pending []byte // bytes of a character that is not complete
			write := func(b ...byte) error {
				pending = append(pending, b...)
				if !utf8.FullRune(pending) {
					return nil
				}
				_, err := s.out.Write(pending)
				pending = pending[:0]
				return err
			}
			err = all[0].Sample(c.Context(), by, func(b byte) error {
				if !begun { // nothing is printed if the model rejects the prompt
					begun = true
					if err := write(by.Prompt...); err != nil {
						return err
					}
				}
				return write(b)
			})
			if begun {
				fmt.Fprintf(s.out, "%s\n", pending)
			}
			return err
		},
	}
	x.registerModel(c, "model of a session: "+evaluate.OfForms+" (default: centre)")
	fl := c.Flags()
	fl.StringVar(&prompt, "prompt", "\n", "text to continue")
	fl.IntVar(&by.Length, "length", 500, "bytes to write behind the prompt")
	fl.Float64Var(&by.Temperature, "temperature", 1, "divides the logits: below 1 the text is more likely, 0 takes the likeliest byte")
	fl.Uint64Var(&by.Seed, "seed", 1, "seed of the draws")
	return c
}
