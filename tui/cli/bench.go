package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"brood/models/usererr"
	"brood/presets"
	"brood/runtime/control"
	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/view"
	"brood/tui"
)

// measurement is one line of a suite.
type measurement struct {
	Suite string  `json:"suite"`
	Name  string  `json:"name"`
	Value float64 `json:"value"` // NaN, which is null in JSON: it was not measured
	Unit  string  `json:"unit"`
	// of the value to the limit, the median of pairs that were measured one after the other; 0: not measured
	Ratio   float64 `json:"ratio,omitempty"`
	Scatter float64 `json:"scatter,omitempty"` // half of what lies between the quartiles of the ratio
	Goal    float64 `json:"goal,omitempty"`    // of the ratio, or of the value where there is no ratio
	Limit   string  `json:"limit,omitempty"`   // what of the machine allows no more
	Note    string  `json:"note,omitempty"`
}

// text is the line of a table.
func (m measurement) text() string {
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
	return strings.TrimRight(fmt.Sprintf("%-46s %10s %-13s %5s %5s %5s  %s", m.Name, tui.Known(m.Value), m.Unit,
		share(m.Ratio, "%.2f"), share(m.Scatter, "±%.2f"), share(m.Goal, "%.2f"), what), " ")
}

// notMeasured is a figure that is not known, and why.
func notMeasured(name, unit, why string) measurement {
	return measurement{Name: name, Value: math.NaN(), Unit: unit, Note: why}
}

// bare is a measurement without methods.
type bare measurement

// MarshalJSON has null for what was not measured.
func (m measurement) MarshalJSON() ([]byte, error) {
	if m.Value == m.Value {
		return json.Marshal(bare(m))
	}
	return json.Marshal(struct {
		bare
		Value *float64 `json:"value"`
	}{bare: bare(m)})
}

// UnmarshalJSON reads that null as NaN.
func (m *measurement) UnmarshalJSON(text []byte) error {
	read := bare{Value: math.NaN()}
	err := json.Unmarshal(text, &read)
	*m = measurement(read)
	return err
}

// suites are what bench can run.
var suites = []suite{
	{"start", "from the start of the built binary to a falling loss", benchStart},
	{"steps", "steps and samples a second of each algorithm", benchSteps},
	{"rounds", "where the time of a round goes, for each algorithm", benchRounds},
	{"kernels", "products, convolutions and vectors, beside what registers and memory allow", benchKernels},
	{"train", "gradients of whole models, beside their products at the peak", benchTrain},
	{"es", "evaluations of perturbed candidates, beside the same", benchES},
	{"noise", "random numbers a second", benchNoise},
	{"gpu", "a device: its kernels, its hash, launches, copies, noise, training, candidates (--all: every device)",
		benchGPU},
	{"workbench", "the workbench on many recorded runs: until it lists them, and its frames", benchWorkbench},
}

type suite struct {
	name, doc string
	run       func(c *cobra.Command, report func(measurement)) error
}

// suiteNames are those of all suites, as a sentence has them.
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

func benchCommand(s streams) *cobra.Command {
	var asJSON bool
	long := "Measure this machine, and say beside each figure what it would allow.\n\n"
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
				return usage("there is no suite %q%s: choose %s", args[0], usererr.Suggest(args[0], suiteList()), suiteNames())
			}
			if each, _ := c.Flags().GetDuration("each"); each < 0 {
				return usage("--each %s: a time is not negative", each)
			}
			if !asJSON {
				fmt.Fprintf(s.out, "%-46s %10s %-13s %5s %5s %5s  %s\n", "what", "value", "unit", "ratio", "±", "goal",
					"of what the machine allows")
			}
			return suites[at].run(c, func(m measurement) {
				m.Suite = args[0]
				if asJSON {
					_ = json.NewEncoder(exact(s.out)).Encode(m)
					return
				}
				fmt.Fprintln(s.out, m.text())
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON object a line")
	c.Flags().Int("runs", 10000, "how many runs the suite workbench makes up")
	c.Flags().Int("length", 1000, "workbench: how many rounds the runs have that are laid over each other, of 64 members")
	c.Flags().Duration("each", 800*time.Millisecond, "how long a figure of kernels, train, es, noise and gpu is measured")
	c.Flags().Bool("all", false, "gpu: every device, nine minutes at most")
	c.Flags().String("stage", "", "gpu: one stage, in this process")
	_ = c.Flags().MarkHidden("stage")
	return c
}

// inScratch calls f with a directory for what a suite makes, which is removed in the end. Whoever interrupts the suite
// ends ctx, so that nothing stays either; a second signal ends the process at once.
func inScratch(c *cobra.Command, f func(ctx context.Context, dir string) error) error {
	dir, err := os.MkdirTemp("", "brood-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithCancelCause(c.Context())
	signals := make(chan os.Signal, 1)
	quiet := notifyExit(ctx, signals)
	var heard sync.WaitGroup
	defer heard.Wait()
	defer cancel(nil)
	defer quiet()
	heard.Go(func() {
		select {
		case sig := <-signals:
			quiet()
			cancel(&exitError{code: signalStatus(sig), err: errors.New("interrupted: what the suite made is removed")})
		case <-ctx.Done():
		}
	})
	err = f(ctx, dir)
	if left, ok := errors.AsType[*exitError](context.Cause(ctx)); ok && err != nil {
		return left
	}
	return err
}

// benchStart starts the binary as a workbench would and watches its first seconds through the control socket.
func benchStart(c *cobra.Command, report func(measurement)) error {
	return inScratch(c, func(ctx context.Context, home string) error { return startIn(ctx, home, c, report) })
}

func startIn(ctx context.Context, home string, c *cobra.Command, report func(measurement)) error {
	dir := filepath.Join(home, "start")
	t0 := time.Now()
	f := &runFlags{detached: true}
	o, err := f.options(c, presets.Default)
	if err != nil {
		return err
	}
	child, logPath, err := startDetached(host.Order{Dir: dir, Options: o})
	if err != nil {
		return err
	}
	gone := make(chan error, 1)
	over := make(chan struct{})
	go func() {
		gone <- child.Wait()
		close(over)
	}()
	stopped := false
	defer func() { // it is a process of its own, which no signal for this one ends
		if !stopped {
			_ = child.Process.Kill()
		}
		<-over
	}()
	client, err := awaitControl(ctx, dir, gone, logPath, func(uint64) {})
	if err != nil {
		return err
	}
	defer client.Close()
	report(measurement{Name: "control socket open", Value: time.Since(t0).Seconds(), Unit: "s"})
	ratio, first, err := watchFall(ctx, client, t0, report)
	if err != nil {
		return err
	}
	report(measurement{
		Name:  "centre loss after 3 s",
		Value: ratio,
		Unit:  "of first",
		Note:  fmt.Sprintf("median of the last ten points; the first was %.4g; wanted at most 0.7", first),
	})
	_, err = client.Command(ctx, event.Command{Action: event.Stop, By: "bench"})
	stopped = err == nil
	return err
}

// watchFall follows the centre's loss for three seconds after the start.
func watchFall(ctx context.Context, client *control.Client, t0 time.Time, report func(measurement)) (ratio,
	first float64, err error) {
	var losses []float64
	deadline := t0.Add(3 * time.Second)
	for at := uint64(0); time.Now().Before(deadline); {
		b, err := client.Next(ctx, at, 1024)
		if err != nil {
			return 0, 0, err
		}
		at = b.Next
		for _, r := range b.Records {
			if r.Points != nil && r.Points.Series == event.SeriesCentre && time.Unix(0, r.At).Before(deadline) {
				if len(losses) == 0 {
					report(measurement{Name: "first centre loss", Value: time.Unix(0, r.At).Sub(t0).Seconds(), Unit: "s"})
				}
				losses = append(losses, r.Points.Values...)
			}
		}
	}
	if len(losses) == 0 {
		return 0, 0, errors.New("no loss was seen within 3 s: the machine is too slow or too busy")
	}
	start := losses[0]
	return view.Median(losses[max(0, len(losses)-10):]) / start, start, nil
}

// benchSteps trains each algorithm for a moment on glyphs.
func benchSteps(c *cobra.Command, report func(measurement)) error {
	return inScratch(c, func(ctx context.Context, home string) error { return stepsIn(ctx, home, report) })
}

func stepsIn(ctx context.Context, home string, report func(measurement)) error {
	for _, alg := range []string{"dp-sgd", "parle", "popsgd", "openai-es", "pesgd"} {
		o := host.Options{
			Algorithm: alg,
			Model:     "mlp",
			Data:      "glyphs",
			Members:   4,
			Workers:   2,
			Seed:      1,
			Limit:     event.Limit{Seconds: 3},
		}
		last, sec, err := trainHere(ctx, filepath.Join(home, alg), o)
		if err != nil {
			return err
		}
		report(measurement{Name: alg + " rounds", Value: float64(last.Progress.Rounds) / sec, Unit: "/s"})
		report(measurement{
			Name:  alg + " samples",
			Value: float64(last.Progress.Samples) / sec,
			Unit:  "/s",
			Note:  "mlp on glyphs, 4 members, 2 workers",
		})
	}
	return nil
}
