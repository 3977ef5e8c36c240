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

// stuck is the value of BlockEnd for an execution that has not converged and in which no meeting can change a count.
const stuck = math.MaxUint64

// simulation is what advance needs of a protocol in one round. Each hosted execution is one row.
type simulation interface {
	// begin starts an execution in row r and returns true if the row holds none, or one of another size.
	begin(r engine.Row, m engine.Member) (began bool, err error)
	// run simulates up to left meetings and returns how many it did. end is 1 if the goal is reached, stuck if it is
	// not and no meeting can change anything, else 0.
	run(ctx context.Context, r engine.Row, m engine.Member, left uint64) (met, end uint64, err error)
	// measure returns the values of the series that are reported every round, in the order of the series.
	measure(r engine.Row) []float64
}

// recordBytes is the number of bytes gathered for each execution in a round: whether it ended (8), and its meetings
// (8).
const recordBytes = 16

func gatherBytes(s optim.Shape) map[collective.Op]int64 {
	return map[collective.Op]int64{"executions": s.AllGatherBytes(recordBytes)}
}

// advance runs one round of all executions of this worker. series names the values that measure returns. right returns
// the value of the series "right" for a row that ended, and false if the protocol has no expected output.
//
// The report counts meetings as samples. One pass of the run is as many ended executions as there are members, so that
// `epochs 1` ends the run when all executions have ended. advance is collective: every worker must call it.
func advance(
	ctx context.Context,
	e *optim.Env,
	k optim.Values,
	series []string,
	s simulation,
	right func(engine.Row) (float64, bool),
) (rep optim.Report, err error) {
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
			met, status, err := s.run(ctx, r, m, left)
			if err != nil {
				return rep, err
			}
			clock.U[i] += met
			mine.URow(r)[1] = met
			switch status {
			case stuck:
				end.U[i] = stuck
			case 1:
				end.U[i] = 1 + clock.U[i]
				once = append(once, optim.Point{Member: m, Series: seriesTime.Name, Value: float64(clock.U[i]) / k.Get("n")})
			}
			if status != 0 {
				mine.URow(r)[0] = 1
			}
			if y, ok := right(r); ok && status != 0 {
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

// executions implements simulation for a finite-state protocol.
type executions struct {
	finite
	e        *optim.Env
	k        optim.Values
	round    uint64
	table    *Table
	n        uint64
	want     int             // index of the expected output in table.Outputs, -1 if there is none
	agents   engine.Host     // state+1 of each agent; has no rows if executions are simulated by counts
	counts   engine.Host     // agents in each state; has no rows if executions are simulated agent by agent
	byCounts *countSimulator // nil if executions are simulated agent by agent
	tally    []uint64        // scratch of count: agents in each state
}

// Round implements optim.Program.
func (p finite) Round(ctx context.Context, e *optim.Env, k optim.Values, round uint64) (optim.Report, error) {
	var key any = p.name
	if p.key != nil {
		key = p.key(k)
	}
	table := e.Memo(key, func() any { return p.table(k) }).(*Table)
	s := &executions{finite: p, e: e, k: k, round: round, table: table, n: uint64(k.I("n")), want: -1,
		agents: e.Record(p.blockName(optim.BlockAgents, k)), counts: e.Record(p.blockName(optim.BlockCounts, k))}
	if p.right != nil {
		s.want = slices.Index(s.table.Outputs, p.right(k))
	}
	if s.agents.Rows == 0 {
		s.byCounts = newCountSimulator(s.table, s.n)
	}
	s.tally = make([]uint64, len(s.table.States))
	series := []string{seriesLoss.Name}
	for _, name := range p.shares(s.table) {
		series = append(series, "share."+name)
	}
	return advance(ctx, e, k, series, s, s.answer)
}

// Centre implements optim.Program. A protocol has no model: it writes nothing.
func (p finite) Centre(context.Context, *optim.Env, optim.Values, engine.Mat) error { return nil }

// count returns the number of agents in each state of row r. The result is valid until the next call.
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
	if s.byCounts != nil {
		met, reached, err = s.byCounts.run(ctx, count, left, random)
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
	if s.outputs != nil {
		count = s.table.byOutput(count)
	}
	for _, c := range count {
		out = append(out, float64(c)/float64(s.n))
	}
	return out
}

// answer returns 1 if row r, which has ended, has the expected output, else 0. It returns false if the protocol expects
// no output.
func (s *executions) answer(r engine.Row) (float64, bool) {
	if s.want < 0 {
		return 0, false
	}
	if s.table.loss(s.count(r), s.n, s.want) == 0 {
		return 1, true
	}
	return 0, true
}
