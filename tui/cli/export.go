package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"brood/runtime/event"
	"brood/runtime/host"
)

func exportCommand(s streams) *cobra.Command {
	var at uint64
	var threads int
	var file string
	c := &cobra.Command{Use: "export SESSION", Short: "Write the model that a session has trained to a .safetensors file",
		Long: "Write the model that a session has trained to a .safetensors file: the centre of its population, whose batch-norm statistics are rebuilt,\nunder the names that PyTorch uses. brood eval scores it, and brood run --init starts from it. The session may be running.",
		Args: exactly("a SESSION"),
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("at") && at == 0 {
				return usage("--at 0: give a round of 1 or more")
			}
			dir, err := resolve(args[0])
			if err != nil {
				return err
			}
			if file == "" {
				file = filepath.Base(dir) + ".safetensors"
			}
			if _, err := os.Stat(file); err == nil {
				return fmt.Errorf("%s exists: name another file with -o, or remove it", file)
			}
			var told time.Time
			t, err := host.Export(c.Context(), dir, at, threads, func(k event.Commit) {
				if time.Since(told) > time.Second {
					told = time.Now()
					fmt.Fprintf(s.err, "brood: round %d brought back\n", k.To)
				}
			})
			if err != nil {
				return err
			}
			if err := t.Save(file); err != nil {
				return err
			}
			fmt.Fprintf(s.out, "%s: %s after round %d of %s, %s parameters\n", file, t.Net.Name, t.Round, t.Session, grouped(int64(len(t.Params))))
			return nil
		}}
	c.Flags().Uint64Var(&at, "at", 0, "the round (default: the last)")
	c.Flags().IntVar(&threads, "threads", 0, "threads (default: all cores)")
	c.Flags().StringVarP(&file, "output", "o", "", "file to write (default: SESSION.safetensors)")
	return c
}

// passedOver tells of the tensors of a file that a model has no place for; nothing where there are none.
func passedOver(file string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("%s holds %s that the model has no place for, and that are passed over: %s", file, plural(len(names), "tensor"), strings.Join(names[:min(len(names), 8)], ", "))
}
