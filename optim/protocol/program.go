package protocol

import (
	"context"
	"math"
	"slices"

	"brood/models/engine"
	"brood/models/noise"
	"brood/optim"
	"brood/optim/collective"
)

// stuck is the end of an execution that can change no more and has not converged.
const stuck = math.MaxUint64

// simulation is the executions of one round, a row each.
type simulation interface {
	// begin starts the execution of a row that holds none, or one of another size.
	begin(r engine.Row, m engine.Member) (began bool, err error)
	// run lets up to left pairs meet. end is stuck when nothing can change any more short of the goal, 1 when it is
	// reached, else 0.
	run(ctx context.Context, r engine.Row, m engine.Member, left uint64) (met, end uint64, err error)
	// measure is the values of the series, in their order, less what is told once at the end.
	measure(r engine.Row) []float64
}

// recordBytes of an execution are gathered each round: whether it ended, and the meetings.
const recordBytes = 16

func gatherBytes(s optim.Shape) map[collective.Op]int64 {
	return map[collective.Op]int64{"executions": s.AllGatherBytes(recordBytes)}
}

// advance does a round of all executions of this worker. series are those of measure. A pass of the run is over when as
// many executions ended as there are members, so that `epochs 1` ends it exactly then; samples are meetings. right says
// what a converged row answered.
func advance(ctx context.Context, e *optim.Env, k optim.Values, series []string, s simulation, right func(engine.Row) (float64, bool)) (rep optim.Report, err error) {
	clock, end := e.Record(optim.BlockClock), e.Record(optim.BlockEnd)
	mine := engine.NewHost(len(e.Mine), recordBytes/8, engine.U64)
	measured := make([][]optim.Point, len(series))
	var once []optim.Point
	left := max(1, uint64(k.Get("slice")*k.Get("n")))
	for i, m := range e.Mine {
		r := engine.Row(i)
		began, err := s.begin(r, m)
		if err != nil {
			return rep, err
		}
		if began {
			clock.U[i], end.U[i] = 0, 0
		}
		if end.U[i] == 0 {
			met, how, err := s.run(ctx, r, m, left)
			if err != nil {
				return rep, err
			}
			clock.U[i] += met
			mine.URow(r)[1] = met
			switch how {
			case stuck:
				end.U[i] = stuck
			case 1:
				end.U[i] = 1 + clock.U[i]
				once = append(once, optim.Point{Member: m, Series: seriesTime.Name, Value: float64(clock.U[i]) / k.Get("n")})
			}
			if how != 0 {
				mine.URow(r)[0] = 1
			}
			if y, ok := right(r); ok && how != 0 {
				once = append(once, optim.Point{Member: m, Series: "right", Value: y})
			}
		}
		for j, v := range s.measure(r) {
			measured[j] = append(measured[j], optim.Point{Member: m, Series: series[j], Value: v})
		}
	}
	all := engine.NewHost(len(e.Roster.Members), recordBytes/8, engine.U64)
	if err := e.Comm.AllGather(ctx, "executions", mine, all); err != nil {
		return rep, err
	}
	rep.Pass.Of = int64(len(e.Roster.Members))
	for i := range e.Roster.Members {
		rep.Pass.Done += int64(all.URow(engine.Row(i))[0])
		rep.Samples += int64(all.URow(engine.Row(i))[1])
	}
	slices.SortStableFunc(once, func(a, b optim.Point) int { return len(a.Series) - len(b.Series) })
	rep.Points = append(slices.Concat(measured...), once...)
	return rep, nil
}

// executions are the rows of a finite-state protocol in one round.
type executions struct {
	finite
	e      *optim.Env
	k      optim.Values
	round  uint64
	table  *Table
	n      uint64
	want   int         // index of the right output, -1 without one
	agents engine.Host // one of the two exists
	counts engine.Host
	crowd  *crowd
	tally  []uint64 // counts of the row at hand, where its agents are simulated
}

// Round implements optim.Program.
func (p finite) Round(ctx context.Context, e *optim.Env, k optim.Values, round uint64) (optim.Report, error) {
	s := &executions{finite: p, e: e, k: k, round: round, table: p.table(k), n: uint64(k.I("n")), want: -1,
		agents: e.Record(optim.BlockAgents + "." + p.name), counts: e.Record(optim.BlockCounts + "." + p.name)}
	if p.right != nil {
		s.want = slices.Index(s.table.Outputs, p.right(k))
	}
	if s.agents.Rows == 0 {
		s.crowd = newCrowd(s.table, s.n)
	}
	s.tally = make([]uint64, len(s.table.States))
	series := []string{seriesLoss.Name}
	for _, name := range s.table.shares() {
		series = append(series, "share."+name)
	}
	return advance(ctx, e, k, series, s, s.answer)
}

// Centre implements optim.Program: a protocol hands over no model.
func (p finite) Centre(context.Context, *optim.Env, optim.Values, engine.Mat) error { return nil }

// count is the counts of a row.
func (s *executions) count(r engine.Row) []uint64 {
	if s.agents.Rows == 0 {
		return s.counts.URow(r)
	}
	clear(s.tally)
	for _, a := range s.agents.URow(r) {
		if a > 0 {
			s.tally[a-1]++
		}
	}
	return s.tally
}

func (s *executions) begin(r engine.Row, _ engine.Member) (bool, error) {
	var now uint64
	for _, c := range s.count(r) {
		now += c
	}
	if now == s.n {
		return false, nil
	}
	first, err := s.finite.begin(s.k)
	if err != nil {
		return false, err
	}
	if s.agents.Rows == 0 {
		copy(s.counts.URow(r), first)
		return true, nil
	}
	agents := s.agents.URow(r)
	for state, c := range first {
		for i := range agents[:c] {
			agents[i] = uint64(state) + 1
		}
		agents = agents[c:]
	}
	return true, nil
}

func (s *executions) run(ctx context.Context, r engine.Row, m engine.Member, left uint64) (met, end uint64, err error) {
	random, count := newSource(s.e.Rand(noise.Pair, s.round, m)), s.count(r)
	var reached bool
	if s.crowd != nil {
		met, reached, err = s.crowd.run(ctx, count, left, random)
	} else {
		met, reached, err = s.table.runAgents(ctx, s.agents.URow(r), count, left, random)
	}
	switch {
	case reached:
		end = 1
	case s.table.weight(count) == 0:
		end = stuck
	}
	return met, end, err
}

func (s *executions) measure(r engine.Row) []float64 {
	count := s.count(r)
	out := []float64{s.table.loss(count, s.n, s.want)}
	for _, c := range s.table.counted(count) {
		out = append(out, float64(c)/float64(s.n))
	}
	return out
}

// answer says whether a row that ended gives the right answer.
func (s *executions) answer(r engine.Row) (float64, bool) {
	if s.want < 0 {
		return 0, false
	}
	if s.table.loss(s.count(r), s.n, s.want) == 0 {
		return 1, true
	}
	return 0, true
}
