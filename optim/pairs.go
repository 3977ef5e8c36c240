package optim

import "brood/models/engine"

// SeriesPartner is declared by an algorithm whose members meet in pairs, so that the workbench draws the meetings.
var SeriesPartner = Series{Name: "partner", Title: "partner", Kind: PairEdges,
	Doc: "members that this member met in the round, a point per meeting in order, the last meeting last; " +
		"its own id if it met none. Both members of a meeting have a point; of a push only the sender"}

// PartnersOf returns the points of SeriesPartner for the members hosted here, in the order of the meetings of the whole
// population. With pushes, only the first member of a pair reports it. A pair of a member and itself is no meeting.
func (e *Env) PartnersOf(meetings [][2]engine.Member, pushes bool) (out []Point) {
	met := make([][]engine.Member, len(e.Mine))
	add := func(m, partner engine.Member) {
		if r := e.Row(m); r >= 0 && m != partner {
			met[r] = append(met[r], partner)
		}
	}
	for _, p := range meetings {
		if add(p[0], p[1]); !pushes {
			add(p[1], p[0])
		}
	}
	for r, m := range e.Mine {
		if len(met[r]) == 0 {
			met[r] = []engine.Member{m}
		}
		for _, p := range met[r] {
			out = append(out, Point{Member: m, Series: SeriesPartner.Name, Value: float64(p)})
		}
	}
	return out
}
