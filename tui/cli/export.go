package cli

import (
	"context"
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
			var told time.Time
			said, err := exportModel(c.Context(), dir, file, at, threads, func(k event.Commit) {
				if time.Since(told) > time.Second {
					told = time.Now()
					fmt.Fprintf(s.err, "brood: round %d brought back\n", k.To)
				}
			})
			if err != nil {
				return err
			}
			fmt.Fprintln(s.out, said)
			return nil
		}}
	c.Flags().Uint64Var(&at, "at", 0, "the round (default: the last)")
	c.Flags().IntVar(&threads, "threads", 0, "threads (default: all cores)")
	c.Flags().StringVarP(&file, "output", "o", "", "file to write (default: SESSION.safetensors)")
	return c
}

// exportModel writes the model of the session in dir after a round, 0 for the last, to a file, "" for one of the
// session's name, and says what it wrote. told hears of rounds that are executed again to get there.
func exportModel(ctx context.Context, dir, file string, at uint64, threads int, told func(event.Commit)) (string, error) {
	if file == "" {
		file = filepath.Base(dir) + ".safetensors"
	}
	if _, err := os.Stat(file); err == nil {
		return "", fmt.Errorf("%s exists: name another file with -o, or remove it", file)
	}
	t, err := host.Export(ctx, dir, at, threads, told)
	if err != nil {
		return "", err
	}
	if err := t.Save(file); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s: %s after round %d of %s, %s parameters", file, t.Net.Name, t.Round, t.Session, grouped(int64(len(t.Params)))), nil
}

// passedOver tells of the tensors of a file that a model has no place for; nothing where there are none.
func passedOver(file string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("%s holds %s that the model has no place for, and that are passed over: %s", file, plural(len(names), "tensor"), strings.Join(names[:min(len(names), 8)], ", "))
}
