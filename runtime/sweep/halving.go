package sweep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"

	"brood/models/usererr"
	"brood/runtime/event"
)

// Halving is successive halving (Jamieson & Talwalkar, 2016, algorithm 1): the settings compete in rungs. All of them
// train to a small limit; the best 1/Factor of them continue to Factor times this limit, and so on; those of the last
// rung train to the limit of the batch. The zero Halving trains all settings to it.
type Halving struct {
	Factor int    // 2 or more
	By     string // metric by which settings remain, as mean over their seeds
	More   bool   // larger values are better
	// Begin is called before a rung, counted from 1, is trained; it may be nil
	Begin func(rung, rungs, settings int, limit event.Limit)
}

// decisionsFile has the settings that remain after each decided rung, as JSON: a list of labels for each. It is written
// before any of them continues, since the logs do not have the results of a rung once they have those of the next.
const decisionsFile = "halving.json"

// rungs returns the number of rungs for a number of settings. No limit is below one round.
func (h Halving) rungs(settings int, limit event.Limit) int {
	n := 1
	for part := h.Factor; settings >= part && (limit.Rounds == 0 || limit.Rounds >= uint64(part)); part *= h.Factor {
		n++
	}
	return n
}

// rung returns the limit and the work of a trial in a rung, counted from 0.
func (h Halving) rung(rung, rungs int, t *Trial) (event.Limit, float64) {
	part := math.Pow(float64(h.Factor), float64(rungs-1-rung)) // exact: a whole number
	limit := t.whole
	if limit.Epochs /= part; limit.Rounds > 0 {
		limit.Rounds = max(1, limit.Rounds/uint64(part))
	}
	return limit, t.wholeWork / part
}

// labels returns the settings of the batch.
func (b *Batch) labels() (out []string) {
	for _, t := range b.Trials {
		if len(out) == 0 || out[len(out)-1] != t.Label {
			out = append(out, t.Label)
		}
	}
	return out
}

// checkHalving fails if the settings cannot compete.
func (b *Batch) checkHalving() error {
	first := b.Trials[0]
	for _, t := range b.Trials {
		if t.Limit != first.Limit {
			return usererr.Errorf("halving sets the limit of runs, and %s has another one than %s: give all the same", t, first)
		}
		t.whole, t.wholeWork = t.Limit, t.Work
	}
	switch n := len(b.labels()); {
	case first.Limit.Epochs == 0 && first.Limit.Rounds == 0 || first.Limit.Target != "":
		return usererr.Errorf("halving needs a limit of epochs or rounds, and no target")
	case b.Halving.rungs(n, first.Limit) == 1:
		f := b.Halving.Factor
		return usererr.Errorf("halving by %d needs %d settings or more, and a limit of rounds of %d or more", f, f, f)
	}
	return nil
}

func (b *Batch) readDecisions() (out [][]string, err error) {
	text, err := os.ReadFile(filepath.Join(b.Dir, decisionsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w: remove the directory to begin again", b.Kind,
			filepath.Join(b.Dir, decisionsFile), err)
	}
	return out, nil
}

// enter prepares a rung, counted from 0, for the settings that remain: it sets their limits, and their states from the
// logs. The other settings keep theirs.
func (b *Batch) enter(rung int, remain []string) {
	rungs := b.Halving.rungs(len(b.labels()), b.Trials[0].whole)
	b.Each(func(t *Trial) {
		if t.Out = !slices.Contains(remain, t.Label); !t.Out {
			t.Rung, t.State = rung+1, Elsewhere // update changes only this state
			t.Limit, t.Work = b.Halving.rung(rung, rungs, t)
		}
	})
	for _, t := range b.Trials {
		if !t.Out {
			b.readState(t)
		}
	}
}

// enterDecided prepares the first rung that is not decided.
func (b *Batch) enterDecided() error {
	decided, err := b.readDecisions()
	if err != nil {
		return err
	}
	for rung, remain := range append([][]string{b.labels()}, decided...) {
		b.enter(rung, remain)
	}
	return nil
}

// halve trains the rungs that are not decided. It ends early with ctx, and after a rung in which a run failed: the same
// command tries again.
func (b *Batch) halve(ctx context.Context, train Runner, done func(*Trial)) error {
	rungs := b.Halving.rungs(len(b.labels()), b.Trials[0].whole)
	for {
		rung, remain := 0, []string(nil) // from 1
		for _, t := range b.Trials {
			if rung = max(rung, t.Rung); !t.Out && !slices.Contains(remain, t.Label) {
				remain = append(remain, t.Label)
			}
		}
		pending := func(t *Trial) bool { return !t.Out && !t.Over() }
		if b.Halving.Begin != nil && slices.ContainsFunc(b.Trials, pending) {
			limit, _ := b.Halving.rung(rung-1, rungs, b.Trials[0])
			b.Halving.Begin(rung, rungs, len(remain), limit)
		}
		b.train(ctx, train, done)
		if ctx.Err() != nil || slices.ContainsFunc(b.Trials, pending) || rung == rungs {
			return nil
		}
		decided, err := b.readDecisions() // another process may have trained on
		if err != nil {
			return err
		}
		if len(decided) < rung {
			best := b.best(max(1, len(remain)/b.Halving.Factor))
			if len(best) == 0 { // none has a result
				b.Each(func(t *Trial) { t.Out = true })
				return nil
			}
			text, err := json.MarshalIndent(append(decided, best), "", "  ")
			if err == nil {
				err = b.write(decisionsFile, append(text, '\n'))
			}
			if err != nil {
				return err
			}
			decided = append(decided, best)
		}
		b.enter(rung, decided[rung-1])
	}
}

// best returns up to n settings that remain, the best first. Settings with a diverged run or without a result do not.
func (b *Batch) best(n int) (out []string) {
	all := b.Results(b.Halving.By)
	Sort(all, b.Halving.By, b.Halving.More)
	for _, r := range all {
		if !r.Out && r.Diverged == 0 && len(r.Numbers(b.Halving.By)) == r.Seeds && len(out) < n {
			out = append(out, r.Label)
		}
	}
	return out
}
