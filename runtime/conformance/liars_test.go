package conformance

import (
	"context"
	"slices"
	"strings"
	"testing"

	"brood/models/engine"
	"brood/optim/collective"
	"brood/transport/local"
)

// liar is the number of the worker that lies.
const liar = 3

// lyingLink sends other frames of rounds than its worker means to, from a number of frames on.
type lyingLink struct {
	collective.Link
	honest int // frames to one peer that are sent as they are
	sent   map[int]int
	change func(to int, p []byte) []byte
}

func (l *lyingLink) Send(to int, epoch uint32, seq uint64, op string, p []byte) error {
	plans := []string{"audit", "centre", "mirror", "reshape"}
	if l.sent[to]++; l.sent[to] > l.honest && len(p) >= 4 && !slices.Contains(plans, op) {
		p = l.change(to, p)
	}
	return l.Link.Send(to, epoch, seq, op, p)
}

// lyingEngine multiplies gradients by factor, a row.
type lyingEngine struct {
	engine.Engine
	factor engine.Mat
}

func (e lyingEngine) Do(ctx context.Context, tasks ...engine.Task) error {
	for _, t := range tasks {
		if err := e.Engine.Do(ctx, t); err != nil {
			return err
		}
		if g, ok := t.(engine.Gradients); ok {
			if err := e.Engine.Do(ctx, engine.Product{Dst: g.G, A: g.G, B: e.factor}); err != nil {
				return err
			}
		}
	}
	return nil
}

// TestLiars: a worker that sends wrong frames to one peer, or NaN to all, is evicted, and no other; the run has the
// hash of one without a liar. A worker that computes wrong gradients is evicted or hosts no members any more.
func TestLiars(t *testing.T) {
	flip := func(p []byte) []byte { p[0] ^= 1; return p }
	for name, c := range map[string]struct {
		audit  float64
		change func(to int, p []byte) []byte
		wrong  bool // it computes wrong gradients
		quic   bool // frames travel over sockets
	}{
		"one peer": {0.05, func(to int, p []byte) []byte {
			if to == 2 || to == 4 { // the second one if the first hosts no members any more
				return flip(p)
			}
			return p
		}, false, false},
		"shorter frames": {0, func(to int, p []byte) []byte {
			if to == 0 || to == 1 {
				return p[:len(p)-4]
			}
			return p
		}, false, false},
		"NaN to all": {0.05, func(_ int, p []byte) []byte {
			for i := range p {
				p[i] = 0xff
			}
			return p
		}, false, false},
		"wrong gradients": {1, nil, true, false},
		"one peer, over QUIC": {0.05, func(to int, p []byte) []byte {
			if to == 2 || to == 4 {
				return flip(p)
			}
			return p
		}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, algorithm := range []string{"dp-sgd", "parle", "localsgd", "popsgd", "demo", "sgp"} {
				r := quick(Rig{Algorithm: algorithm, Members: 10, Workers: 5, Rounds: 60, Seed: 4, OnLoss: "mirror"})
				want := run(t, r).Hash()
				r.Audit = c.audit
				last, link := 0, func(hub *local.Hub, id int) collective.Link { return hub.Link(id) }
				if c.quic {
					s := &sockets{t: t}
					link = s.link
					defer s.closeAll()
				}
				r.Link = func(hub *local.Hub, id int) collective.Link {
					last = id
					if id != liar || c.change == nil {
						return link(hub, id)
					}
					return &lyingLink{link(hub, id), 4, map[int]int{}, c.change}
				}
				r.Engine = func(toy *Toy) engine.Engine {
					if c.wrong && last == liar {
						factor, err := toy.Alloc(1, toy.Layout().Params)
						if err == nil {
							err = toy.Do(t.Context(), engine.Fill{Dst: engine.All(factor), Value: 1.01})
						}
						if err != nil {
							t.Fatal(err)
						}
						return lyingEngine{toy, factor}
					}
					return toy
				}
				o := run(t, r)
				if !c.wrong && o.Hash() != want {
					t.Errorf("%s: hash %s, without a liar %s", algorithm, o.Hash(), want)
				}
				evicted, hosts := "", []int(nil)
				for _, rec := range o.Log.Records {
					if a := rec.Alert; a != nil && a.Kind == "lost-worker" {
						evicted += a.Text + "\n"
					}
					if rec.Plan != nil {
						hosts = rec.Plan.New.Workers()
					}
				}
				if evicted != "" && (!strings.HasPrefix(evicted, "worker 3 is lost: it lies or is faulty") ||
					strings.Count(evicted, "\n") != 1) || evicted == "" && !c.wrong || slices.Contains(hosts, liar) {
					t.Errorf("%s, hosts %v: %s", algorithm, hosts, evicted)
				}
			}
		})
	}
}
