// Package sweep executes a batch of runs, each a session in one directory: the grid of a sweep, or the presets of a
// study with several seeds. A [Trial] holds the initial options of a run. Its results are read only from its log, so
// that a stopped batch can continue. Several processes may share the directory and the work: the process that trains a
// run holds a lock for it.
//
//	b := &sweep.Batch{Kind: "sweep", Columns: []string{"eta"}, Jobs: 1}
//	err := b.Place("grid", "quickstart", shared)       // fails for a directory of other runs
//	b.Add(point, "eta=0.1", options, name, []int{1, 2}) // with seeds 1 and 2
//	err = b.Check(ctx, progress)                       // validates all runs before the first one
//	err = b.Create()                                   // creates the directory
//	err = b.ReadStates()                               // finds the finished runs
//	err = b.Run(ctx, train, done)                      // trains the others
//
// It has no flags, signals or presets; the caller passes values and prints results. It imports packages of runtime,
// models and optim.
package sweep

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
	"strings"
	"sync"
	"time"

	"github.com/zeebo/blake3"

	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/session"
)

// Batch is a set of runs. Set the exported fields before Place; afterwards only Dir, Bare and the trials change, see
// [Trial].
type Batch struct {
	Kind    string   // sweep, study, judge or scaling: prefix of the default directory and name of its JSON file
	Columns []string // names of the settings that differ between the runs, except the seed
	Metrics []string // metrics in [Batch.Rows], in this order
	Jobs    int      // concurrent runs; 1 or more
	Threads int      // threads of all concurrent runs together; 0: all cores
	Wait    int      // remote workers of each run; 0: this process trains it
	Halving Halving  // zero: all runs train to their limit

	Dir    string // absolute; set by Place
	Bare   bool   // the runs train no model; set by Check
	Trials []*Trial

	same []byte     // content of the JSON file that Create writes; nil if the directory has it
	mu   sync.Mutex // guards the states of the trials
}

// Add adds the runs of one setting to the batch, with these seeds. o holds the initial options except the seed,
// point a value for each column, and label the same as text. name returns the session directory of a seed.
func (b *Batch) Add(point []string, label string, o host.Options, name func(seed int) string, seeds []int) {
	for _, seed := range seeds {
		o.Seed = uint64(seed)
		b.Trials = append(b.Trials, &Trial{Point: point, Label: label, Seed: seed, Options: o,
			Dir: filepath.Join(b.Dir, name(seed)), claim: filepath.Join(b.Dir, ".claims", name(seed))})
	}
}

// PlainName returns text as a file name: characters that file systems reject are replaced by underscores. If the name
// differs from text or is too long, a hash of text is appended.
func PlainName(text string) string {
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

// Place sets the directory and fails if it contains something else than this batch. It is dir or, if that is empty, a
// directory in the home of sessions whose name contains stem and a hash of same. same describes the settings that all
// runs of the batch share; it is recorded in the directory as JSON.
func (b *Batch) Place(dir, stem string, same map[string]any) error {
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
		dir = filepath.Join(home, fmt.Sprintf("%s-%s-%x", b.Kind, stem, sum[:3]))
	}
	if b.Dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	path := filepath.Join(b.Dir, b.Kind+".json")
	old, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		entries, _ := os.ReadDir(b.Dir)
		if slices.ContainsFunc(entries, func(e os.DirEntry) bool { return !strings.HasPrefix(e.Name(), unfinished) }) {
			return fmt.Errorf("%s contains other files than a %s: choose another directory", b.Dir, b.Kind)
		}
	case err != nil:
		return fmt.Errorf("%s: %w: choose another directory", b.Kind, err)
	case !bytes.Equal(old, text):
		return fmt.Errorf("%s contains a %s with other settings (see %s): choose another directory", b.Dir, b.Kind,
			path)
	default:
		return nil
	}
	b.same = text
	return nil
}

// unfinished is the prefix of temporary files, which several processes may create at the same time.
const unfinished = ".batch-"

// Create creates the directory with the JSON file of the shared settings, unless it exists.
func (b *Batch) Create() error {
	if b.same == nil {
		return nil
	}
	if err := os.MkdirAll(b.Dir, 0o700); err != nil {
		return fmt.Errorf("%s: %w: choose another directory", b.Kind, err)
	}
	return b.write(b.Kind+".json", b.same)
}

// write writes a file of the directory atomically.
func (b *Batch) write(name string, text []byte) error {
	if err := session.WriteFile(filepath.Join(b.Dir, name), unfinished, text); err != nil {
		return fmt.Errorf("%s: %w", b.Kind, err)
	}
	return nil
}

// threadsPerRun returns the number of threads of each run.
func (b *Batch) threadsPerRun() int {
	threads := b.Threads
	if threads == 0 {
		threads = goruntime.NumCPU()
	}
	return max(1, threads/b.Jobs)
}

// Check prepares a run of each setting with unfinished runs, and fails if it cannot run, before anything is trained. It
// calls progress with the number of checked trials, at most once a second. It returns a [MemoryError] if the concurrent
// runs need more memory than the machine has.
func (b *Batch) Check(ctx context.Context, progress func(trials int)) error {
	last, memory, most := time.Now(), host.Memory(), int64(0)
	for i, t := range b.Trials {
		if i > 0 && b.Trials[i-1].Label == t.Label { // another seed
			t.Work, t.Limit = b.Trials[i-1].Work, b.Trials[i-1].Limit
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if time.Since(last) > time.Second {
			last = time.Now()
			progress(i)
		}
		if b.Halving.Factor == 0 {
			if c := b.finishedConfig(i); c != nil {
				t.Limit, b.Bare = c.Limit, c.Data == ""
				continue
			}
		}
		j, err := host.Prepare(b.options(t))
		if err != nil {
			return fmt.Errorf("%s: %w", t.Label, err)
		}
		t.Work, t.Limit, b.Bare = j.Work, j.Limit, j.Config.Data == ""
		if most = max(most, j.Config.Memory); b.Wait == 0 && memory > 0 && int64(b.Jobs)*most > memory {
			return &MemoryError{Jobs: b.Jobs, Needs: int64(b.Jobs) * most, Has: memory}
		}
	}
	if b.Halving.Factor > 0 {
		return b.checkHalving()
	}
	return nil
}

// MemoryError is returned if the concurrent runs do not fit into memory.
type MemoryError struct {
	Jobs       int
	Needs, Has int64 // bytes
}

func (e *MemoryError) Error() string {
	return fmt.Sprintf("%d runs at a time may need %.3g GB of memory, and this machine has %.3g GB: run fewer at a time",
		e.Jobs, float64(e.Needs)/1e9, float64(e.Has)/1e9)
}

// finishedConfig returns the recorded configuration of trial i if all runs of its setting are over, else nil.
func (b *Batch) finishedConfig(i int) *event.Config {
	var config *event.Config
	for _, t := range b.Trials[i:] {
		if t.Label != b.Trials[i].Label {
			break
		}
		state, out, err := t.readLog()
		if err != nil || !state.over() {
			return nil
		}
		t.State, t.Tally = state, out
		config = &out.Config
	}
	return config
}

// options returns the initial options of a trial with the threads and workers of this batch.
func (b *Batch) options(t *Trial) host.Options {
	o := t.Options
	o.Threads, o.Unattended = b.threadsPerRun(), true
	if b.Wait > 0 {
		o.Workers, o.Wait = b.Wait, b.Wait
	}
	return o
}

// Each calls f with every trial under the lock of the batch. f must not call other methods of the batch.
func (b *Batch) Each(f func(*Trial)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range b.Trials {
		f(t)
	}
}

// Unfinished reports whether some trial is neither over nor failed, or has another rung of Halving before it.
func (b *Batch) Unfinished() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.ContainsFunc(b.Trials, func(t *Trial) bool {
		return !t.Out && t.Failed == nil && (!t.Over() || t.Rung > 0 && t.Limit != t.whole)
	})
}

// Settings returns the values of a trial by column.
func (b *Batch) Settings(t *Trial) map[string]string {
	out := map[string]string{}
	for i, name := range b.Columns {
		out[name] = t.Point[i]
	}
	return out
}
