package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"

	"brood/models/engine"
	"brood/models/usererr"
	"brood/optim"
	"brood/runtime/checkpoint"
	"brood/runtime/event"
	"brood/runtime/session"
	"brood/runtime/verify"
	"brood/runtime/worker"
	"brood/transport/local"
)

// Of selects a model of a session: its centre or a baseline. The zero Of is the centre.
type Of struct {
	Name  string
	Decay float64 // of ema
	From  uint64  // first round of swa
}

// Models of a session. A run stores none of them: they are recomputed from its log.
const (
	OfCentre = "centre" // the model that the algorithm returns
	OfBest   = "best"   // the member that is best on validation samples
	OfMean   = "mean"   // the mean of all members, a uniform soup
	OfSoup   = "soup"   // the mean of the members that a greedy soup selects
	OfEMA    = "ema"    // ema=D: an exponential moving average of the centres after each round, with decay D
	OfSWA    = "swa"    // swa=R: the plain mean of the centres after round R and each later one
)

// OfForms lists the accepted texts of models, for error texts and help.
const OfForms = "centre, best, mean, soup, ema=D with D from 0 to below 1, swa=R with a round R of 1 or more"

// ParseOf parses a comma-separated list of models, see [OfForms]. It rejects duplicates.
func ParseOf(text string) (all []Of, err error) {
	if strings.TrimSpace(text) == "" {
		return nil, usererr.Errorf("it is empty: choose among %s", OfForms)
	}
	for _, one := range strings.Split(text, ",") {
		name, value, valued := strings.Cut(strings.TrimSpace(one), "=")
		of, ok := Of{Name: name}, !valued
		switch name {
		case OfEMA:
			of.Decay, err = strconv.ParseFloat(value, 64)
			ok = err == nil && of.Decay >= 0 && of.Decay < 1
		case OfSWA:
			of.From, err = strconv.ParseUint(value, 10, 63)
			ok = err == nil && of.From > 0
		case OfCentre, OfBest, OfMean, OfSoup:
		default:
			ok = false
		}
		if !ok {
			return nil, usererr.Errorf("%s is no model of a session: choose among %s", one, OfForms)
		}
		if slices.Contains(all, of) {
			return nil, usererr.Errorf("%s is asked for twice", one)
		}
		all = append(all, of)
	}
	return all, nil
}

// String returns the model in the form that [ParseOf] reads.
func (o Of) String() string {
	switch o.Name {
	case OfEMA:
		return OfEMA + "=" + strconv.FormatFloat(o.Decay, 'g', -1, 64)
	case OfSWA:
		return OfSWA + "=" + strconv.FormatUint(o.From, 10)
	}
	return cmp.Or(o.Name, OfCentre)
}

// averages reports whether the model averages many rounds.
func (o Of) averages() bool { return o.Name == OfEMA || o.Name == OfSWA }

// Take is [Export] for several models of a session; it returns them in the order of the list. If one of them averages
// rounds, the log is recomputed from its first round.
func Take(
	ctx context.Context, dir string, at uint64, of []Of, threads int, progress func(event.Commit),
) ([]*Trained, error) {
	return (*Own)(nil).Take(ctx, dir, at, of, threads, progress)
}

// Take is [Take] for a session of this graph or objective.
func (o *Own) Take(
	ctx context.Context, dir string, at uint64, of []Of, threads int, progress func(event.Commit),
) (all []*Trained, err error) {
	if len(of) == 1 && of[0].String() == OfCentre {
		t, err := o.Export(ctx, dir, at, threads, progress)
		if err != nil {
			return nil, err
		}
		t.Of = of[0]
		return []*Trained{t}, nil
	}
	j, h, err := o.past(dir, at)
	if err != nil {
		return nil, err
	}
	if j.modelless() {
		return nil, fmt.Errorf("%s trained no model: there is nothing to export", filepath.Base(dir))
	}
	means := make([]*average, len(of))
	for i, x := range of { // validate before recomputing
		switch end := cmp.Or(at, h.end()); {
		case x.From > end:
			return nil, tooLate(x, filepath.Base(dir), end)
		case (x.Name == OfBest || x.Name == OfSoup) && len(j.Samples.Validation()) == 0:
			return nil, noneHeld(x, filepath.Base(dir))
		}
		if x.averages() {
			means[i] = &average{decay: x.Decay, plain: x.Name == OfSWA, from: x.From}
		}
	}
	averages := slices.DeleteFunc(slices.Clone(means), func(m *average) bool { return m == nil })
	w, err := j.followed(ctx, dir, at, h, threads, progress, averages)
	if err != nil {
		return nil, err
	}
	defer w.Free()
	var soup []worker.Ingredient // shared by all models that are selected on validation samples
	for i, x := range of {
		t, err := j.baseline(ctx, w, dir, x, means[i], &soup)
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

// followed recomputes the session up to and including round at and adds the centre of each round to the averages.
// Without averages it starts at the nearest checkpoint. The caller frees the worker.
func (j *Job) followed(
	ctx context.Context, dir string, at uint64, h history, threads int, progress func(event.Commit), means []*average,
) (*worker.Worker, error) {
	if len(means) == 0 {
		w, _, err := recompute(ctx, j, dir, at, h, nil, threads, progress)
		return w, err
	}
	stay, err := staying(dir)
	if err != nil {
		return nil, err
	}
	w, err := j.Worker(0, (&local.Hub{}).Link(0), nil, &checkpoint.Files{Dir: dir}, cmp.Or(threads, goruntime.NumCPU()),
		false)
	if err != nil {
		return nil, err
	}
	commits := 0
	w.Follow(func(round uint64, centre engine.Host) error {
		if commits < len(stay) && round <= stay[commits] {
			for _, m := range means {
				m.take(round, centre.Row(0))
			}
		}
		return nil
	})
	_, err = recomputeLog(ctx, verify.Config{Worker: w, Settled: h.settled, Progress: func(c event.Commit) {
		commits++
		if progress != nil {
			progress(c)
		}
	}}, dir, at)
	if err != nil {
		w.Free()
		return nil, fmt.Errorf("execute %s again: %w", dir, older(h.config.Kernels, err))
	}
	return w, nil
}

// staying returns, for each commit of the log in order, the last round that no later plan rolls back. Rounds that a run
// rolled back are not part of an average.
func staying(dir string) (last []uint64, err error) {
	r, err := session.OpenReader(dir)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	type step struct {
		plan bool
		at   uint64
	}
	var steps []step
	for {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		switch {
		case rec.Plan != nil:
			steps = append(steps, step{true, rec.Plan.At})
		case rec.Commit != nil:
			steps = append(steps, step{false, rec.Commit.To})
		}
	}
	behind := uint64(math.MaxUint64)
	for _, s := range slices.Backward(steps) {
		if s.plan {
			behind = min(behind, s.at)
		} else {
			last = append(last, behind)
		}
	}
	slices.Reverse(last)
	return last, nil
}

// average is a weighted mean of centres, in float64. With the centre c_i after round i, t rounds and the decay d it is
//
//	mean = sum_i d^(t-i) c_i / sum_i d^(t-i)
//
// which is a bias-corrected exponential moving average; d = 1 is the plain mean.
type average struct {
	decay float64
	plain bool
	from  uint64 // first round that counts

	rounds uint64  // rounds averaged so far
	power  float64 // decay to the power of rounds
	mean   []float64
}

func (m *average) take(round uint64, centre []float32) {
	if round < m.from {
		return
	}
	if m.rounds++; m.rounds == 1 {
		m.power, m.mean = 1, make([]float64, len(centre))
	}
	m.power = float64(m.power * m.decay)
	share := (1 - m.decay) / (1 - m.power)
	if m.plain {
		share = 1 / float64(m.rounds)
	}
	for i, c := range centre {
		m.mean[i] += float64(share * (float64(c) - m.mean[i]))
	}
}

// params returns the mean rounded to float32, as one row.
func (m *average) params() engine.Host {
	h := engine.NewHost(1, len(m.mean), engine.F32)
	for i, x := range m.mean {
		h.F[i] = float32(x)
	}
	return h
}

// baseline returns the selected model of the population on worker w. mean is the average for ema and swa, nil for the
// others. soup caches the evaluation of the members; baseline fills it if it is nil and needed.
func (j *Job) baseline(
	ctx context.Context, w *worker.Worker, dir string, of Of, mean *average, soup *[]worker.Ingredient,
) (*Trained, error) {
	name := filepath.Base(dir)
	var params, stats engine.Host
	var members []engine.Member
	var rounds uint64
	now, err := w.State(ctx)
	if err != nil {
		return nil, err
	}
	switch of.Name {
	case OfEMA, OfSWA:
		if rounds = mean.rounds; rounds == 0 {
			return nil, tooLate(of, name, now.Round)
		}
		params = mean.params()
		stats, err = w.Rebuilt(ctx, params)
	case OfMean:
		members = now.Roster.Members
		params, stats, err = w.Mean(ctx, members)
	case OfBest, OfSoup:
		if *soup == nil {
			*soup, err = w.Soup(ctx, j.judged)
		}
		if err != nil {
			break
		}
		if members = worker.Chosen(*soup); of.Name == OfBest {
			members = []engine.Member{(*soup)[0].Member}
		}
		params, stats, err = w.Mean(ctx, members)
	default:
		params, stats, err = w.Centre(ctx)
	}
	switch {
	case errors.Is(err, worker.ErrNoReplicas):
		return nil, fmt.Errorf("--of %s: %w", of, noReplicas(name, now))
	case errors.Is(err, worker.ErrNoneHeld):
		return nil, noneHeld(of, name)
	case err != nil:
		return nil, err
	}
	t := j.trained(now, dir, params, stats)
	t.Of, t.Members, t.Rounds = of, members, rounds
	if of.Name == OfSoup {
		t.Soup, t.Graded = *soup, j.Config.Graded()
	}
	return t, nil
}

// tooLate returns the error for an average that starts after the requested round.
func tooLate(of Of, session string, round uint64) error {
	return usererr.Errorf("%s: the model of %s is of round %d: give this round or an earlier one", of, session, round)
}

// noneHeld returns the error for a selection among members of a session that has no validation samples.
func noneHeld(of Of, session string) error {
	return fmt.Errorf("--of %s: %s held out no validation samples by which members could be chosen: --of %s takes "+
		"all of them",
		of, session, OfMean)
}

// judged returns the score by which members are selected, lower is better: the error rate in percent, or the mean loss
// if the model has no error rate.
func (j *Job) judged(s optim.Scores) float64 {
	if j.Config.Graded() {
		return s.Error()
	}
	return s.Mean()
}

// Made describes the members or rounds that the model was made of; it returns "" for a centre.
func (t *Trained) Made() string {
	switch {
	case t.Of.averages():
		return fmt.Sprintf("the centres after %d rounds", t.Rounds)
	case len(t.Members) == 1:
		return fmt.Sprintf("member %d", t.Members[0])
	case t.Of.Name == OfMean:
		return fmt.Sprintf("%d members", len(t.Members))
	case len(t.Members) > 0:
		var ids []string
		for _, m := range t.Members {
			ids = append(ids, strconv.Itoa(int(m)))
		}
		return "members " + strings.Join(ids, ", ")
	}
	return ""
}
