package archive

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"strings"

	"brood/runtime/axis"
	"brood/runtime/event"
	"brood/runtime/session"
	"brood/runtime/view"
)

// Summary describes a run in a list, beyond its entry. Texts are as recorded: clean them before printing to a terminal.
type Summary struct {
	session.Info
	Members int       // population size at the end
	Series  string    // series of Loss and Curve; "": nothing was measured
	Loss    float64   // last value; NaN without one
	Curve   []float64 // the run in at most [CurvePoints] equal parts; NaN for parts without a measurement
	Seconds float64   // training time
	Runs    int       // number of runs, for a folder

	Settings []Setting          // as in [Run]
	Figures  map[string]float64 // as in [Run]
}

// CurvePoints is the maximum number of points of a summary's curve.
const CurvePoints = 16

// Summary returns the summary of an entry: from the cache if its log is unchanged, else by reading the log. It always
// reads the notes of the user about the run.
func (l *Library) Summary(e Entry) (s Summary) {
	if e.Folder != "" {
		return l.folder(e)
	}
	s, ok := l.cached(e)
	if !ok {
		s = l.read(e)
		l.keep(e, s)
	}
	s.Name, s.Dir, s.Running, s.About = e.Name, e.Dir, e.Running, session.ReadAbout(e.Dir)
	return s
}

// List returns the runs of the home with their summaries, latest start first. It omits folders.
func (l *Library) List() ([]Row, error) {
	entries, err := l.Scan(l.home)
	if err != nil {
		return nil, err
	}
	entries = slices.DeleteFunc(entries, func(e Entry) bool { return e.Folder != "" })
	rows := make([]Row, len(entries))
	each(len(entries), func(i int) {
		s := l.Summary(entries[i])
		if s.PID = 0; entries[i].Running {
			_, s.PID = session.Running(entries[i].Dir)
		}
		rows[i] = Row{entries[i], &s}
	})
	slices.SortStableFunc(rows, func(a, b Row) int {
		return cmp.Or(b.Started.Compare(a.Started), strings.Compare(b.Name, a.Name))
	})
	return rows, nil
}

// Took returns the seconds that the newest finished run of a preset in the home trained; 0 if there is none. Of other
// runs it reads the head and the tail of the log at most.
func (l *Library) Took(preset string) float64 {
	entries, err := l.Scan(l.home)
	if err != nil {
		return 0
	}
	for _, e := range entries {
		if e.Folder != "" || e.Running {
			continue
		}
		s, ok := l.cached(e)
		if !ok {
			s.Info = session.Describe(e.Dir)
		}
		if s.Preset == preset && s.Phase == event.Finished {
			return l.Summary(e).Seconds
		}
	}
	return 0
}

// folder returns the summary of a batch: the number of its runs.
func (l *Library) folder(e Entry) Summary {
	s := Summary{Info: session.Info{Name: e.Name, Dir: e.Dir, Started: e.Written}, Loss: math.NaN()}
	names, err := session.Names(e.Dir)
	if s.Runs = len(names); err != nil {
		s.Err = err.Error()
	}
	return s
}

// read returns a summary by folding the log. For a run without a round, or with a damaged log, it has only the data of
// the head and the tail.
func (l *Library) read(e Entry) Summary {
	s := Summary{Info: session.Describe(e.Dir), Loss: math.NaN()}
	run, err := l.Run(e)
	if err != nil {
		if s.Err == "" && !errors.Is(err, ErrNoRound) {
			s.Err = err.Error()
		}
		return s
	}
	s.Follow(run)
	return s
}

// Follow sets the fields that derive from the curves of the run.
func (s *Summary) Follow(run *Run) {
	s.Parent, s.ParentAt = run.Parent, run.ParentAt
	s.Members, s.Settings, s.Figures = len(run.View.Members().Members), run.Settings, run.Figures
	s.Seconds = run.Figures["seconds"]
	if s.Series = run.Loss(); s.Series == "" {
		return
	}
	lo, hi := run.View.Find(s.Series).Rounds()
	for _, b := range run.View.Find(s.Series).Band(view.Even(lo, hi, int(min(hi-lo, CurvePoints)))) {
		s.Curve = append(s.Curve, b.Mean())
		if !b.Empty() {
			s.Loss = b.Mean()
		}
	}
	for _, p := range run.Points(s.Series, axis.Rounds, math.MaxInt32) {
		s.Loss = p.Mean()
	}
}
