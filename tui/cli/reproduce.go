package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/zeebo/blake3"

	"brood/models/usererr"
	"brood/presets"
	"brood/runtime/option"
	"brood/runtime/sweep"
	"brood/tui/textfmt"
)

// study is a batch: the presets of one source, each with several seeds.
type study struct {
	runs
	name    string
	full    bool
	presets []presets.Preset
	seeds   []int
}

type reproduceFlags struct {
	batch             batchFlags
	opts              option.Options // from the flags of the option table
	full, plain, json bool
	results, sessions string
	only              []string
}

func reproduceCommand(s streams) *cobra.Command {
	f := &reproduceFlags{}
	c := &cobra.Command{
		Use:   "reproduce [STUDY|FILE.toml|all]",
		Short: "Run the presets of a study with several seeds, and judge their claims",
		Long: `Run the presets of a study with several seeds, and judge their claims: intervals and orders that a preset
states beforehand, together with the number that its source published. all runs every study in sequence, and so does any
flag except --json without a STUDY; brood reproduce alone lists the studies. FILE.toml is your own preset; it runs with
the presets that its claims name.

  brood reproduce parle --seeds 3

Presets are compared in pairs of equal seeds. A bound or a wide margin that the source does not state is a check, not a
claim. Run pilots with other seeds than the judged runs: --seeds 3 --first-seed 101.

Each run is a session, which brood verify can recompute. The same command resumes where it was stopped and skips
completed runs; with more seeds it adds runs.`,
		Args: atMostOne("STUDY"),
		RunE: func(c *cobra.Command, args []string) error { return f.run(c, strings.Join(args, ""), s) },
	}
	fl := c.Flags()
	f.batch.register(c, 3)
	fl.BoolVar(&f.full, "full", false, "the full form of the presets that have one, as published")
	optionFlags(c, &f.opts, option.Threads)
	fl.StringVar(&f.results, "results", "",
		"also write the runs of each study to this directory, as STUDY.csv with a row each")
	fl.StringVar(&f.sessions, "sessions", "",
		"directory for the sessions (default: one in your sessions directory, named after the study and its presets)")
	fl.StringArrayVar(&f.only, "preset", nil, "run this preset of the study only (repeatable)")
	fl.BoolVar(&f.plain, "plain", false, "a line for each run that ends, instead of the live view")
	fl.BoolVar(&f.json, "json", false, "one JSON object for each run, and for each claim")
	return c
}

// run runs a study, your own preset (a .toml file) or, for all and for "" with a flag, every study. Without a study and
// flags it lists the studies.
func (f *reproduceFlags) run(c *cobra.Command, study string, s streams) error {
	all, err := presets.Studies()
	if err != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(all))
	if n := c.Flags().NFlag(); study == "" && (n == 0 || n == 1 && f.json) {
		return listStudies(all, names, f.json, s)
	}
	if err := f.batch.check(c, f.opts, f.plain, f.json); err != nil {
		return err
	}
	if err := f.checkResults(); err != nil {
		return err
	}
	switch {
	case study == "" || study == "all":
		return f.everything(c, all, names, s)
	case strings.HasSuffix(study, ".toml"):
		if all[study], err = presets.Own(study); err != nil {
			return err
		}
	case all[study] == nil:
		return usage("no study %q%s: choose all, or one of %s", study, usererr.Suggest(study, names),
			strings.Join(names, ", "))
	}
	w, err := f.prepare(c.Context(), study, all[study], s)
	if err != nil {
		return err
	}
	return f.execute(c.Context(), w, s)
}

// checkResults fails if the directory of --results cannot be made, before hours of training instead of after.
func (f *reproduceFlags) checkResults() error {
	if f.results == "" {
		return nil
	}
	if f.full || len(f.only) > 0 {
		return usage("--results needs whole studies in their short form: leave --full and --preset out")
	}
	if err := os.MkdirAll(f.results, 0o755); err != nil {
		return fmt.Errorf("--results: %w", err)
	}
	return nil
}

func listStudies(all map[string][]string, names []string, asJSON bool, s streams) error {
	t := newTable("study", ">presets", "source")
	for _, study := range names {
		source := ""
		for _, name := range all[study] {
			p, err := presets.Load(name)
			if err != nil {
				return err
			}
			if work, _, ok := strings.Cut(p.Paper, ")"); ok && source == "" {
				source = work + ")" // without table and section, which differ between presets
			}
		}
		if asJSON {
			if err := objects(s.out, map[string]any{"study": study, "presets": all[study],
				"source": cmp.Or(source, "our own")}); err != nil {
				return err
			}
		}
		t.row(study, strconv.Itoa(len(all[study])), cmp.Or(source, "our own"))
	}
	if asJSON {
		return nil
	}
	t.write(s.out)
	fmt.Fprintln(s.out, "\nrun one: brood reproduce STUDY --seeds 3; all of them: brood reproduce all; their presets: "+
		"brood presets")
	return nil
}

// everything runs all studies in sequence, each in the directory that it has when run alone. It validates all of them
// before the first run. A failed run does not stop the others.
func (f *reproduceFlags) everything(c *cobra.Command, all map[string][]string, names []string, s streams) error {
	given := c.Flags().Changed
	switch {
	case given("preset"):
		return usage("--preset needs a STUDY, of which it selects a preset")
	case given("listen"):
		return usage("--listen needs a STUDY: its workers train one study")
	}
	var studies []*study
	for _, name := range names {
		one := *f
		if f.sessions != "" {
			one.sessions = filepath.Join(f.sessions, name)
		}
		w, err := one.prepare(c.Context(), name, all[name], s)
		if _, ok := errors.AsType[skippedError](err); ok {
			fmt.Fprintln(s.err, "brood: skipped: "+err.Error())
			continue
		}
		if err != nil {
			return err
		}
		studies = append(studies, w)
	}
	var done []*study
	var failed error
	for i, w := range studies {
		if !f.json {
			fmt.Fprintf(s.out, "\nstudy %d of %d: %s\n", i+1, len(studies), w.name)
		}
		err := f.execute(c.Context(), w, s)
		if w.interrupted != 0 {
			return &exitError{code: w.interrupted, err: errInterrupted}
		}
		if err != nil {
			fmt.Fprintf(s.err, "brood: %s: %v\n", w.name, err)
			failed = errors.New("some studies failed; run the same command again to retry them")
			continue
		}
		done = append(done, w)
	}
	if !f.json && !f.full && len(done) > 0 { // claims apply to short forms only
		counts := newTally()
		for _, w := range done {
			counts.add(w.name, w.judgements(w.measured()))
		}
		fmt.Fprintln(s.out)
		counts.withTotal().write(s.out)
		fmt.Fprintln(s.out, "\n"+counts.adjusted())
	}
	return failed
}

// prepare builds and validates a study without running it.
func (f *reproduceFlags) prepare(ctx context.Context, name string, names []string, s streams) (*study, error) {
	for _, p := range f.only {
		if !slices.Contains(names, p) {
			return nil, usage("--preset %s: the study %s has no such preset%s: choose one of %s", p, name,
				usererr.Suggest(p, names),
				strings.Join(names, ", "))
		}
	}
	w := &study{runs: newRuns("study", f.batch, f.opts), name: name, full: f.full, seeds: f.batch.seeds.all()}
	w.Columns, w.table = []string{"preset"}, w.progressTable
	if err := w.fill(names, f.only, f.sessions, s); err != nil {
		return nil, err
	}
	return w, w.check(ctx, s)
}

// execute runs a study, prints its results and writes the file of --results.
func (f *reproduceFlags) execute(ctx context.Context, w *study, s streams) error {
	err := w.train(ctx, newBatchView(&w.runs, f.plain, f.json, s))
	out := w.claimTable(w.judgements(w.measured()))
	switch {
	case w.begun && f.json:
		w.writeJSON(s.out, w.measured())
	case w.begun:
		fmt.Fprintln(s.out)
		out.write(s.out)
	}
	if err != nil || f.results == "" {
		return err
	}
	file := filepath.Join(f.results, strings.TrimSuffix(filepath.Base(w.name), ".toml")+".csv")
	if err := os.WriteFile(file, w.Rows(), 0o644); err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	return nil
}

// skippedError is the reason why no preset of a study can run.
type skippedError struct{ error }

func (e skippedError) Unwrap() error { return e.error }

// fill chooses the directory and adds the runs of the named presets, or only of some of them.
func (w *study) fill(names, only []string, dir string, s streams) error {
	texts, forms, skipped := map[string]string{}, []presets.Preset(nil), []error(nil)
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
				skipped = append(skipped, err)
				continue
			}
		}
		if n := w.Wait; n > 0 && n != form.Options.Workers &&
			slices.ContainsFunc(p.Claims, func(c presets.Claim) bool { return strings.HasPrefix(c.Metric, "bytes") }) {
			skipped = append(skipped, fmt.Errorf("%s claims the bytes of %s: run it on this machine, or with --wait "+
				"%d", name,
				textfmt.Count(form.Options.Workers, "worker"), form.Options.Workers))
			continue
		}
		w.presets, forms = append(w.presets, p), append(forms, form)
	}
	if len(w.presets) == 0 {
		return skippedError{skipped[0]}
	}
	for _, err := range skipped {
		fmt.Fprintln(s.err, "brood: skipped: "+err.Error())
	}
	stem := strings.TrimSuffix(filepath.Base(w.name), ".toml")
	if w.full {
		stem += "-full"
	}
	if err := w.Place(dir, stem, map[string]any{"study": w.name, "full": w.full, "presets": texts}); err != nil {
		return err
	}
	for i, p := range w.presets {
		o, err := runFlags{}.trial(forms[i], func(string) bool { return false }, nil)
		if err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
		w.Add([]string{p.Name}, p.Name, o,
			func(seed int) string { return sweep.PlainName(fmt.Sprintf("%s,seed=%d", p.Name, seed)) }, w.seeds)
	}
	w.head = fmt.Sprintf("%s, %s with %s: %s", stem, textfmt.Count(len(w.presets), "preset"),
		textfmt.Count(len(w.seeds), "seed"), textfmt.Count(len(w.Trials), "run"))
	return nil
}

// measured returns the results so far, by preset.
func (w *study) measured() map[string]sweep.Result {
	out := map[string]sweep.Result{}
	for _, r := range w.Results(w.Metrics...) {
		out[r.Point[0]] = r
	}
	return out
}
