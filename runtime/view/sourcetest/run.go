package sourcetest

import (
	"fmt"
	"math"

	"brood/models/engine"
	"brood/models/noise"
	"brood/optim"
	"brood/optim/collective"
	"brood/optim/gossip"
	"brood/runtime/event"
	"brood/runtime/view"
)

// Algorithm is the one that [Run] names: a knob of every kind for screens to show. It cannot train.
func Algorithm() *optim.Algorithm {
	return &optim.Algorithm{
		Name: "sample", Title: "Sample", Paper: "none", Doc: "made up for tests of screens",
		Knobs: []optim.Knob{
			{
				Name:    "eta",
				Label:   "η",
				Title:   "learning rate",
				Doc:     "step size of the outer update of a replica",
				Max:     100,
				Default: 0.1,
				Scale:   optim.Log,
			},
			{
				Name:    "ell",
				Label:   "ℓ",
				Title:   "inner steps",
				Unit:    "steps",
				Doc:     "inner steps between couplings",
				Min:     1,
				Max:     10000,
				Default: 25,
				Integer: true,
				Scale:   optim.Log,
			},
			{
				Name:    "gamma",
				Label:   "γ",
				Title:   "scope",
				Unit:    "divisor",
				Doc:     "divisor of the attraction of y to x: larger is looser",
				Min:     1e-9,
				Max:     1e12,
				Default: 100,
				Scale:   optim.Log,
			},
			{
				Name:    "alpha",
				Label:   "α",
				Title:   "averaging",
				Doc:     "weight of the past in the running average z",
				Max:     1,
				Default: 0.75,
			},
			{
				Name:    "variant",
				Title:   "variant",
				Doc:     "which form of the rule",
				Choices: []string{"paper", "arxiv"},
				Default: 1,
			},
		},
		Series: []optim.Series{{Name: "loss", Title: "training loss", Unit: "nats", Kind: optim.PerMember}},
	}
}

// machines are the coordinator's process, which hosts no member, and the three workers of [Run]: the second is on a
// device, and the last is of a version that reports no values.
func machines(r uint64) *event.Machines {
	out := &event.Machines{Round: r, Of: []event.Machine{{Worker: event.Here}, {Worker: 1}, {Worker: 2}, {Worker: 3}}}
	for i := range out.Of {
		x := wobble(r, uint64(100+i))
		v := map[event.Measure]float64{
			event.Busy: 3.2 + 0.4*x, event.Cores: 4, event.Load: 3.5 + 0.4*x, event.AllCores: 4,
			event.Memory: 3e8 + 1e6*float64(r), event.MemoryUsed: 5e9 + 1e8*x, event.MemoryTotal: 16e9,
			event.RoundTrip: 0.0004 + 0.0001*x, event.Sent: 2e6 + 2e5*x, event.Received: 2e6 - 2e5*x,
		}
		switch i {
		case 0:
			delete(v, event.RoundTrip)
			delete(v, event.Sent)
			delete(v, event.Received)
			v[event.Busy] = 0.03
		case 2:
			v[event.DeviceUsed], v[event.DeviceTotal], v[event.DeviceLoad], v[event.DeviceHeat] = 12e9, 80e9, 0.9+0.05*x, 61
			v[event.Cores], v[event.AllCores], v[event.MemoryTotal] = 16, 64, 128e9
		case 3:
			v = map[event.Measure]float64{event.RoundTrip: v[event.RoundTrip], event.Sent: v[event.Sent],
				event.Received: v[event.Received]}
		}
		if out.Of[i].Values = v; i == 1 || i == 2 { // the third reports only its total
			out.Of[i].To = map[int]float64{3: v[event.Sent] / 4, 3 - i: 3 * v[event.Sent] / 4}
		}
	}
	return out
}

// Run is a made-up recording of so many rounds with `members` members on three workers: falling losses, edits, a worker
// that is lost, evaluations. Its time starts at second 1e9 and a round takes 100 ms. Equal arguments give equal
// records.
func Run(members, rounds int) (out []event.Record) {
	at := int64(1e18)
	put := func(r event.Record) {
		r.At = at
		out = append(out, r)
	}
	roster := collective.Place(collective.IDs(members), []int{1, 2, 3})
	put(event.Record{Config: &event.Config{
		Version: 1,
		Preset:  "sample",
		Model:   "lenet",
		Data:    "glyphs",
		Seed:    1,
		Params:  61706,
		Limit:   event.Limit{Rounds: uint64(2 * rounds)},
	}})
	put(event.Record{Plan: &event.Plan{Epoch: 1, From: event.Fresh, New: roster, Algorithm: "sample", Cause: "start"}})
	put(event.Record{Edit: &event.Edit{Algorithm: "sample", Knob: "gamma", Expr: "exp:100*0.999/round", By: "preset"}})
	put(event.Record{State: &event.State{Phase: event.Training}})
	var p event.Progress
	for r := uint64(1); r <= uint64(rounds); r++ {
		at += 1e8
		loss, fit, spread := make([]float64, members), make([]float64, members), make([]float64, members)
		for i := range members {
			t := float64(r) / 60
			noise := wobble(r, uint64(i))
			loss[i] = 2.4*math.Exp(-t) + 0.12 + 0.03*float64(i%7) + 0.25*math.Exp(-t/3)*noise*noise
			fit[i] = -0.9*loss[i] - 0.02
			spread[i] = 0.6*math.Exp(-t/4) + 0.02*noise
		}
		put(event.Record{Points: &event.Points{Round: r, Series: "loss", Members: roster.Members, Values: loss}})
		if r%4 == 0 {
			put(event.Record{Points: &event.Points{Round: r, Series: view.Fitness, Members: roster.Members, Values: fit}})
			put(event.Record{Points: &event.Points{Round: r, Series: view.Spread, Members: roster.Members, Values: spread}})
			put(event.Record{Points: &event.Points{
				Round:   r,
				Series:  view.CentreLoss,
				Members: []engine.Member{view.Whole},
				Values:  []float64{2.3*math.Exp(-float64(r)/50) + 0.1},
			}})
		}
		if r%8 == 0 {
			put(event.Record{Machines: machines(r)})
		}
		if r%4 == 0 {
			p = event.Progress{
				Rounds:  r,
				Steps:   25 * r * uint64(members),
				Samples: 3200 * r * uint64(members),
				Epochs:  float64(r) / 100,
			}
			bytes := map[collective.Op]int64{"couple": 4 * 35344, "centre": 4 * 5904}
			sent := map[collective.Op]int64{"couple": 4 * 35344, "centre": 4 * 5904}
			if r == 200 {
				sent["couple"] -= 999
			}
			put(event.Record{Commit: &event.Commit{
				Epoch:      1,
				To:         r,
				Hash:       fmt.Sprintf("blake3:%064x", r),
				Progress:   p,
				Sent:       sent,
				Predicted:  bytes,
				Evaluation: map[collective.Op]int64{"probe": 2100},
				Overhead:   4800,
				Rounds:     4,
				Nanos:      4e8,
			}})
		}
		switch r {
		case uint64(rounds) / 4:
			put(event.Record{Edit: &event.Edit{At: r + 2, Algorithm: "sample", Knob: "ell", Expr: "10", By: "ann"}})
		case uint64(rounds) / 2:
			put(event.Record{Evaluation: &event.Evaluation{Round: r, TestError: 1.42, TestLoss: 0.06, Samples: 10000}})
			put(event.Record{Checkpoint: &event.Checkpoint{
				Round:     r,
				Epoch:     1,
				Roster:    roster,
				Algorithm: "sample",
				Progress:  p,
			}})
		case uint64(rounds) * 3 / 4:
			put(event.Record{Alert: &event.Alert{
				Round:  r,
				Level:  "warning",
				Kind:   "collapse",
				Text:   "spread below 0.05 (was 0.09): replicas are collapsing",
				Member: view.Whole,
			}})
		}
	}
	return out
}

// Gossip is [Run] of members who meet in uniformly drawn pairs, half as many a round as there are members; both report
// the meeting.
func Gossip(members, rounds int) []event.Record {
	ids := collective.IDs(members)
	return Partners(Run(members, rounds), func(round uint64) (p *event.Points) {
		p = &event.Points{}
		met := make([][]float64, members)
		for _, pair := range gossip.Meetings(noise.Key{Purpose: noise.Pair, Round: round}, ids, members/2) {
			a, b := pair[0], pair[1]
			met[a], met[b] = append(met[a], float64(b)), append(met[b], float64(a))
		}
		for m, partners := range met {
			if len(partners) == 0 {
				partners = []float64{float64(m)}
			}
			for _, x := range partners {
				p.Members, p.Values = append(p.Members, engine.Member(m)), append(p.Values, x)
			}
		}
		return p
	})
}

// Partners puts points of the series partner behind each round's losses; of gives their members and values.
func Partners(rs []event.Record, of func(round uint64) *event.Points) (out []event.Record) {
	for _, r := range rs {
		if out = append(out, r); r.Points != nil && r.Points.Series == "loss" {
			p := of(r.Points.Round)
			p.Round, p.Series = r.Points.Round, view.Partner
			out = append(out, event.Record{At: r.At, Points: p})
		}
	}
	return out
}

// wobble is between -1 and 1, the same for the same arguments.
func wobble(a, b uint64) float64 {
	x := (a*0x9e3779b97f4a7c15 ^ b*0xbf58476d1ce4e5b9) + 0x94d049bb133111eb
	x ^= x >> 31
	x *= 0xd6e8feb86659fd93
	x ^= x >> 29
	return float64(int64(x)) / math.MaxInt64
}
