package view

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"brood/models/engine"
	"brood/optim/collective"
	"brood/runtime/event"
)

// encounters generates the meetings of a round: both partners report one, but only the first reports a push.
func encounters(rng *rand.Rand, ids []engine.Member, n int, push bool) (p *event.Points, pairs [][2]engine.Member) {
	p = &event.Points{Series: Partner}
	met := map[engine.Member][]float64{}
	for range n {
		i, j := rng.IntN(len(ids)), rng.IntN(len(ids)-1)
		if j >= i {
			j++
		}
		a, b := ids[i], ids[j]
		if push && len(met[a]) > 0 {
			continue
		}
		if push && slices.Contains(met[b], float64(a)) {
			continue // both ways in one round is one meeting
		}
		met[a] = append(met[a], float64(b))
		if !push {
			met[b] = append(met[b], float64(a))
		}
		pairs = append(pairs, [2]engine.Member{a, b})
	}
	for _, m := range ids {
		if len(met[m]) == 0 {
			met[m] = []float64{float64(m)}
		}
		for _, x := range met[m] {
			p.Members, p.Values = append(p.Members, m), append(p.Values, x)
		}
	}
	return p, pairs
}

// once is one meeting: the twin keeps them all and counts pair by pair.
type once struct {
	round uint64
	pair  [2]engine.Member
}

func often(all []once, from uint64, a, b engine.Member) (n float64) {
	for _, x := range all {
		if x.round >= from && (x.pair == [2]engine.Member{a, b} || x.pair == [2]engine.Member{b, a}) {
			n++
		}
	}
	return n
}

// TestMeetings: counts of pairs and of blocks against the twin, where rounds fall out of the window, for meetings and
// pushes.
func TestMeetings(t *testing.T) {
	for _, push := range []bool{false, true} {
		rng := rand.New(rand.NewPCG(3, 1))
		ids := []engine.Member{0, 1, 2, 4, 5, 9, 11} // ids have gaps after departures
		if push {
			ids = collective.IDs(7)
		}
		roster := collective.Place(ids, []int{1})
		v := New()
		v.Apply(event.Record{Plan: &event.Plan{Epoch: 1, New: roster, Algorithm: "gossip"}})
		var all []once
		for r := uint64(1); r <= metRounds+50; r++ {
			p, pairs := encounters(rng, ids, 3, push)
			p.Round = r
			v.Apply(event.Record{Points: p})
			for _, pair := range pairs {
				all = append(all, once{r, pair})
			}
			if r != 1 && r != 40 && r < metRounds+49 {
				continue
			}
			from := uint64(1)
			if r > metRounds {
				from = r - metRounds + 1
			}
			if want := int(r - from + 1); v.Meetings.Rounds() != want {
				t.Errorf("round %d: meetings of %d rounds, want %d", r, v.Meetings.Rounds(), want)
			}
			for each := 1; each <= 3; each++ {
				got, even := v.Meetings.Between(roster, each)
				total := 0.0
				for i := range got {
					for j := range got {
						sum, pairs := 0.0, 0.0
						for a := i * each; a < min(len(ids), (i+1)*each); a++ {
							for b := j * each; b < min(len(ids), (j+1)*each); b++ {
								if a < b || i != j {
									sum, pairs = sum+often(all, from, ids[a], ids[b]), pairs+1
								}
							}
						}
						if i <= j {
							total += sum
						}
						if x := got[i][j]; pairs == 0 && !math.IsNaN(x) || pairs > 0 && math.Abs(x-sum/pairs) > 1e-12 ||
							pairs > 0 && x != got[j][i] {
							t.Errorf("round %d, push %v, %d a block: %d and %d met %v times, back %v, want %v", r, push, each, i, j, x,
								got[j][i], sum/pairs)
						}
					}
				}
				if total == 0 || math.Abs(even-total/21) > 1e-12 {
					t.Errorf("round %d: %v a pair, want %v", r, even, total/21)
				}
			}
		}
		if v.Find(Partner) != nil {
			t.Error("ids of partners are kept as numbers to be averaged")
		}
	}
}

// TestMeetingsAreBounded: if rounds have many meetings, fewer rounds are kept, halved each time, while the population
// lasts.
func TestMeetingsAreBounded(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 1))
	ids := collective.IDs(300)
	v := New()
	v.Apply(event.Record{Plan: &event.Plan{Epoch: 1, New: collective.Place(ids, []int{1}), Algorithm: "gossip"}})
	for r := uint64(1); r <= 600; r++ {
		p, _ := encounters(rng, ids, 150, false)
		p.Round = r
		v.Apply(event.Record{Points: p})
		if v.Meetings.count > maxMet {
			t.Fatalf("round %d: %d meetings are kept", r, v.Meetings.count)
		}
	}
	if n := v.Meetings.Rounds(); n != metRounds/16 { // 62*150 <= maxMet < 125*150
		t.Errorf("meetings of %d rounds", n)
	}
	count := 0
	for _, in := range v.Meetings.rounds {
		count += len(in.pairs)
	}
	if count != v.Meetings.count {
		t.Errorf("%d meetings, counted %d", count, v.Meetings.count)
	}
	few := collective.Place(collective.IDs(20), []int{1})
	v.Apply(event.Record{Plan: &event.Plan{
		Epoch:     2,
		At:        600,
		From:      event.Workers,
		Old:       v.Plan.New,
		New:       few,
		Algorithm: "gossip",
		OldAlg:    "gossip",
		Cause:     "resize",
	}})
	for r := uint64(601); r <= 900; r++ {
		p, _ := encounters(rng, few.Members, 10, false)
		p.Round = r
		v.Apply(event.Record{Points: p})
	}
	if n := v.Meetings.Rounds(); n != 300+metRounds/16 {
		t.Errorf("with fewer members there is room for %d rounds, want %d", n, 300+metRounds/16)
	}
}

// TestMeetingsFollowPlans: meetings of members that leave are removed, a rollback removes later meetings, and another
// algorithm begins with none.
func TestMeetingsFollowPlans(t *testing.T) {
	four := collective.Place(collective.IDs(4), []int{1})
	v := New()
	v.Apply(event.Record{Plan: &event.Plan{Epoch: 1, New: four, Algorithm: "gossip"}})
	meet := func(round uint64, partner ...float64) {
		v.Apply(event.Record{Points: &event.Points{
			Round:   round,
			Series:  Partner,
			Members: v.Members().Members,
			Values:  partner,
		}})
		v.Apply(event.Record{Commit: &event.Commit{To: round, Rounds: 1, Progress: event.Progress{Rounds: round}}})
	}
	plan := func(at uint64, from event.Source, r collective.Roster, alg string) {
		v.Apply(event.Record{Plan: &event.Plan{
			Epoch:     v.Plan.Epoch + 1,
			At:        at,
			From:      from,
			Old:       v.Members(),
			New:       r,
			OldAlg:    v.Algorithm(),
			Algorithm: alg,
		}})
	}
	total := func(want float64) {
		t.Helper()
		n := float64(len(v.Members().Members))
		if _, even := v.Meetings.Between(v.Members(), 1); math.Abs(even*n*(n-1)/2-want) > 1e-9 {
			t.Errorf("%v meetings, want %v", even*n*(n-1)/2, want)
		}
	}
	meet(1, 1, 0, 3, 2)
	meet(2, 2, 3, 0, 1)
	meet(3, 0, 1, 2, 3) // nobody met anybody
	total(4)
	if v.Meetings.Rounds() != 3 {
		t.Errorf("a round without meetings does not count: %d", v.Meetings.Rounds())
	}
	plan(2, event.Saved, four, "gossip")
	total(4)
	plan(1, event.Saved, four, "gossip")
	total(2)
	meet(2, 3, 2, 1, 0)
	total(4)
	two := collective.Roster{Members: []engine.Member{0, 3}, Owner: []int{1, 1}}
	plan(2, event.Workers, two, "gossip")
	total(1)
	meet(3, 3, 0)
	plan(3, event.Workers, four, "gossip")
	total(2) // 1 and 2 are new members
	if x, _ := v.Meetings.Between(four, 1); x[0][3] != 2 || x[1][2] != 0 {
		t.Errorf("%v", x)
	}
	plan(3, event.Workers, four, "alone")
	if v.Meetings != nil {
		t.Error("meetings of another algorithm are kept")
	}
}

// TestMeetingsOfClones: a view and its clone continue with different rounds, independently of each other.
func TestMeetingsOfClones(t *testing.T) {
	two := collective.Place(collective.IDs(3), []int{1})
	v := New()
	meet := func(v *View, round uint64, partner ...float64) {
		v.Apply(event.Record{Points: &event.Points{Round: round, Series: Partner, Members: two.Members, Values: partner}})
	}
	for r := uint64(1); r <= 5; r++ { // five of a slice that has room for more
		meet(v, r, 1, 0, 2)
	}
	c := v.Clone()
	for r := uint64(6); r <= 9; r++ {
		meet(v, r, 2, 1, 0)
		meet(c, r, 0, 2, 1)
	}
	for i, v := range []*View{v, c} {
		rows, _ := v.Meetings.Between(two, 1)
		want := [][3]float64{{5, 4, 0}, {5, 0, 4}}[i]
		if rows[0][1] != want[0] || rows[0][2] != want[1] || rows[1][2] != want[2] {
			t.Errorf("view %d: %v, want %v", i, rows, want)
		}
	}
}

// TestDamagedMeetings: invalid records change nothing.
func TestDamagedMeetings(t *testing.T) {
	v := New()
	put := func(round uint64, members []engine.Member, values ...float64) {
		v.Apply(event.Record{Points: &event.Points{Round: round, Series: Partner, Members: members, Values: values}})
	}
	put(5, []engine.Member{0, 1}, 1, 0)
	put(6, []engine.Member{Whole, 0, 1, 2, 3, 4, 5}, 1, math.NaN(), math.Inf(1), -1, 0.5, float64(Whole), 1e300)
	put(6, []engine.Member{0, 1}, 1, 0)
	put(4, []engine.Member{0, 1}, 1, 0)
	put(maxRound, []engine.Member{0, 1}, 1, 0)
	put(7, []engine.Member{0, 1, 2}, 1)
	if v.Meetings.Rounds() != 3 || v.Meetings.count != 2 {
		t.Errorf("%d rounds, %d meetings", v.Meetings.Rounds(), v.Meetings.count)
	}
	good, err := cbor.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var back View
	if err := cbor.Unmarshal(good, &back); err != nil {
		t.Fatal(err)
	}
	same(t, "meetings", v, &back)
	for _, bytes := range [][]byte{{1}, {1, 5}, {1, 1, 3}, {1, 1, 3, 0}, {1, 1, 255, 255, 255, 255, 15, 1},
		{1, 1, 254, 255, 255, 255, 15, 1}, {1, 2, 0, 1}, {0x80}, {255, 255, 255, 255, 255, 255, 255, 255, 255, 1, 0}} {
		p, err := cbor.Marshal(wireMeetings{Most: 1 << 60, Rounds: bytes})
		if err != nil {
			t.Fatal(err)
		}
		var m Meetings
		if err := m.UnmarshalCBOR(p); err == nil {
			t.Errorf("%v is read as %+v", bytes, m)
		}
	}
}
