package evaluate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"brood/models/engine"
	"brood/models/usererr"
	"brood/optim"
	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/session"
	"brood/runtime/worker"
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
		return nil, usererr.Errorf("the list is empty: choose among %s", OfForms)
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
			return nil, usererr.Errorf("%s is not a model of a session: choose among %s", one, OfForms)
		}
		if slices.Contains(all, of) {
			return nil, usererr.Errorf("%s is listed twice", one)
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

// ExportModels is [Export] for several models of a session; it returns them in the order of the list. If one of them
// averages rounds, the log is recomputed from its first round.
func ExportModels(
	ctx context.Context, own *host.Own, dir string, at uint64, of []Of, threads int, progress func(event.Commit),
) (all []*Model, err error) {
	if len(of) == 1 && of[0].String() == OfCentre {
		t, err := Export(ctx, own, dir, at, threads, progress)
		if err != nil {
			return nil, err
		}
		t.Of = of[0]
		return []*Model{t}, nil
	}
	p, err := own.Past(dir, at)
	if err != nil {
		return nil, err
	}
	if p.Job.Modelless() {
		return nil, noModel(p)
	}
	means := make([]*average, len(of))
	for i, x := range of { // validate before recomputing
		switch {
		case x.From > p.Round():
			return nil, tooLate(p, x, p.Round())
		case (x.Name == OfBest || x.Name == OfSoup) && len(p.Job.Samples.Validation()) == 0:
			return nil, noneHeld(p, x)
		}
		if x.averages() {
			if err := averaged(p, x); err != nil {
				return nil, err
			}
			means[i] = &average{decay: x.Decay, plain: x.Name == OfSWA, from: x.From}
		}
	}
	averages := slices.DeleteFunc(slices.Clone(means), func(m *average) bool { return m == nil })
	w, err := follow(ctx, p, threads, progress, averages)
	if err != nil {
		return nil, err
	}
	defer w.Free()
	var soup []worker.Ingredient // shared by all models that are selected on validation samples
	for i, x := range of {
		t, err := baseline(ctx, p, w, x, means[i], &soup)
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

// follow recomputes the session and adds the centre of each round to the averages. Without averages it starts at the
// nearest checkpoint. The caller frees the worker.
func follow(
	ctx context.Context, p *host.Past, threads int, progress func(event.Commit), means []*average,
) (*worker.Worker, error) {
	if len(means) == 0 {
		return p.Recompute(ctx, threads, progress)
	}
	stay, err := staying(p.Dir())
	if err != nil {
		return nil, err
	}
	commits := 0
	take := func(round uint64, centre engine.Host) error {
		if commits < len(stay) && round <= stay[commits] {
			for _, m := range means {
				m.take(round, centre.Row(0))
			}
		}
		return nil
	}
	return p.Follow(ctx, threads, take, func(c event.Commit) {
		commits++
		if progress != nil {
			progress(c)
		}
	})
}

// staying returns, for each commit of the log in order, the last round that no later plan rolls back. Rounds that a run
// rolled back are not part of an average.
func staying(dir string) (last []uint64, err error) {
	type step struct {
		plan bool
		at   uint64
	}
	var steps []step
	for rec, err := range session.Records(dir) {
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
func baseline(
	ctx context.Context, p *host.Past, w *worker.Worker, of Of, mean *average, soup *[]worker.Ingredient,
) (*Model, error) {
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
			return nil, tooLate(p, of, now.Round)
		}
		params = mean.params()
		stats, err = w.Rebuilt(ctx, params)
	case OfMean:
		members = now.Roster.Members
		params, stats, err = w.Mean(ctx, members)
	case OfBest, OfSoup:
		if *soup == nil {
			*soup, err = w.Soup(ctx, judge(p.Job.Config.Graded()))
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
		return nil, fmt.Errorf("--of %s: %w", of, noReplicas(p, now))
	case errors.Is(err, worker.ErrNoneHeld):
		return nil, noneHeld(p, of)
	case err != nil:
		return nil, err
	}
	t := fromSession(p, now, params, stats)
	t.Of, t.Members, t.Rounds = of, members, rounds
	if of.Name == OfSoup {
		t.Soup, t.Graded = *soup, p.Job.Config.Graded()
	}
	return t, nil
}

// tooLate returns the error for an average that starts after the requested round.
func tooLate(p *host.Past, of Of, round uint64) error {
	return usererr.Errorf("%s: the model of %s is of round %d: give this round or an earlier one", of, p.Name(), round)
}

// averaged returns an error if rounds that count in an average are no longer in the log. Rounds whose weight is below
// the precision of a float32 do not count.
func averaged(p *host.Past, of Of) error {
	b := p.Job.Config.Begins
	if b == nil || of.Name == OfSWA && of.From > b.Round ||
		of.Name == OfEMA && p.Round() > b.Round && math.Pow(of.Decay, float64(p.Round()-b.Round)) < 1.0/(1<<24) {
		return nil
	}
	return fmt.Errorf("--of %s: %s lacks rounds of this average, since %s: give --of %s=%d", of, p.Name(),
		p.Job.Config.Removed(), OfSWA, b.Round+1)
}

// noneHeld returns the error for a selection among members of a session that has no validation samples.
func noneHeld(p *host.Past, of Of) error {
	return fmt.Errorf("--of %s: %s held out no validation samples by which members could be chosen: --of %s takes "+
		"all of them",
		of, p.Name(), OfMean)
}

// judge returns the score by which members are selected, lower is better: the error rate in percent, or the mean loss
// if the model has no error rate (graded is false).
func judge(graded bool) func(optim.Scores) float64 {
	if graded {
		return optim.Scores.Error
	}
	return optim.Scores.Mean
}

// Made describes the members or rounds that the model was made of; it returns "" for a centre.
func (t *Model) Made() string {
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
