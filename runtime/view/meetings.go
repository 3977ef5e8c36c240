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

// Meetings lists which members were paired in the last rounds. They come from the series [Partner], which the view does
// not store in another form. At most metRounds rounds are stored, and fewer if they have more than maxMet meetings.
type Meetings struct {
	most   uint64 // maximum age in rounds: metRounds, halved each time there are more than maxMet meetings
	count  int    // number of meetings in all rounds
	rounds []metIn
}

// metIn is the meetings of one round. pairs is immutable.
type metIn struct {
	round uint64
	pairs []pair
}

// pair is two members, with the lower id first.
type pair struct{ a, b engine.Member }

const (
	metRounds = 1000
	maxMet    = 1 << 14
)

// Rounds returns the number of rounds with stored meetings.
func (s *Meetings) Rounds() int { return len(s.rounds) }

// Pairs calls yield for each stored meeting, oldest first, with its round and its members, the lower id first.
func (s *Meetings) Pairs(yield func(round uint64, a, b engine.Member)) {
	for _, in := range s.rounds {
		for _, p := range in.pairs {
			yield(in.round, p.a, p.b)
		}
	}
}

// Between returns how often members met. It divides the members of the roster into blocks of size each; the last one
// may be smaller. rows[i][j] is the mean number of meetings over all pairs of a member of block i and a member of block
// j. The matrix is symmetric. An entry without pairs is NaN, as the diagonal with each = 1. even is the mean over all
// pairs. The caller owns rows.
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

// met adds the partners of a round. In a symmetric exchange both members report their partner; that is one meeting. In
// a push only the sender does.
func (v *View) met(p *event.Points) {
	if v.Meetings == nil {
		v.Meetings = &Meetings{most: metRounds}
	}
	v.Meetings.add(p.Round, pairsOf(p))
}

// pairsOf returns the meetings of a round, ascending and without duplicates between the reports of both members.
func pairsOf(p *event.Points) (out []pair) {
	var up, down []pair // reported by the lower member, and by the higher one
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

// add appends the meetings of a round. It ignores rounds that are not after the last one.
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

// drop removes the rounds that are too old.
func (s *Meetings) drop() {
	last := s.rounds[len(s.rounds)-1].round
	for s.rounds[0].round+s.most <= last {
		s.count -= len(s.rounds[0].pairs)
		s.rounds = s.rounds[1:]
	}
}

// truncate removes the meetings after round r.
func (s *Meetings) truncate(r uint64) {
	for n := len(s.rounds); n > 0 && s.rounds[n-1].round > r; n-- {
		s.count -= len(s.rounds[n-1].pairs)
		s.rounds = s.rounds[: n-1 : n-1]
	}
}

// regroup updates the meetings for a plan. It removes those after the round of the plan and those of members that left;
// if the algorithm changes, it removes all.
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

// wireMeetings is the encoded form of Meetings, in varints. A round is its distance to the previous round, its number
// of pairs, and the pairs in ascending order. A pair is the difference of its lower id to that of the previous pair,
// and the difference of its higher id to its lower one.
type wireMeetings struct {
	Most   uint64 `cbor:"0,keyasint"`
	Rounds []byte `cbor:"1,keyasint"`
}

// MarshalCBOR implements cbor.Marshaler.
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

// UnmarshalCBOR implements cbor.Unmarshaler. Its input is untrusted; it returns an error if it is inconsistent.
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
