package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"brood/models/usererr"
	"brood/runtime/archive"
	"brood/runtime/bench"
	"brood/tui"
	"brood/tui/textfmt"
)

// suites lists the suites of bench.
var suites = []suite{
	{"rounds", "where the time of a round goes, for each algorithm", benchRounds},
	{"kernels", "products, convolutions and vectors, compared with the limits of registers and memory",
		timed(bench.Kernels)},
	{"train", "gradients of whole models, compared with their products at the peak rate", timed(bench.Train)},
	{"es", "evaluations of perturbed candidates, compared with the same", timed(bench.Candidates)},
	{"noise", "random numbers a second", timed(bench.Noise)},
	{"gpu", "a device: its kernels, its hash, launches, copies, noise, training, candidates (--all: every device)",
		benchGPU},
	{"workbench", "the workbench on many recorded runs: time until it lists them, and to draw a frame", benchWorkbench},
}

type suite struct {
	name, doc string
	run       func(c *cobra.Command, f *benchFlags, report func(bench.Figure)) error
}

// benchFlags holds the flags of `brood bench`.
type benchFlags struct {
	asJSON       bool
	runs, length int           // of the suite workbench
	each         time.Duration // measuring time of a figure
	all          bool          // every device
	stage        string        // a single stage of the suite gpu, in this process; "" for all
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
					_ = json.NewEncoder(exact(s.out)).Encode(m)
					return
				}
				fmt.Fprintln(s.out, figureText(m))
			})
		},
	}
	fl := c.Flags()
	fl.BoolVar(&f.asJSON, "json", false, "one JSON object a line")
	fl.IntVar(&f.runs, "runs", 10000, "workbench: number of synthetic runs")
	fl.IntVar(&f.length, "length", 1000, "workbench: rounds of the overlaid runs, which have 64 members")
	fl.DurationVar(&f.each, "each", bench.DefaultEach, "measuring time of each figure of kernels, train, es, noise "+
		"and gpu")
	fl.BoolVar(&f.all, "all", false, "gpu: every device, at most nine minutes")
	fl.StringVar(&f.stage, "stage", "", "gpu: one stage, in this process")
	_ = fl.MarkHidden("stage")
	return c
}

// withTempDir calls f with a temporary directory, which it removes when f returns. A signal cancels the context of f,
// so that an interrupted suite removes the directory too; a second signal ends the process at once.
func withTempDir(ctx context.Context, f func(ctx context.Context, dir string) error) error {
	dir, err := os.MkdirTemp("", "brood-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 1)
	quiet := notifyExit(ctx, signals)
	var handler sync.WaitGroup
	defer handler.Wait()
	defer cancel(nil)
	defer quiet()
	handler.Go(func() {
		select {
		case sig := <-signals:
			quiet()
			cancel(&exitError{code: signalStatus(sig), err: errors.New("interrupted: the files of the suite are removed")})
		case <-ctx.Done():
		}
	})
	err = f(ctx, dir)
	if interrupt, ok := errors.AsType[*exitError](context.Cause(ctx)); ok && err != nil {
		return interrupt
	}
	return err
}

// timed returns the run function of a suite that measures each figure for the duration --each.
func timed(
	suite func(ctx context.Context, each time.Duration, report func(bench.Figure)) error,
) func(*cobra.Command, *benchFlags, func(bench.Figure)) error {
	return func(c *cobra.Command, f *benchFlags, report func(bench.Figure)) error {
		return suite(c.Context(), f.each, report)
	}
}

// benchRounds measures the parts of the time of a round.
func benchRounds(c *cobra.Command, _ *benchFlags, report func(bench.Figure)) error {
	return bench.Rounds(c.Context(), report)
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
		InDir:  withTempDir,
		Report: report,
	}
	if f.stage != "" {
		return suite.RunStage(c.Context(), f.stage)
	}
	return suite.Run(c.Context(), f.all)
}

// Sizes of the suite workbench: the terminal in cells, the runs that are overlaid, and the frames that are drawn.
const (
	benchWidth, benchHeight = 200, 50
	benchMarked             = 16 // overlaid runs
	benchFrames             = 400
)

// benchWorkbench writes --runs synthetic sessions and opens the workbench on them twice: without a cache, and with the
// cache of the first time.
func benchWorkbench(c *cobra.Command, f *benchFlags, report func(bench.Figure)) error {
	if f.runs < benchMarked || f.runs > 1_000_000 {
		return usage("--runs %d: give %d to 1 000 000", f.runs, benchMarked)
	}
	if f.length < 100 || f.length > 1_000_000 {
		return usage("--length %d: give 100 to 1 000 000", f.length)
	}
	progress := func(text string) { fmt.Fprintln(c.ErrOrStderr(), "brood: "+text) }
	return withTempDir(c.Context(), func(ctx context.Context, home string) error {
		return workbenchIn(ctx, home, f.runs, f.length, progress, report)
	})
}

// workbenchIn is benchWorkbench with n sessions in home/s. The last benchMarked of them have long rounds, the others
// few.
func workbenchIn(ctx context.Context, home string, n, long int, progress func(string),
	report func(bench.Figure)) error {
	progress(fmt.Sprintf("writing %s to %s, %d of them with %s rounds of %d members; they are removed in the end",
		plural(n, "session"), home, benchMarked, grouped(int64(long)), bench.LongMembers))
	began := time.Now()
	wrote, err := bench.WriteSessions(ctx, filepath.Join(home, "s"), n, benchMarked, long,
		func(written int) { progress(fmt.Sprintf("wrote %s of them", grouped(int64(written)))) })
	if err != nil {
		return err
	}
	report(bench.Figure{Name: fmt.Sprintf("made %d sessions", n), Value: time.Since(began).Seconds(), Unit: "s",
		Note: grouped(wrote.Points) + " points, logs of " + humanBytes(wrote.Bytes)})
	for _, cache := range []string{"no cache", "cache"} {
		progress("opening the workbench on them, " + map[string]string{"no cache": "without a cache",
			"cache": "with the cache of the first time"}[cache])
		lib := &sessionLibrary{home: filepath.Join(home, "s"),
			lib: archive.OpenLibrary(filepath.Join(home, "s"), filepath.Join(home, "cache")), hosts: newHosts(nil, nil)}
		t, err := tui.Measure(ctx, lib, benchWidth, benchHeight, benchMarked, benchFrames)
		if err != nil {
			return err
		}
		ms := func(what string, d time.Duration, goal float64) {
			report(bench.Figure{Name: what + ", " + cache, Value: float64(d.Microseconds()) / 1000, Unit: "ms", Goal: goal})
		}
		ms("first paint", t.First, 200)
		ms("all runs in view with figures", t.Filled, 0)
		ms("all runs read", t.All, 0)
		if cache == "cache" {
			slices.Sort(t.Frames)
			ms(fmt.Sprintf("frame that overlays %d runs for the first time", t.Lines), t.Laid, 0)
			ms(fmt.Sprintf("frame %dx%d, %d runs of %d, p50", benchWidth, benchHeight, t.Lines, bench.LongMembers),
				t.Frames[len(t.Frames)/2], 0)
			ms(fmt.Sprintf("frame %dx%d, %d runs of %d, p95", benchWidth, benchHeight, t.Lines, bench.LongMembers),
				t.Frames[len(t.Frames)*95/100], 4)
		}
	}
	return nil
}
