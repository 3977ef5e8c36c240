package cli

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/zeebo/blake3"

	"brood/presets"
)

// study is the presets of one source, each run with several seeds.
type study struct {
	batch
	name    string
	full    bool
	presets []presets.Preset
	seeds   int
}

// outcome is what the runs of one preset came to.
type outcome struct {
	seconds float64 // mean
	metrics map[string]presets.Sample
}

type reproduceFlags struct {
	batch             batchFlags
	threads           int
	full, plain, json bool
	file, sessions    string
	only              []string
}

func reproduceCommand(s streams) *cobra.Command {
	f := &reproduceFlags{}
	c := &cobra.Command{Use: "reproduce [STUDY]", Short: "Run the presets of a study with several seeds, and judge what they claim",
		Long: `Run the presets of a study with several seeds, and judge what they claim: an interval or an order that the preset states
beforehand, beside the number that its source published. Without a STUDY the studies are listed.

Each run is a session, which brood verify executes again. The same command goes on where it was stopped, and skips what is done; with
more seeds it adds them.`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage("reproduce takes one STUDY, but got %q too", args[1])
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			all, err := presets.Studies()
			if err != nil {
				return err
			}
			if len(args) == 0 {
				t := newTable("study", "presets")
				for _, study := range slices.Sorted(maps.Keys(all)) {
					t.row(study, strings.Join(all[study], " "))
				}
				t.write(s.out)
				return nil
			}
			names, ok := all[args[0]]
			if !ok {
				return usage("there is no study %q: choose one of %s", args[0], strings.Join(slices.Sorted(maps.Keys(all)), ", "))
			}
			return f.execute(c, args[0], names, s)
		}}
	fl := c.Flags()
	f.batch.register(fl, 3)
	fl.BoolVar(&f.full, "full", false, "the presets in their full form, as the source has them, where they have one")
	fl.IntVar(&f.threads, "threads", 0, "threads of all runs together (default: all cores)")
	fl.StringVarP(&f.file, "output", "o", "", "write the table as Markdown")
	fl.StringVar(&f.sessions, "sessions", "", "directory for the sessions (default: one among your sessions, named for the study and its presets)")
	fl.StringArrayVar(&f.only, "preset", nil, "run this preset of the study only (repeatable)")
	fl.BoolVar(&f.plain, "plain", false, "a line for each run that ends, in place of the moving view")
	fl.BoolVar(&f.json, "json", false, "one JSON object for each run")
	return c
}

func (f *reproduceFlags) execute(c *cobra.Command, name string, names []string, s streams) error {
	if err := f.batch.check(c, f.threads, f.plain, f.json); err != nil {
		return err
	}
	for _, p := range f.only {
		if !slices.Contains(names, p) {
			return usage("--preset %s is not of the study %s: %s", p, name, strings.Join(names, ", "))
		}
	}
	if f.file != "" { // told before, and not after hours
		if err := writable(f.file); err != nil {
			return err
		}
	}
	w := &study{batch: batch{kind: "study", by: "test_error", columns: []string{"preset"}, jobs: f.batch.jobs, threads: f.threads, fleet: f.batch.fleet}, name: name, full: f.full, seeds: f.batch.seeds}
	w.table = w.soFar
	if err := w.fill(names, f.only, f.sessions, s); err != nil {
		return err
	}
	if err := w.check(c.Context(), s); err != nil {
		return err
	}
	view := newBatchView(&w.batch, f.plain, f.json, s)
	err := w.train(c.Context(), view)
	out := w.judged(w.measured())
	if !f.json {
		fmt.Fprintln(s.out)
		out.write(s.out)
	}
	if err != nil || f.file == "" {
		return err
	}
	flags := ""
	if f.full {
		flags = " --full"
	}
	text := fmt.Sprintf("## %s\n\n`brood reproduce %s%s --seeds %d`, %s\n\n%s\n", name, name, flags, f.batch.seeds, time.Now().Format(time.DateOnly), out.markdown())
	if err := os.WriteFile(f.file, []byte(text), 0o644); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	return nil
}

// writable says whether a file can be written, and leaves it as it is.
func writable(path string) error {
	_, missing := os.Stat(path)
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	if missing != nil {
		defer os.Remove(path)
	}
	return file.Close()
}

// fill finds the directory and lays the runs out: of all presets that are named, or only of some.
func (w *study) fill(names, only []string, dir string, s streams) error {
	texts, without := map[string]string{}, []error(nil)
	for _, name := range names {
		text, err := presets.Source(name)
		if err != nil {
			return err
		}
		texts[name] = fmt.Sprintf("%x", blake3.Sum256(text))
		p, err := presets.Load(name)
		if err != nil {
			return err
		}
		if len(only) > 0 && !slices.Contains(only, name) {
			continue
		}
		form := p
		if w.full {
			if form, err = p.InFull(); err != nil {
				without = append(without, err)
				continue
			}
		}
		if n := w.fleet.workers(); n > 0 && n != form.Workers && slices.ContainsFunc(p.Claims, func(c presets.Claim) bool { return strings.HasPrefix(c.Metric, "bytes") }) {
			without = append(without, fmt.Errorf("%s claims the bytes of %s: run it on this machine, or with --wait %d", name, plural(form.Workers, "worker"), form.Workers))
			continue
		}
		w.presets = append(w.presets, p)
	}
	if len(w.presets) == 0 {
		return without[0]
	}
	for _, err := range without {
		fmt.Fprintln(s.err, "brood: left out: "+err.Error())
	}
	stem := w.name
	if w.full {
		stem += "-full"
	}
	if err := w.place(dir, stem, map[string]any{"study": w.name, "full": w.full, "presets": texts}); err != nil {
		return err
	}
	for _, p := range w.presets {
		var args []string
		if w.full {
			args = []string{"--full"}
		}
		w.add(p.Name, p.Name, []string{p.Name}, args, func(seed int) string { return fmt.Sprintf("%s,seed=%d", p.Name, seed) }, w.seeds)
	}
	w.head = fmt.Sprintf("%s, %s with %s: %s", stem, plural(len(w.presets), "preset"), plural(w.seeds, "seed"), plural(len(w.trials), "run"))
	return nil
}

// measured is what was measured so far, by preset.
func (w *study) measured() map[string]*outcome {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := map[string]*outcome{}
	for trials := range slices.Chunk(w.trials, w.seeds) {
		m, done := &outcome{metrics: map[string]presets.Sample{}}, 0
		for _, t := range trials {
			if t.state != trialDone {
				continue
			}
			done++
			m.seconds += t.tally.sum.Seconds
			for name := range presets.Metrics {
				if x, ok := t.tally.metric(name); ok {
					m.metrics[name] = append(m.metrics[name], x)
				}
			}
		}
		m.seconds /= float64(max(1, done))
		out[trials[0].preset] = m
	}
	return out
}
