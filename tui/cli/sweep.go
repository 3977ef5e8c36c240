package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/zeebo/blake3"

	"brood/presets"
	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/session"
)

// sweep is a grid of runs, each a session of its own in one directory. What it has measured is read from their logs alone: the same
// command goes on where it was stopped, and several processes that share the directory share the work, since each
// run is claimed by who trains it.
type sweep struct {
	preset string
	base   *cobra.Command // the flags that all runs share
	axes   []presets.Axis
	by     string
	jobs   int
	seeds  int
	dir    string
	same   []byte // what a new directory says of the runs in it

	mu     sync.Mutex
	trials []*trial // the seeds of a point side by side
}

// trial is one run of the grid.
type trial struct {
	point   presets.Point
	seed    int
	dir     string // of its session
	claim   string // locked by the process that is at it
	limit   event.Limit
	seconds float64 // estimated

	state trialState
	tally *tally // what it measured, or has measured so far

	failed error // why it could not be run
}

type trialState int

const (
	trialWaits     trialState = iota
	trialRuns                 // this process is at it
	trialElsewhere            // another process trains it
	trialDone
	trialDiverged // a block was not finite: it is not tried again
	trialFailed   // it could not be run, by this process or now
)

// over says that nothing is left to do.
func (t *trial) over() bool { return t.state == trialDone || t.state == trialDiverged }

// aside are the settings that an axis may vary beside knobs: flags of run.
var aside = []string{"algorithm", "model", "data", "members", "workers", "epochs", "rounds"}

type sweepFlags struct {
	run         runFlags
	seeds, jobs int
	by, dir     string
}

func sweepCommand(s streams) *cobra.Command {
	f := &sweepFlags{}
	c := &cobra.Command{
		Use:   "sweep [PRESET|FILE.toml] --set NAME=VALUES ...",
		Short: "Run a grid of settings with several seeds, and sort them by what they reach",
		Long: `Run a grid of settings with several seeds, and sort them by what they reach.

  brood sweep quickstart --set eta=0.01,0.1 --set members=1..8 --seeds 3

VALUES are a list, whole numbers FROM..TO, numbers FROM..TO*FACTOR, or one schedule; a name that is given again adds values. NAME is a knob,
or one of ` + strings.Join(aside, ", ") + `.

Each run is a session in one directory, which brood verify executes again. The same command goes on where it was stopped, and skips what is
done; more values or seeds are added to what is there. On a cluster, start it once on each machine with the same -o DIR on a
disk that they share: each takes the runs that nobody has taken.`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage("sweep takes one preset, but got %q too", args[1])
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return f.execute(c, strings.Join(args, ""), s) },
	}
	f.run.register(c)
	fl := c.Flags()
	for _, name := range []string{"background", "session", "resume", "seed", "ascii"} {
		_ = fl.MarkHidden(name)
	}
	fl.Lookup("set").Usage = "values of a setting: NAME=VALUES (repeatable)"
	fl.Lookup("plain").Usage = "a line for each run that ends, in place of the moving view"
	fl.Lookup("json").Usage = "one JSON object for each run"
	fl.IntVar(&f.seeds, "seeds", 1, "runs of each setting, with seeds 1, 2, ...")
	fl.IntVar(&f.jobs, "jobs", 1, "runs at a time; they share the threads")
	fl.StringVar(&f.by, "by", "", "sort by this metric (default: test_error; with a target: epochs): "+strings.Join(presets.MetricNames(), ", "))
	fl.StringVarP(&f.dir, "output", "o", "", "directory for the sessions (default: one among your sessions, named for the preset and what the runs share)")
	return c
}

func (f *sweepFlags) execute(c *cobra.Command, preset string, s streams) error {
	given := c.Flags().Changed
	for _, name := range []string{"background", "session", "resume", "seed"} {
		if given(name) {
			return usage("--%s is for a single run: leave it out; a sweep has --seeds and -o DIR", name)
		}
	}
	switch {
	case given("for"):
		return usage("--for compares machines rather than settings: give --epochs or --rounds")
	case given("target") && !given("epochs") && !given("rounds"):
		return usage("--target may never be met: give --epochs or --rounds too, where a run ends without it")
	case f.run.members == host.Auto:
		return usage("--members auto differs from machine to machine: give a number")
	case given("threads") && f.run.threads < 1:
		return usage("--threads %d: give 1 or more", f.run.threads)
	case f.seeds < 1 || f.seeds > 1000:
		return usage("--seeds %d: give 1 to 1000", f.seeds)
	case f.jobs < 1 || f.jobs > 1024:
		return usage("--jobs %d: give 1 to 1024", f.jobs)
	case f.run.plain && f.run.json:
		return usage("--plain and --json are two ways to print the same runs: give one of them")
	case f.by != "" && presets.Metrics[f.by] == "":
		return usage("--by %s: choose one of %s", f.by, strings.Join(presets.MetricNames(), ", "))
	}
	w := &sweep{preset: preset, base: c, by: f.by, jobs: f.jobs, seeds: f.seeds}
	var err error
	if w.axes, err = presets.ParseAxes(f.run.set); err != nil {
		return usage("--set %w", err)
	}
	for _, a := range w.axes {
		if a.Name == "seed" || a.Name == "seeds" {
			return usage("--set %s: the seeds of a sweep are 1 to --seeds", a.Name)
		}
		if a.Name == "members" && slices.Contains(a.Values, "auto") {
			return usage("--set members=auto differs from machine to machine: give numbers")
		}
	}
	if w.preset == "" && f.run.algorithm == "" && f.run.model == "" && f.run.data == "" {
		w.preset = presets.Default
	}
	if w.by == "" {
		w.by = "test_error"
	}
	if err := w.place(f.dir); err != nil {
		return err
	}
	for _, p := range presets.Points(w.axes) {
		for seed := 1; seed <= f.seeds; seed++ {
			name := w.name(p, seed)
			w.trials = append(w.trials, &trial{point: p, seed: seed, dir: filepath.Join(w.dir, name), claim: filepath.Join(w.dir, ".claims", name)})
		}
	}
	if err := w.check(c.Context(), f, s); err != nil {
		return err
	}
	if err := w.keep(); err != nil {
		return err
	}
	return w.work(c.Context(), newSweepView(w, f, s))
}

// place finds the directory, and refuses one that holds runs of another kind.
func (w *sweep) place(dir string) error {
	shared := w.shared()
	slices.Sort(shared)
	var names []string
	for _, a := range w.axes {
		names = append(names, a.Name)
	}
	var text []byte
	if w.preset != "" {
		var err error
		if text, err = presets.Source(w.preset); err != nil {
			return err
		}
	}
	same, err := json.MarshalIndent(map[string]any{"preset": w.preset, "flags": shared, "settings": names, "text": fmt.Sprintf("%x", blake3.Sum256(text))}, "", "  ")
	if err != nil {
		return err
	}
	if dir == "" {
		home, err := session.Home()
		if err != nil {
			return err
		}
		stem := strings.TrimSuffix(filepath.Base(w.preset), ".toml")
		if w.preset == "" {
			stem = "run"
		}
		sum := blake3.Sum256(same)
		dir = filepath.Join(home, fmt.Sprintf("sweep-%s-%x", stem, sum[:3]))
	}
	if w.dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	path := filepath.Join(w.dir, "sweep.json")
	old, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		entries, _ := os.ReadDir(w.dir)
		if slices.ContainsFunc(entries, func(e os.DirEntry) bool { return !strings.HasPrefix(e.Name(), ".sweep-") }) {
			return fmt.Errorf("%s holds other things than a sweep: name another directory with -o", w.dir)
		}
	case err != nil:
		return err
	case !bytes.Equal(old, append(same, '\n')):
		return fmt.Errorf("%s holds a sweep of other settings (see %s): name another directory with -o", w.dir, path)
	default:
		return nil
	}
	w.same = append(same, '\n')
	return nil
}

// keep makes the directory, where it is new, and says in it what the runs share.
func (w *sweep) keep() error {
	if w.same == nil {
		return nil
	}
	if err := os.MkdirAll(w.dir, 0o700); err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	f, err := os.CreateTemp(w.dir, ".sweep-*") // others may start at the same time
	if err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	_, err = f.Write(w.same)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), filepath.Join(w.dir, "sweep.json"))
	}
	return err
}

// name is a run's directory: its settings and its seed, without what a file system does not like.
func (w *sweep) name(p presets.Point, seed int) string {
	var parts []string
	for i, a := range w.axes {
		parts = append(parts, a.Name+"="+p[i])
	}
	text := strings.Join(append(parts, "seed="+strconv.Itoa(seed)), ",")
	plain := strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\:*?"<>| `, r) || r < ' ' {
			return '_'
		}
		return r
	}, text)
	if plain != text || len(plain) > 200 {
		sum := blake3.Sum256([]byte(text))
		plain = fmt.Sprintf("%.180s~%x", plain, sum[:8])
	}
	return plain
}

// shared are the flags that every run has, and that make it what it is.
func (w *sweep) shared() []string {
	return passOn(w.base, "set", "seeds", "jobs", "by", "output", "plain", "json", "ascii", "threads")
}

// flags are the flags of one run.
func (w *sweep) flags(t *trial, threads int) (*runFlags, *cobra.Command, error) {
	f, c := &runFlags{}, &cobra.Command{Use: "run"}
	f.register(c)
	args := append(w.shared(), "--seed", strconv.Itoa(t.seed))
	if threads > 0 {
		args = append(args, "--threads", strconv.Itoa(threads))
	}
	for i, a := range w.axes {
		if slices.Contains(aside, a.Name) {
			args = append(args, "--"+a.Name, t.point[i])
		} else {
			args = append(args, "--set", a.Name+"="+t.point[i])
		}
	}
	if err := c.ParseFlags(args); err != nil {
		return nil, nil, usage("%w", err)
	}
	return f, c, nil
}

func (w *sweep) show(p presets.Point) string {
	var out []string
	for i, a := range w.axes {
		out = append(out, a.Name+"="+p[i])
	}
	return cmp.Or(strings.Join(out, " "), w.title())
}

// job is what a run of a setting would be.
func (w *sweep) job(p presets.Point, threads int) (*host.Job, error) {
	f, c, err := w.flags(&trial{point: p, seed: 1}, threads)
	if err != nil {
		return nil, err
	}
	o, err := f.options(c, w.preset)
	if err != nil {
		return nil, err
	}
	return host.Prepare(o)
}

// check prepares a run of each setting, so that what cannot be run is refused before anything has run.
func (w *sweep) check(ctx context.Context, f *sweepFlags, s streams) error {
	told, memory := time.Now(), host.Memory()
	points, most := presets.Points(w.axes), int64(0)
	for i, p := range points {
		if time.Since(told) > time.Second {
			told = time.Now()
			fmt.Fprintf(s.err, "brood: checked %d of %d settings\n", i, len(points))
		}
		j, err := w.job(p, f.run.threads)
		if err != nil {
			status := exitFailed
			if e, ok := errors.AsType[*exitError](err); ok {
				status = e.code
			}
			return &exitError{code: status, err: fmt.Errorf("%s: %w", w.show(p), err)}
		}
		if j.Limit.Target != "" && f.by == "" {
			w.by = "epochs"
		}
		for _, t := range w.trials[i*w.seeds : (i+1)*w.seeds] {
			t.seconds, t.limit = j.Config.Seconds, j.Limit
		}
		if most = max(most, j.Config.Memory); memory > 0 && int64(w.jobs)*most > memory {
			return fmt.Errorf("%d runs at a time may need %s of memory, and this machine has %s: give fewer --jobs", w.jobs, humanBytes(int64(w.jobs)*most), humanBytes(memory))
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}
