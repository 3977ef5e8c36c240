// Package ecdf computes the running times of recorded runs that minimise functions of the suite BBOB: how many
// evaluations a run took until one of its candidates was within each target of the optimum. It imports packages that
// read records.
//
//	run, err := ecdf.Read(dir)
//	share := ecdf.Share(runs, 100)      // of all targets, within 100 evaluations for each dimension
//	time, hits := ecdf.Expected(runs, 50) // of the last target, over the runs of one function
//
// Hansen, Auger, Brockhoff, Tušar: Anytime performance assessment in blackbox optimization benchmarking (2022) defines
// both quantities.
package ecdf

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"

	"brood/runtime/event"
	"brood/runtime/option"
	"brood/runtime/session"
	"brood/runtime/view"
)

// Targets is the number of targets: 10^2, 10^1.8 and so on to 10^-8.
const Targets = 51

// Target returns target k, as a distance to the value of the optimum.
func Target(k int) float64 { return math.Pow(10, 2-float64(k)/5) }

// Nearest returns the target nearest to a distance above 0, by its logarithm.
func Nearest(distance float64) int {
	return int(math.Round(min(max(0, 5*(2-math.Log10(distance))), Targets-1)))
}

// ErrOther reports a session that minimises no function of the suite.
var ErrOther = errors.New("minimises no function of BBOB")

// Run is a recorded run.
type Run struct {
	Algorithm                     string // that it began with
	Function, Dimension, Instance int
	Seed                          uint64
	Evaluations                   uint64          // of the whole run
	Hits                          [Targets]uint64 // evaluations up to the round that met each target; 0: none did
}

// Read reads the log of the session in dir, up to the last committed round. The error wraps ErrOther for a run of
// another objective.
func Read(dir string) (*Run, error) {
	f := fold{}
	for rec, err := range session.Records(dir) {
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", filepath.Base(dir), err)
		}
		if err := f.add(rec); err != nil {
			return nil, fmt.Errorf("%s %w", filepath.Base(dir), err)
		}
	}
	return f.run(), nil
}

// fold collects the records of a run by round.
type fold struct {
	Run
	best      []float64 // lowest distance of a candidate, by round
	evaluated []uint64  // evaluations so far, by round
}

func (f *fold) add(rec event.Record) error {
	switch {
	case rec.Config != nil:
		for _, x := range []struct {
			to *int
			of *option.Option
		}{{&f.Function, option.BBOB}, {&f.Dimension, option.Dimension}, {&f.Instance, option.Instance}} {
			var err error
			if *x.to, err = strconv.Atoi(rec.Config.More[x.of.Name]); err != nil {
				return ErrOther
			}
		}
		if rec.Config.Begins != nil {
			return fmt.Errorf("lacks rounds that may have met targets, since %s", rec.Config.Removed())
		}
		f.Seed = rec.Config.Seed
	case rec.Plan != nil: // it may take back rounds
		at := int(rec.Plan.At)
		f.best, f.evaluated = f.best[:min(len(f.best), at)], f.evaluated[:min(len(f.evaluated), at)]
		if f.Algorithm == "" {
			f.Algorithm = rec.Plan.Algorithm
		}
	case rec.Points != nil && rec.Points.Series == view.Fitness:
		for len(f.best) < int(rec.Points.Round) {
			f.best = append(f.best, math.Inf(1))
		}
		lowest := &f.best[rec.Points.Round-1]
		for _, fitness := range rec.Points.Values {
			if -fitness < *lowest { // not for NaN
				*lowest = -fitness
			}
		}
	case rec.Commit != nil:
		c, before := rec.Commit, uint64(0)
		if n := len(f.evaluated); n > 0 {
			before = f.evaluated[n-1]
		}
		for i := uint64(1); i <= c.Rounds; i++ { // the rounds of a commit have equal evaluations
			f.evaluated = append(f.evaluated, before+(c.Progress.Evaluations-before)*i/c.Rounds)
		}
	}
	return nil
}

// run returns the running times of the committed rounds.
func (f *fold) run() *Run {
	met := 0
	for i, n := range f.evaluated {
		f.Evaluations = n
		for i < len(f.best) && met < Targets && f.best[i] <= Target(met) {
			f.Hits[met] = n
			met++
		}
	}
	return &f.Run
}

// Share returns the share of all targets of all runs that were met within a number of evaluations for each dimension.
func Share(runs []*Run, evaluations float64) float64 {
	met := 0
	for _, r := range runs {
		for _, n := range r.Hits {
			if n > 0 && float64(n) <= evaluations*float64(r.Dimension) {
				met++
			}
		}
	}
	return float64(met) / float64(Targets*len(runs))
}

// Expected returns the expected running time to a target: the evaluations of all runs until they met it or ended, for
// each run that met it; +Inf if none did. hits is the number of runs that met it.
func Expected(runs []*Run, target int) (evaluations float64, hits int) {
	for _, r := range runs {
		if n := r.Hits[target]; n > 0 {
			hits++
			evaluations += float64(n)
		} else {
			evaluations += float64(r.Evaluations)
		}
	}
	return evaluations / float64(hits), hits
}

// Algorithms returns the names of the algorithms in the order of the share of targets that their runs met in the end,
// highest first, and the runs of each.
func Algorithms(runs []*Run) (names []string, by map[string][]*Run) {
	by = map[string][]*Run{}
	for _, r := range runs {
		if by[r.Algorithm] == nil {
			names = append(names, r.Algorithm)
		}
		by[r.Algorithm] = append(by[r.Algorithm], r)
	}
	share := map[string]float64{}
	for _, name := range names {
		share[name] = Share(by[name], math.Inf(1))
	}
	slices.SortStableFunc(names, func(a, b string) int {
		switch {
		case share[a] > share[b]:
			return -1
		case share[a] < share[b]:
			return 1
		}
		return 0
	})
	return names, by
}
