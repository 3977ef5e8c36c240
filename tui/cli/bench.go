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

// measurement is one figure of a suite.
type measurement struct {
	Suite string  `json:"suite"`
	Name  string  `json:"name"`
	Value float64 `json:"value"` // NaN, null in JSON: not measured
	Unit  string  `json:"unit"`
	// Ratio is the value divided by its limit: the median over pairs that were measured in alternation. 0: not measured.
	Ratio   float64 `json:"ratio,omitempty"`
	Scatter float64 `json:"scatter,omitempty"` // half the interquartile range of the ratio
	Goal    float64 `json:"goal,omitempty"`    // for the ratio, or for the value if there is no ratio; 0: none
	Limit   string  `json:"limit,omitempty"`   // the part of the machine that limits the figure
	Note    string  `json:"note,omitempty"`
}

// text returns the row of the table, without trailing spaces.
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

// notMeasured returns a measurement without a value. why is its note.
func notMeasured(name, unit, why string) measurement {
	return measurement{Name: name, Value: math.NaN(), Unit: unit, Note: why}
}

// plainMeasurement is a measurement with the default JSON encoding.
type plainMeasurement measurement

// MarshalJSON encodes a value of NaN as null.
func (m measurement) MarshalJSON() ([]byte, error) {
	if m.Value == m.Value {
		return json.Marshal(plainMeasurement(m))
	}
	return json.Marshal(struct {
		plainMeasurement
		Value *float64 `json:"value"`
	}{plainMeasurement: plainMeasurement(m)})
}

// UnmarshalJSON decodes a value of null as NaN.
func (m *measurement) UnmarshalJSON(text []byte) error {
	read := plainMeasurement{Value: math.NaN()}
	err := json.Unmarshal(text, &read)
	*m = measurement(read)
	return err
}

// suites lists the suites of bench.
var suites = []suite{
	{"start", "from the start of the built binary to a falling loss", benchStart},
	{"steps", "steps and samples a second of each algorithm", benchSteps},
	{"rounds", "where the time of a round goes, for each algorithm", benchRounds},
	{"kernels", "products, convolutions and vectors, compared with the limits of registers and memory", benchKernels},
	{"train", "gradients of whole models, compared with their products at the peak rate", benchTrain},
	{"es", "evaluations of perturbed candidates, compared with the same", benchES},
	{"noise", "random numbers a second", benchNoise},
	{"gpu", "a device: its kernels, its hash, launches, copies, noise, training, candidates (--all: every device)",
		benchGPU},
	{"workbench", "the workbench on many recorded runs: time until it lists them, and to draw a frame", benchWorkbench},
}

type suite struct {
	name, doc string
	run       func(c *cobra.Command, report func(measurement)) error
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

func benchCommand(s streams) *cobra.Command {
	var asJSON bool
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
				return usage("there is no suite %q%s: choose %s", args[0], usererr.Suggest(args[0], suiteList()), suiteNames())
			}
			if each, _ := c.Flags().GetDuration("each"); each < 0 {
				return usage("--each %s: give a time that is not negative", each)
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
	c.Flags().Int("runs", 10000, "workbench: number of synthetic runs")
	c.Flags().Int("length", 1000, "workbench: rounds of the runs that are overlaid, which have 64 members")
	c.Flags().Duration("each", 800*time.Millisecond, "measuring time of each figure of kernels, train, es, noise and gpu")
	c.Flags().Bool("all", false, "gpu: every device, at most nine minutes")
	c.Flags().String("stage", "", "gpu: one stage, in this process")
	_ = c.Flags().MarkHidden("stage")
	return c
}

// withTempDir calls f with a temporary directory, which it removes when f returns. A signal cancels the context of f,
// so that an interrupted suite removes the directory too; a second signal ends the process at once.
func withTempDir(c *cobra.Command, f func(ctx context.Context, dir string) error) error {
	dir, err := os.MkdirTemp("", "brood-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithCancelCause(c.Context())
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

// benchStart starts the binary as the workbench does and follows its first seconds over the control socket.
func benchStart(c *cobra.Command, report func(measurement)) error {
	return withTempDir(c, func(ctx context.Context, home string) error { return startIn(ctx, home, c, report) })
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
	exit := make(chan error, 1) // for awaitControl
	exited := make(chan struct{})
	go func() {
		exit <- child.Wait()
		close(exited)
	}()
	stopped := false
	defer func() { // the child is detached: signals to this process do not reach it
		if !stopped {
			_ = child.Process.Kill()
		}
		<-exited
	}()
	client, err := awaitControl(ctx, dir, exit, logPath, func(uint64) {})
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

// watchFall follows the centre's loss for three seconds after t0 and reports the time of the first value. ratio is the
// median of the last ten values divided by the first. It fails if no value arrives.
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
		return 0, 0, errors.New("no loss within 3 s: the machine is too slow or too busy")
	}
	start := losses[0]
	return view.Median(losses[max(0, len(losses)-10):]) / start, start, nil
}

// benchSteps trains some algorithms for 3 s each, with mlp on glyphs.
func benchSteps(c *cobra.Command, report func(measurement)) error {
	return withTempDir(c, func(ctx context.Context, home string) error { return stepsIn(ctx, home, report) })
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
