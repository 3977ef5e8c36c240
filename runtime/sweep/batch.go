// Package sweep executes many runs, each a session in one directory: the grid of a sweep, or the presets of a
// study with several seeds. A run is a value, a [Trial]: the options that it begins with. What it has measured is read
// from its log alone, so the same batch goes on where it was stopped, and several processes that share the directory
// share the work, since each run is claimed by who trains it.
//
//	b := &sweep.Batch{Kind: "sweep", Columns: []string{"eta"}, Jobs: 1}
//	err := b.Place("grid", "quickstart", shared)       // refuses a directory of other runs
//	b.Add(point, "eta=0.1", options, name, 3)          // with seeds 1, 2 and 3
//	err = b.Check(ctx, told)                           // refuses what cannot be run, before anything has run
//	err = b.Keep()                                     // makes the directory
//	b.Look()                                           // finds what is done
//	b.Run(ctx, train, done)                            // trains the rest
//
// It knows no flags, no signals and no presets: who calls it passes values in and prints what comes out. It imports the
// runtime and the seam.
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

// Batch is a set of runs. Its exported fields are set before Place and not changed afterwards, but for Dir, Bare and
// the trials, see [Trial].
type Batch struct {
	Kind    string   // what its directory is called: sweep or study
	Columns []string // what its runs differ in, besides the seed
	Metrics []string // the figures that [Batch.Rows] has of each run, in their order
	Jobs    int      // runs at a time; 1 or more
	Threads int      // of all of them together; 0: all cores
	Wait    int      // workers of each run that come from elsewhere; 0: it is trained here

	Dir    string // absolute, since Place
	Bare   bool   // its runs train no model, since Check
	Trials []*Trial

	same []byte // what a new directory says of the runs in it; nil where it has said so
	mu   sync.Mutex
}

// Add puts the runs of one setting into the batch, with seeds 1 to seeds: o is what each begins with, but for its seed,
// point has a value for each column, label says the same to a person, and name is the directory of a seed's session.
func (b *Batch) Add(point []string, label string, o host.Options, name func(seed int) string, seeds int) {
	for seed := 1; seed <= seeds; seed++ {
		o.Seed = uint64(seed)
		b.Trials = append(b.Trials, &Trial{Point: point, Label: label, Seed: seed, Options: o,
			Dir: filepath.Join(b.Dir, name(seed)), claim: filepath.Join(b.Dir, ".claims", name(seed))})
	}
}

// PlainName is text without what a file system does not like.
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

// Place finds the directory, and refuses one that holds runs of another kind. It is dir, or, where that is "", one
// among a person's sessions that is named for stem and for same: what all runs of the batch have in common, as JSON.
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
			return fmt.Errorf("%s holds other things than a %s: name another directory", b.Dir, b.Kind)
		}
	case err != nil:
		return err
	case !bytes.Equal(old, text):
		return fmt.Errorf("%s holds a %s of other settings (see %s): name another directory", b.Dir, b.Kind, path)
	default:
		return nil
	}
	b.same = text
	return nil
}

// unfinished begins the names of files that several processes may make at the same time.
const unfinished = ".batch-"

// Keep makes the directory, where it is new, and says in it what the runs share.
func (b *Batch) Keep() error {
	if b.same == nil {
		return nil
	}
	if err := os.MkdirAll(b.Dir, 0o700); err != nil {
		return fmt.Errorf("%s: %w", b.Kind, err)
	}
	return b.write(b.Kind+".json", b.same)
}

// write makes a file of the directory, whole or not at all.
func (b *Batch) write(name string, text []byte) error {
	if err := session.WriteFile(filepath.Join(b.Dir, name), unfinished, text); err != nil {
		return fmt.Errorf("%s: %w", b.Kind, err)
	}
	return nil
}

// share is the threads of one run.
func (b *Batch) share() int {
	threads := b.Threads
	if threads == 0 {
		threads = goruntime.NumCPU()
	}
	return max(1, threads/b.Jobs)
}

// Check prepares a run of each setting that has something left to do, so that what cannot be run is refused before
// anything has run. told hears, at most once a second, of how many trials were looked at.
func (b *Batch) Check(ctx context.Context, told func(trials int)) error {
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
			told(i)
		}
		if c := b.settled(i); c != nil {
			t.Limit, b.Bare = c.Limit, c.Data == ""
			continue
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
	return nil
}

// MemoryError says that so many runs at a time do not fit, in bytes.
type MemoryError struct {
	Jobs       int
	Needs, Has int64
}

func (e *MemoryError) Error() string {
	return fmt.Sprintf("%d runs at a time may need %.3g GB of memory, and this machine has %.3g GB: run fewer at a time",
		e.Jobs, float64(e.Needs)/1e9, float64(e.Has)/1e9)
}

// settled is the configuration that the log of trial i holds, where all runs of its setting are over; else nil.
func (b *Batch) settled(i int) *event.Config {
	var config *event.Config
	for _, t := range b.Trials[i:] {
		if t.Label != b.Trials[i].Label {
			break
		}
		state, out, err := t.look()
		if err != nil || !state.over() {
			return nil
		}
		t.State, t.Tally = state, out
		config = &out.Config
	}
	return config
}

// options are what a trial begins with as a member of this batch.
func (b *Batch) options(t *Trial) host.Options {
	o := t.Options
	o.Threads, o.Unattended = b.share(), true
	if b.Wait > 0 {
		o.Workers, o.Wait = b.Wait, b.Wait
	}
	return o
}

// Each hands every trial to f, while none of them changes. f calls no other method of the batch.
func (b *Batch) Each(f func(*Trial)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range b.Trials {
		f(t)
	}
}

// Left says that the same batch would go on with some run.
func (b *Batch) Left() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.ContainsFunc(b.Trials, func(t *Trial) bool { return !t.Over() && t.Failed == nil })
}

// Settings are what a trial differs in from the others, besides its seed, by column.
func (b *Batch) Settings(t *Trial) map[string]string {
	out := map[string]string{}
	for i, name := range b.Columns {
		out[name] = t.Point[i]
	}
	return out
}
