package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"brood/models"
	"brood/runtime/host"
	"brood/runtime/option"
)

func evalCommand(s streams) *cobra.Command {
	var model, set, split, rename string
	var threads int
	var asJSON bool
	c := &cobra.Command{Use: "eval FILE.safetensors", Short: "Score a trained model on the samples of a data set",
		Long: "Score a trained model on the samples of a data set, without dropout. A file that brood export wrote says which model it holds, and on which\ndata it was trained; for others name both.",
		Args: exactly("a FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			if !slices.Contains(host.Splits, split) {
				return usage("--split %s: choose one of %s", split, strings.Join(host.Splits, ", "))
			}
			t, err := host.OpenRenamed(args[0], model, rename)
			if err != nil {
				return err
			}
			if set == "" {
				set = t.Data
			}
			if set == "" {
				return usage("%s does not say which data it was trained on: name some with --data", args[0])
			}
			samples, err := t.Load(set)
			if err != nil {
				return err
			}
			t0 := time.Now()
			sc, err := t.Score(c.Context(), samples, split, threads)
			if err != nil {
				return fmt.Errorf("data %s: %w", set, err)
			}
			if text := passedOver(args[0], t.Spare); text != "" {
				fmt.Fprintln(s.err, "brood: "+text)
			}
			switch {
			case t.Read.Form == nil:
				fmt.Fprintf(s.err, "brood: %s does not say how its samples were normalised, nor what its classes are called: those of data %s are used\n", args[0], set)
			case t.Kernels != sc.Kernels:
				fmt.Fprintf(s.err, "brood: %s was computed by %s, and is scored by %s: last digits may differ\n", args[0], t.Kernels, sc.Kernels)
			}
			graded := t.Net.Loss != models.Distance
			if asJSON {
				line := map[string]any{"event": "evaluated", "file": args[0], "model": t.Net.Name, "data": set, "split": split, "samples": sc.Samples, "kernels": sc.Kernels,
					"loss": finite(sc.Mean()), "seconds": time.Since(t0).Seconds()}
				if graded {
					line["error"] = sc.Error()
				}
				return json.NewEncoder(s.out).Encode(line)
			}
			scored := grouped(sc.Samples) + " " + split
			if split == "all" {
				scored = "all " + grouped(sc.Samples)
			}
			fmt.Fprintf(s.out, "%s on %s, %s samples\n", t.Net.Name, set, scored)
			if graded {
				fmt.Fprintf(s.out, "  error        %.2f %%\n", sc.Error())
			}
			fmt.Fprintf(s.out, "  loss         %.4f\n", sc.Mean())
			return nil
		}}
	fl := c.Flags()
	fl.StringVar(&model, "model", "", "model by name, or a layer list in a .toml file (default: as the file says)")
	fl.StringVar(&set, "data", "", "data set (default: as the file says)")
	fl.StringVar(&rename, option.Rename.Name, "", "names in the file and ours, as FROM=TO, several with commas: a tensor, or all of a layer")
	fl.StringVar(&split, "split", "test", "samples to score: "+strings.Join(host.Splits, ", "))
	fl.IntVar(&threads, "threads", 0, "threads (default: all cores)")
	fl.BoolVar(&asJSON, "json", false, "print the result as JSON")
	return c
}
