package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/zeebo/blake3"

	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/session"
)

// batch is a set of runs, each a session of its own in one directory: the grid of a sweep, or the presets of a study. What it has
// measured is read from their logs alone: the same command goes on where it was stopped, and several processes that share the
// directory share the work, since each run is claimed by who trains it.
type batch struct {
	kind    string   // what its directory is called: sweep or study
	head    string   // what it is, on one line
	columns []string // what its runs differ in, besides the seed
	by      string   // the metric that a run is told by
	jobs    int      // runs at a time
	threads int      // of all of them together; 0: all cores
	fleet   batchFleet
	dir     string
	bare    bool // its runs train no model
	begun   bool // what there is to tell may be told

	interrupted int                   // exit status of the signal that ended it; 0: none
	same        []byte                // what a new directory says of the runs in it
	table       func(rows int) *table // of what is measured, for a moving view: no more than so many rows

	mu     sync.Mutex
	trials []*trial
}

// trial is one run of a batch.
type trial struct {
	point   []string // a value for each column
	label   string   // the same for a person
	seed    int
	preset  string
	args    []string // flags of `brood run`, without threads and session
	dir     string   // of its session
	claim   string   // locked by the process that is at it
	limit   event.Limit
	seconds float64 // estimated

	state trialState
	tally *tally // what it measured, or has measured so far

	failed error // why it could not be run
}

// batchFlags are the flags that sweep and reproduce share, besides those of the run.
type batchFlags struct {
	seeds, jobs int
	fleet       batchFleet
}

func (f *batchFlags) register(fl *pflag.FlagSet, seeds int) {
	fl.IntVar(&f.seeds, "seeds", seeds, "runs of each setting, with seeds 1, 2, ...")
	fl.IntVar(&f.jobs, "jobs", 1, "runs at a time; they share the threads, so that times are no measure")
	f.fleet.register(fl)
}

func (f *batchFlags) check(c *cobra.Command, threads int, plain, json bool) error {
	switch {
	case f.seeds < 1 || f.seeds > 1000:
		return usage("--seeds %d: give 1 to 1000", f.seeds)
	case f.jobs < 1 || f.jobs > 1024:
		return usage("--jobs %d: give 1 to 1024", f.jobs)
	case c.Flags().Changed("threads") && threads < 1:
		return usage("--threads %d: give 1 or more", threads)
	case plain && json:
		return usage("--plain and --json are two ways to print the same runs: give one of them")
	}
	return f.fleet.check(c, f.jobs)
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
func (s trialState) over() bool { return s == trialDone || s == trialDiverged }

func (t *trial) over() bool { return t.state.over() }

func (t *trial) String() string { return fmt.Sprintf("%s seed %d", t.label, t.seed) }

// add puts the runs of one setting into the batch, with seeds 1 to seeds. A point has a value for each column.
func (b *batch) add(preset, label string, point, args []string, name func(seed int) string, seeds int) {
	for seed := 1; seed <= seeds; seed++ {
		b.trials = append(b.trials, &trial{point: point, label: label, seed: seed, preset: preset, args: append(slices.Clone(args), "--seed", strconv.Itoa(seed)),
			dir: filepath.Join(b.dir, name(seed)), claim: filepath.Join(b.dir, ".claims", name(seed))})
	}
}

// plainName is text without what a file system does not like.
func plainName(text string) string {
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

// place finds the directory, and refuses one that holds runs of another kind. It is dir, or one among a person's sessions that is
// named for stem and for same: what all runs of it have in common.
func (b *batch) place(dir, stem string, same map[string]any) error {
	text, err := json.MarshalIndent(same, "", "  ")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	if dir == "" {
		home, err := session.Home()
		if err != nil {
			return err
		}
		sum := blake3.Sum256(text)
		dir = filepath.Join(home, fmt.Sprintf("%s-%s-%x", b.kind, stem, sum[:3]))
	}
	if b.dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	path := filepath.Join(b.dir, b.kind+".json")
	old, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		entries, _ := os.ReadDir(b.dir)
		if slices.ContainsFunc(entries, func(e os.DirEntry) bool { return !strings.HasPrefix(e.Name(), newBatch) }) {
			return fmt.Errorf("%s holds other things than a %s: name another directory", b.dir, b.kind)
		}
	case err != nil:
		return err
	case !bytes.Equal(old, text):
		return fmt.Errorf("%s holds a %s of other settings (see %s): name another directory", b.dir, b.kind, path)
	default:
		return nil
	}
	b.same = text
	return nil
}

// newBatch begins the names of files that several processes may make at the same time.
const newBatch = ".batch-"

// keep makes the directory, where it is new, and says in it what the runs share.
func (b *batch) keep() error {
	if b.same == nil {
		return nil
	}
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		return fmt.Errorf("%s: %w", b.kind, err)
	}
	return b.write(b.kind+".json", b.same)
}

// write makes a file of the directory, whole or not at all.
func (b *batch) write(name string, text []byte) error {
	f, err := os.CreateTemp(b.dir, newBatch+"*")
	if err != nil {
		return fmt.Errorf("%s: %w", b.kind, err)
	}
	defer os.Remove(f.Name()) // where it was not renamed
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), filepath.Join(b.dir, name))
	}
	return err
}

// flags are those of one run.
func (b *batch) flags(args ...string) (*runFlags, *cobra.Command, error) {
	f, c := &runFlags{}, &cobra.Command{Use: "run"}
	f.register(c)
	if err := c.ParseFlags(append(args, "--threads", strconv.Itoa(b.share()))); err != nil {
		return nil, nil, usage("%w", err)
	}
	f.wait = b.fleet.workers()
	f.serves = f.wait > 0
	return f, c, nil
}

// share is the threads of one run.
func (b *batch) share() int {
	threads := b.threads
	if threads == 0 {
		threads = goruntime.NumCPU()
	}
	return max(1, threads/b.jobs)
}

// check prepares a run of each setting that has something left to do, so that what cannot be run is refused before anything has run.
func (b *batch) check(ctx context.Context, s streams) error {
	told, memory, most := time.Now(), host.Memory(), int64(0)
	for i, t := range b.trials {
		if i > 0 && b.trials[i-1].label == t.label { // another seed
			t.seconds, t.limit = b.trials[i-1].seconds, b.trials[i-1].limit
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if time.Since(told) > time.Second {
			told = time.Now()
			fmt.Fprintf(s.err, "brood: checked %d of %s\n", i, plural(len(b.trials), "run"))
		}
		if c := b.settled(i); c != nil {
			t.seconds, t.limit, b.bare = c.Seconds, c.Limit, c.Data == ""
			continue
		}
		j, err := b.job(t)
		if err != nil {
			return labelled(t, err)
		}
		t.seconds, t.limit, b.bare = j.Config.Seconds, j.Limit, j.Config.Data == ""
		if most = max(most, j.Config.Memory); b.fleet.workers() == 0 && memory > 0 && int64(b.jobs)*most > memory {
			return fmt.Errorf("%d runs at a time may need %s of memory, and this machine has %s: give fewer --jobs", b.jobs, humanBytes(int64(b.jobs)*most), humanBytes(memory))
		}
	}
	return nil
}

// settled is the configuration that the log of trial i holds, where all runs of its setting are over; else nil.
func (b *batch) settled(i int) *event.Config {
	var config *event.Config
	for _, t := range b.trials[i:] {
		if t.label != b.trials[i].label {
			break
		}
		state, out, err := t.look()
		if err != nil || !state.over() {
			return nil
		}
		t.state, t.tally = state, out
		config = &out.config
	}
	return config
}

// job is what a trial would run.
func (b *batch) job(t *trial) (*host.Job, error) {
	f, c, err := b.flags(t.args...)
	if err != nil {
		return nil, err
	}
	o, err := f.options(c, t.preset)
	if err != nil {
		return nil, err
	}
	return host.Prepare(o)
}

// labelled is an error of a setting.
func labelled(t *trial, err error) error { return fmt.Errorf("%s: %w", t.label, err) }

// prepare goes on with the session of a trial, or makes it anew.
func (b *batch) prepare(ctx context.Context, t *trial, begun bool) (prepared, error) {
	preset, args := t.preset, t.args
	if begun { // its log holds its settings
		preset, args = "", []string{"--resume", t.dir}
	} else if err := os.RemoveAll(t.dir); err != nil {
		return prepared{}, err
	}
	f, c, err := b.flags(args...)
	if err != nil {
		return prepared{}, err
	}
	if !begun {
		f.session = t.dir
	}
	p, err := f.prepare(ctx, c, preset)
	if f.serves {
		p.open = b.fleet.serve
	}
	return p, err
}
