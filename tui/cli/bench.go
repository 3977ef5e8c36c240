package cli

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"brood/models/usererr"
	"brood/runtime/bench"
	"brood/tui/textfmt"
)

// suites lists the suites of bench.
var suites = []suite{
	{"kernels", "products, convolutions and vectors, compared with the limits of registers and memory",
		timed(bench.Kernels)},
	{"train", "gradients of whole models, compared with their products at the peak rate", timed(bench.Train)},
	{"es", "evaluations of perturbed candidates, compared with the same", timed(bench.Candidates)},
	{"noise", "random numbers a second", timed(bench.Noise)},
	{"gpu", "a device: its kernels, its hash, launches, copies, noise, training, candidates (--all: every device)",
		benchGPU},
}

type suite struct {
	name, doc string
	run       func(c *cobra.Command, f *benchFlags, report func(bench.Figure)) error
}

type benchFlags struct {
	asJSON bool
	each   time.Duration // measuring time of a figure
	all    bool          // every device
	stage  string        // a single stage of the suite gpu, in this process; "" for all
}

// suiteNames returns the names of all suites as a phrase: a, b or c.
func suiteNames() string {
	names := suiteList()
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

func suiteList() (names []string) {
	for _, s := range suites {
		names = append(names, s.name)
	}
	return names
}

// figureText returns the row of the table, without trailing spaces.
func figureText(m bench.Figure) string {
	share := func(x float64, format string) string {
		if x == 0 {
			return ""
		}
		return fmt.Sprintf(format, x)
	}
	what := m.Limit
	if m.Note != "" {
		what = strings.TrimLeft(what+"; "+m.Note, "; ")
	}
	return strings.TrimRight(fmt.Sprintf("%-46s %10s %-13s %5s %5s %5s  %s", m.Name, textfmt.NumberOrDash(m.Value), m.Unit,
		share(m.Ratio, "%.2f"), share(m.Scatter, "±%.2f"), share(m.Goal, "%.2f"), what), " ")
}

func benchCommand(s streams) *cobra.Command {
	f := &benchFlags{}
	long := "Measure this machine, and compare each figure with the limit of the machine.\n\n"
	for _, s := range suites {
		long += fmt.Sprintf("  %-9s %s\n", s.name, s.doc)
	}
	c := &cobra.Command{
		Use:   "bench SUITE",
		Short: "Measure this machine: " + suiteNames(),
		Long:  long,
		Args:  exactly("a SUITE: " + suiteNames()),
		RunE: func(c *cobra.Command, args []string) error {
			at := slices.IndexFunc(suites, func(s suite) bool { return s.name == args[0] })
			if at < 0 {
				return usage("no suite %q%s: choose %s", args[0], usererr.Suggest(args[0], suiteList()), suiteNames())
			}
			if f.each < 0 {
				return usage("--each %s: must not be negative", f.each)
			}
			if !f.asJSON {
				fmt.Fprintf(s.out, "%-46s %10s %-13s %5s %5s %5s  %s\n", "what", "value", "unit", "ratio", "±", "goal",
					"limit of the machine, note")
			}
			return suites[at].run(c, f, func(m bench.Figure) {
				m.Suite = args[0]
				if f.asJSON {
					_ = objects(s.out, m)
					return
				}
				fmt.Fprintln(s.out, figureText(m))
			})
		},
	}
	fl := c.Flags()
	fl.BoolVar(&f.asJSON, "json", false, "one JSON object a line")
	fl.DurationVar(&f.each, "each", bench.DefaultEach, "measuring time of each figure of kernels, train, es, noise "+
		"and gpu")
	fl.BoolVar(&f.all, "all", false, "gpu: every device, at most nine minutes")
	fl.StringVar(&f.stage, "stage", "", "gpu: one stage, in this process")
	_ = fl.MarkHidden("stage")
	return c
}

// timed returns the run function of a suite that measures each figure for the duration --each.
func timed(
	suite func(ctx context.Context, each time.Duration, report func(bench.Figure)) error,
) func(*cobra.Command, *benchFlags, func(bench.Figure)) error {
	return func(c *cobra.Command, f *benchFlags, report func(bench.Figure)) error {
		return suite(c.Context(), f.each, report)
	}
}

// benchGPU measures the first device, or every device with --all. With --stage it runs that stage in this process.
func benchGPU(c *cobra.Command, f *benchFlags, report func(bench.Figure)) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	suite := bench.DeviceSuite{
		Each: f.each,
		Command: func(stage string) []string {
			return []string{self, "bench", "gpu", "--json", "--stage", stage, "--each", f.each.String()}
		},
		Report: report,
	}
	if f.stage != "" {
		return suite.RunStage(c.Context(), f.stage)
	}
	return suite.Run(c.Context(), f.all)
}
