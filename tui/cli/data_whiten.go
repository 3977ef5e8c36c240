package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"brood/models/data"
)

func whitenCommand(s streams) *cobra.Command {
	c := &cobra.Command{
		Use:   "whiten NAME|PATH",
		Short: "Print the filters of a convolution that whitens the patches of a set's images",
		Args:  exactly("a NAME or a PATH"),
		Long: "Print the filters of a convolution that whitens the patches of a set's images, for the first layer\n" +
			"of a model: a row for each principal direction of the patches, divided by its standard deviation, and its\n" +
			"negative. They are computed from the first 5,000 training samples.",
	}
	side := c.Flags().Int("kernel", 2, "side of a patch, and of the convolution")
	epsilon := c.Flags().Float64("epsilon", 5e-4,
		"added to each variance, so that directions of little variance are not amplified")
	c.RunE = func(_ *cobra.Command, args []string) error {
		d, err := data.Load(args[0])
		if err != nil {
			return err
		}
		rows, err := d.Whitening(*side, *epsilon)
		if err != nil {
			return err
		}
		fmt.Fprintf(s.out, "# whitens patches of %s: brood data whiten %s --kernel %d --epsilon %g\n", d.Name, args[0], *side,
			*epsilon)
		fmt.Fprintf(s.out, "[[layer]]\nkind = \"conv\"\nout = %d\nkernel = %d\nfilters = [\n", len(rows), *side)
		for _, row := range rows {
			var words []string
			for _, x := range row {
				words = append(words, strconv.FormatFloat(x, 'g', 6, 32))
			}
			fmt.Fprintf(s.out, "  [%s],\n", strings.Join(words, ", "))
		}
		fmt.Fprintln(s.out, "]")
		return nil
	}
	return c
}
