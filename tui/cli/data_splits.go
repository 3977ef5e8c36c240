package cli

import (
	"encoding/csv"
	"io"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"brood/models/data"
	"brood/runtime/host"
	"brood/runtime/option"
)

func splitsCommand(s streams) *cobra.Command {
	c := &cobra.Command{
		Use:   "splits NAME|PATH|SESSION",
		Short: "Write the split of each sample as CSV, for other programs",
		Args:  exactly("a NAME, a PATH or a SESSION"),
		Long: "Write the split of each sample as CSV, for other programs: its file, its number there from 1, and\n" +
			"train, validation or test. The splits are those of a run on these data with the same options, or those that\n" +
			"a session trains on.",
	}
	var read readingFlags
	read.register(c, append(slices.Clone(option.ReadingOptions), option.Validation)...)
	var output string
	var force bool
	c.Flags().StringVarP(&output, "output", "o", "-", "CSV file to write, - for standard output")
	c.Flags().BoolVar(&force, "force", false, "replace an existing file")
	c.RunE = func(c *cobra.Command, args []string) error {
		d, err := read.split(c, args[0])
		if err != nil {
			return err
		}
		rows, err := d.Rows()
		if err != nil {
			return err
		}
		write := func(w io.Writer) error {
			lines := [][]string{{"file", "row", "split"}}
			for _, r := range rows {
				lines = append(lines, []string{r.File, strconv.Itoa(r.Row), r.Split})
			}
			return csv.NewWriter(w).WriteAll(lines)
		}
		if output == "-" {
			return write(exact(s.out))
		}
		return writeFile(output, force, write)
	}
	return c
}

// split returns the samples of a session, or data as a run with these flags would split them.
func (f *readingFlags) split(c *cobra.Command, what string) (*data.Set, error) {
	if slices.Contains(data.List(), what) || !isSession(what) {
		d, err := f.load(what)
		if err != nil {
			return nil, err
		}
		return option.HoldOut(d, option.Validation.Text(f.options))
	}
	for _, x := range append(slices.Clone(option.ReadingOptions), option.Validation) {
		if c.Flags().Changed(x.Name) {
			return nil, usage("--%s: session %s has its own: leave it out", x.Name, what)
		}
	}
	dir, err := resolve(what)
	if err != nil {
		return nil, err
	}
	return host.RecordedSamples(dir)
}
