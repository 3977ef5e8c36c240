package remote

import (
	"fmt"
	"slices"

	"brood/runtime/event"
	"brood/transport/quic"
	"brood/transport/wire"
)

// shape slows links down, or lets them go: see event.Link.
func (r *run) shape(l event.Link) error {
	if err := shapeFor(l).Check(); err != nil {
		return err
	}
	r.srv.mu.Lock()
	defer r.srv.mu.Unlock()
	for _, end := range []int{l.From, l.To} {
		if end != event.Every && !r.enlisted(end) {
			return fmt.Errorf("there is no worker %d: those on the roster are %v", end, r.indices())
		}
	}
	r.shapes = reshaped(r.shapes, l)
	for _, t := range r.seats {
		if t.seated {
			t.shape(l)
		}
	}
	r.shapeHere()
	return nil
}

func shapeFor(l event.Link) quic.Shape {
	return quic.Shape{Rate: l.Rate, Delay: l.Delay, Jitter: l.Jitter, Loss: l.Loss}
}

// shapeHere slows down what the coordinator's own workers send. The caller holds mu.
func (r *run) shapeHere() {
	for _, w := range r.roster {
		if w.Node.Equal(r.srv.node.ID()) {
			applyShapes(r.mesh, int(w.Index), r.shapes, r.roster)
		}
	}
}

// applyShapes makes one worker's links as slow as the newest shape for each says. A link that does not exist has none.
func applyShapes(mesh *quic.Mesh, self int, shapes []event.Link, roster wire.Roster) {
	for _, w := range roster {
		if l := shapeOf(shapes, self, int(w.Index)); l != nil && int(w.Index) != self {
			_ = mesh.Shape(uint32(self), w.Index, shapeFor(*l)) // both may be of one process
		}
	}
}

// reshaped are the shapes with a newer one, which replaces what it covers.
func reshaped(shapes []event.Link, l event.Link) []event.Link {
	kept := slices.DeleteFunc(slices.Clone(shapes), func(o event.Link) bool {
		return (l.From == event.Every || l.From == o.From) && (l.To == event.Every || l.To == o.To)
	})
	return append(kept, l)
}

// shapeOf is the newest shape for a link, nil where there never was one.
func shapeOf(shapes []event.Link, from, to int) (found *event.Link) {
	for i, l := range shapes {
		if (l.From == event.Every || l.From == from) && (l.To == event.Every || l.To == to) {
			found = &shapes[i]
		}
	}
	return found
}

func (r *run) enlisted(w int) bool {
	for _, x := range r.roster {
		if int(x.Index) == w {
			return true
		}
	}
	return false
}

func (r *run) indices() (out []int) {
	for _, x := range r.roster {
		out = append(out, int(x.Index))
	}
	return out
}
