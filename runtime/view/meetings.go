package view

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/fxamacker/cbor/v2"

	"brood/models/engine"
	"brood/optim/collective"
	"brood/runtime/event"
)

// Meetings are who met whom in the last rounds. They follow from the series [Partner], which is kept in no other form.
// What they hold is bounded: so many rounds, and fewer where those would have more than so many meetings.
type Meetings struct {
	most   uint64 // rounds that are kept: metRounds, halved each time they held more than maxMet meetings
	count  int    // meetings of all rounds
	rounds []metIn
}

// metIn is one round's meetings. The pairs never change.
type metIn struct {
	round uint64
	pairs []pair
}

// pair is two members, the lower id first.
type pair struct{ a, b engine.Member }

const (
	metRounds = 1000
	maxMet    = 1 << 14
)

// Rounds is how many rounds the meetings are of.
func (s *Meetings) Rounds() int { return len(s.rounds) }

// Pairs are the meetings from the oldest kept to the newest: of each its round and the two, the lower id first.
func (s *Meetings) Pairs(yield func(round uint64, a, b engine.Member)) {
	for _, in := range s.rounds {
		for _, p := range in.pairs {
			yield(in.round, p.a, p.b)
		}
	}
}

// Between says how often pairs met. It cuts the members into blocks of `each`, the last one of what is left, and gives
// for two blocks the mean over the pairs of a member of one and a member of the other: symmetric, NaN where there is no
// such pair, which is the diagonal where each is 1. even is the mean over all pairs. The rows are the caller's.
func (s *Meetings) Between(r collective.Roster, each int) (rows [][]float64, even float64) {
	n := len(r.Members)
	k := (n + each - 1) / each
	rows = make([][]float64, k)
	for i := range rows {
		rows[i] = make([]float64, k)
	}
	rank := r.Rank
	if n > 0 && int(r.Members[n-1]-r.Members[0]) == n-1 { // no gaps
		rank = func(m engine.Member) int { return int(m) - int(r.Members[0]) }
	}
	for _, in := range s.rounds {
		for _, p := range in.pairs {
			if a, b := rank(p.a), rank(p.b); a >= 0 && b >= 0 && a < n && b < n {
				rows[a/each][b/each]++
				even++
			}
		}
	}
	size := func(i int) int { return min(each, n-i*each) }
	for i := range rows {
		for j := range i + 1 {
			x, pairs := rows[i][j]+rows[j][i], size(i)*size(j)
			if i == j {
				x, pairs = rows[i][i], size(i)*(size(i)-1)/2
			}
			rows[i][j] = x / float64(pairs) // 0/0 is NaN
			rows[j][i] = rows[i][j]
		}
	}
	return rows, even / float64(n*(n-1)/2)
}

// met takes a round's partners. Those who meet both tell of it, of a push only who sends: what both tell is one
// meeting.
func (v *View) met(p *event.Points) {
	if v.Meetings == nil {
		v.Meetings = &Meetings{most: metRounds}
	}
	v.Meetings.add(p.Round, pairsOf(p))
}

// pairsOf are the meetings of a round, ascending.
func pairsOf(p *event.Points) (out []pair) {
	var up, down []pair // told by the lower member, and by the higher
	for i, m := range p.Members[:min(len(p.Members), len(p.Values))] {
		x := p.Values[i]
		if m == Whole || !(x >= 0 && x < float64(Whole)) || x != math.Trunc(x) {
			continue
		}
		switch partner := engine.Member(x); {
		case m < partner:
			up = append(up, pair{m, partner})
		case m > partner:
			down = append(down, pair{partner, m})
		}
	}
	slices.SortFunc(up, pair.compare)
	slices.SortFunc(down, pair.compare)
	for len(up) > 0 && len(down) > 0 {
		c := up[0].compare(down[0])
		if c <= 0 {
			out, up = append(out, up[0]), up[1:]
		} else {
			out = append(out, down[0])
		}
		if c >= 0 {
			down = down[1:]
		}
	}
	return append(append(out, up...), down...)
}

func (p pair) compare(q pair) int {
	x, y := uint64(p.a)<<32|uint64(p.b), uint64(q.a)<<32|uint64(q.b)
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// add takes the meetings of a round after those before; another order is damage.
func (s *Meetings) add(round uint64, pairs []pair) {
	if n := len(s.rounds); round >= maxRound || n > 0 && round <= s.rounds[n-1].round {
		return
	}
	s.rounds, s.count = append(s.rounds, metIn{round, pairs}), s.count+len(pairs)
	s.drop()
	for s.count > maxMet && s.most > 1 {
		s.most /= 2
		s.drop()
	}
}

// drop forgets the rounds that are too long ago.
func (s *Meetings) drop() {
	last := s.rounds[len(s.rounds)-1].round
	for s.rounds[0].round+s.most <= last {
		s.count -= len(s.rounds[0].pairs)
		s.rounds = s.rounds[1:]
	}
}

// truncate forgets what lies after round r.
func (s *Meetings) truncate(r uint64) {
	for n := len(s.rounds); n > 0 && s.rounds[n-1].round > r; n-- {
		s.count -= len(s.rounds[n-1].pairs)
		s.rounds = s.rounds[: n-1 : n-1]
	}
}

// regroup follows a plan: rounds after it are to be done again, members that left take their meetings along, and
// another algorithm begins with none.
func (v *View) regroup(p *event.Plan) {
	old := v.Meetings
	if old == nil {
		return
	}
	old.truncate(p.At)
	switch {
	case swaps(p):
		v.Meetings = nil
	case !slices.Equal(p.Old.Members, p.New.Members):
		v.Meetings = &Meetings{most: metRounds}
		for _, in := range old.rounds {
			var pairs []pair
			for _, x := range in.pairs {
				if p.New.Has(x.a) && p.New.Has(x.b) {
					pairs = append(pairs, x)
				}
			}
			v.Meetings.add(in.round, pairs)
		}
	}
}

func (s *Meetings) clone() *Meetings {
	if s == nil {
		return nil
	}
	s.rounds = slices.Clip(s.rounds)
	c := *s
	return &c
}

// wireMeetings is a snapshot's form, as varints: of each round how far it is behind the one before and its number of
// pairs, which ascend; of a pair how far its lower id is above that of the one before, and its higher id above that.
type wireMeetings struct {
	Most   uint64 `cbor:"0,keyasint"`
	Rounds []byte `cbor:"1,keyasint"`
}

// MarshalCBOR writes meetings.
func (s *Meetings) MarshalCBOR() ([]byte, error) {
	w, before := wireMeetings{Most: s.most}, uint64(0)
	for _, in := range s.rounds {
		w.Rounds = binary.AppendUvarint(binary.AppendUvarint(w.Rounds, in.round-before), uint64(len(in.pairs)))
		before = in.round
		above := engine.Member(0)
		for _, p := range in.pairs {
			w.Rounds = binary.AppendUvarint(binary.AppendUvarint(w.Rounds, uint64(p.a-above)), uint64(p.b-p.a))
			above = p.a
		}
	}
	return cbor.Marshal(w)
}

// UnmarshalCBOR reads meetings, or says what is wrong with them.
func (s *Meetings) UnmarshalCBOR(p []byte) error {
	var w wireMeetings
	if err := cbor.Unmarshal(p, &w); err != nil {
		return err
	}
	*s = Meetings{most: min(max(w.Most, 1), metRounds)}
	rest, whole := w.Rounds, true
	next := func(below uint64) uint64 {
		x, n := binary.Uvarint(rest)
		if whole = whole && n > 0 && x < below; !whole {
			return 0
		}
		rest = rest[n:]
		return x
	}
	for round := uint64(0); len(rest) > 0 && whole; {
		round += next(maxRound)
		var pairs []pair
		a := uint64(0)
		for n := next(uint64(len(rest))); n > 0 && whole; n-- {
			a += next(uint64(Whole))
			b := a + next(uint64(Whole))
			pairs, whole = append(pairs, pair{engine.Member(a), engine.Member(b)}), whole && a < b && b < uint64(Whole)
		}
		if whole {
			s.add(round, pairs)
		}
	}
	if !whole {
		return errShort
	}
	return nil
}
