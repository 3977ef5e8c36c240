package cli

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"brood/presets"
	"brood/runtime/coordinator"
)

// collector is a printer that keeps what claims are about.
type collector struct {
	*tally
	log io.Writer
}

func (c *collector) note(text string)       { fmt.Fprintln(c.log, "brood: "+text) }
func (c *collector) end(x coordinator.Exit) { c.finish(x) }

// metric is what a run measured, once it is finished; ok is false where it did not.
func (t *tally) metric(name string) (x float64, ok bool) {
	sent := 0.0
	for _, n := range t.sum.BytesSent {
		sent += float64(n)
	}
	switch {
	case name == "test_error" && t.sum.TestError != nil:
		return *t.sum.TestError, true
	case name == "test_loss" && t.testLoss != nil:
		return *t.testLoss, true
	case (name == "memory" || name == "diversity") && t.means[name] != nil:
		return t.means[name].sum / t.means[name].count, true
	case name == "seconds" && t.sum.Seconds > 0:
		return t.sum.Seconds, true
	case name == "train_loss" && t.sum.TrainLoss != nil:
		return *t.sum.TrainLoss, true
	case name == "bytes" && t.sum.Rounds > 0:
		return sent, true
	case name == "bytes_per_sample" && t.sum.Samples > 0:
		return sent / float64(t.sum.Samples), true
	case name == "bytes_per_eval" && t.sum.Evaluations > 0:
		return sent / float64(t.sum.Evaluations), true
	case name == "samples_per_s":
		return t.sum.SamplesPerSecond, true
	case name == "epochs" && t.sum.Epochs > 0:
		return t.sum.Epochs, true
	case name == "centre_loss" && t.centre > 0:
		return t.centre, true
	case name == "centre_advance" && t.centre > 0 && len(t.fitness) > 0:
		mean := 0.0
		for _, f := range t.fitness {
			mean -= f / float64(len(t.fitness))
		}
		return mean - t.centre, true
	}
	return 0, false
}

// trials are the runs of one preset, a seed each.
type trials struct {
	preset  presets.Preset
	seconds float64
	metrics map[string]presets.Sample
}

func reproduceCommand(s streams) *cobra.Command {
	var seeds, threads int
	var file string
	var only []string
	c := &cobra.Command{Use: "reproduce [STUDY]", Short: "Run the presets of a study with several seeds, and judge what they claim",
		Long: "Run the presets of a study with several seeds, and judge what they claim: an interval or an order that the preset states beforehand, beside the\nnumber that its source published. Without a STUDY the studies are listed.",
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
			switch {
			case !ok:
				return usage("there is no study %q: choose one of %s", args[0], strings.Join(slices.Sorted(maps.Keys(all)), ", "))
			case seeds < 1:
				return usage("--seeds %d: give 1 or more", seeds)
			}
			for _, name := range only {
				if !slices.Contains(names, name) {
					return usage("--preset %s is not of the study %s: %s", name, args[0], strings.Join(names, ", "))
				}
			}
			if len(only) > 0 {
				names = only
			}
			measured := map[string]*trials{}
			for _, name := range names {
				t, err := repeat(c, name, seeds, threads, s)
				if err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
				measured[name] = t
			}
			out := judged(names, measured)
			out.write(s.out)
			if file == "" {
				return nil
			}
			text := fmt.Sprintf("## %s\n\n`brood reproduce %s --seeds %d`, %s\n\n%s\n", args[0], args[0], seeds, time.Now().Format(time.DateOnly), out.markdown())
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				return fmt.Errorf("write the table: %w", err)
			}
			return nil
		}}
	c.Flags().IntVar(&seeds, "seeds", 3, "runs of each preset, with seeds 1, 2, ...")
	c.Flags().IntVar(&threads, "threads", 0, "threads of all workers together (default: all cores)")
	c.Flags().StringVarP(&file, "output", "o", "", "write the table as Markdown")
	c.Flags().StringArrayVar(&only, "preset", nil, "run this preset of the study only (repeatable)")
	return c
}

// repeat runs a preset with seeds 1 to n, each a session that verify can execute again.
func repeat(c *cobra.Command, name string, n, threads int, s streams) (*trials, error) {
	p, err := presets.Load(name)
	if err != nil {
		return nil, err
	}
	t := &trials{preset: p, metrics: map[string]presets.Sample{}}
	for seed := 1; seed <= n; seed++ {
		f, flags := &runFlags{}, &cobra.Command{}
		f.register(flags)
		for flag, value := range map[string]int{"seed": seed, "threads": threads} {
			if value > 0 {
				if err := flags.Flags().Set(flag, strconv.Itoa(value)); err != nil {
					return nil, err
				}
			}
		}
		r, err := f.prepare(c.Context(), flags, name)
		if err != nil {
			return nil, err
		}
		out := &collector{tally: newTally(), log: s.err}
		out.begin(r)
		fmt.Fprintf(s.err, "brood: %s, seed %d of %d: about %.0f s\n", name, seed, n, r.job.Config.Seconds)
		if err := train(c.Context(), r, out, patience); err != nil {
			return nil, fmt.Errorf("seed %d: %w; the session is %s", seed, err, filepath.Base(r.sess.Dir()))
		}
		t.seconds += out.sum.Seconds / float64(n)
		for metric := range presets.Metrics {
			if x, ok := out.metric(metric); ok {
				t.metrics[metric] = append(t.metrics[metric], x)
			}
		}
	}
	return t, nil
}

// judged is the table of all claims of these presets.
func judged(names []string, measured map[string]*trials) *table {
	out := newTable("preset", "source", "metric", ">published", ">measured", ">± s.e.", ">seeds", ">time", "stated beforehand", "verdict")
	for _, name := range names {
		t := measured[name]
		for _, c := range t.preset.Claims {
			published := "–"
			if c.Published != nil {
				published = fmt.Sprintf("%g", *c.Published)
			}
			x, others := t.metrics[c.Metric], map[string]presets.Sample{}
			missing := len(x) == 0
			for _, other := range c.Others() {
				if m := measured[other]; m != nil {
					others[other] = m.metrics[c.Metric]
				}
				missing = missing || len(others[other]) == 0
			}
			value, se, verdict := "–", "–", "not measured"
			if !missing {
				v, e := c.Measured(x, others)
				value, verdict = fmt.Sprintf("%.4g", v), string(c.Judge(x, others))
				if e == e {
					se = fmt.Sprintf("%.2g", e)
				}
			}
			metric := c.Metric + " " + presets.Metrics[c.Metric]
			switch {
			case c.Slope != nil:
				metric = "slope of " + c.Metric
			case c.Ratio != nil:
				metric = "ratio of " + c.Metric
			}
			out.row(name, c.Source, metric, published, value, se, fmt.Sprint(len(x)), fmt.Sprintf("%.0f s", t.seconds), c.States(), verdict)
		}
	}
	return out
}

// markdown is the table for a document.
func (t *table) markdown() string {
	var b strings.Builder
	line := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	line(t.rows[0])
	rule := make([]string, len(t.right))
	for i, right := range t.right {
		if rule[i] = "---"; right {
			rule[i] = "---:"
		}
	}
	line(rule)
	for _, r := range t.rows[1:] {
		line(r)
	}
	return b.String()
}

// claimed prints a preset's claims beside what its run measured. What a claim states is of the short form; the published
// number is of the full one.
func claimed(w io.Writer, preset string, metric func(string) (float64, bool)) {
	p, full, err := presets.Recorded(preset)
	if err != nil || !slices.Contains(presets.List(), p.Name) {
		return // a person's own, or another version's
	}
	for _, c := range p.Claims {
		x, ok := metric(c.Metric)
		if !ok || c.Slope != nil {
			continue
		}
		text := fmt.Sprintf("measured %.4g %s", x, presets.Metrics[c.Metric])
		if c.Published != nil && c.Ratio == nil {
			text += fmt.Sprintf(", published %g, difference %+.3g", *c.Published, x-*c.Published)
		}
		if !full {
			text += "; stated " + c.States()
		}
		fmt.Fprintf(w, "  claim        %s: %s (%s)\n", c.Metric, text, c.Source)
	}
	if len(p.Claims) > 0 {
		fmt.Fprintf(w, "               several seeds judge it: brood reproduce %s\n", p.Study)
	}
}
