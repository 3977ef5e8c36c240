package remote

import (
	"fmt"
	"slices"

	"brood/runtime/event"
	"brood/transport/quic"
	"brood/transport/wire"
)

// shape sets the speed of links, or removes its limit: see event.Link. It fails for a worker that is not on the roster.
func (r *run) shape(l event.Link) error {
	if err := shapeFor(l).Check(); err != nil {
		return err
	}
	r.srv.mu.Lock()
	defer r.srv.mu.Unlock()
	for _, end := range []int{l.From, l.To} {
		if end != event.Every && !r.onRoster(end) {
			return fmt.Errorf("there is no worker %d: the roster has %v", end, r.indices())
		}
	}
	r.shapes = withShape(r.shapes, l)
	for _, t := range r.handles {
		if t.joined {
			t.shape(l)
		}
	}
	r.shapeLocal()
	return nil
}

func shapeFor(l event.Link) quic.Shape {
	return quic.Shape{Rate: l.Rate, Delay: l.Delay, Jitter: l.Jitter, Loss: l.Loss}
}

// shapeLocal applies the shapes to the links of the coordinator's own workers. The caller holds mu.
func (r *run) shapeLocal() {
	for _, w := range r.roster {
		if w.Node.Equal(r.srv.node.ID()) {
			applyShapes(r.mesh, int(w.Index), r.shapes, r.roster)
		}
	}
}

// applyShapes applies the newest shape of each link of one worker. A link without a shape is left unchanged.
func applyShapes(mesh *quic.Mesh, self int, shapes []event.Link, roster wire.Roster) {
	for _, w := range roster {
		if l := shapeOf(shapes, self, int(w.Index)); l != nil && int(w.Index) != self {
			_ = mesh.Shape(uint32(self), w.Index, shapeFor(*l)) // fails between workers of one process: they have no link
		}
	}
}

// withShape returns the shapes with a new one, which replaces the ones that it covers.
func withShape(shapes []event.Link, l event.Link) []event.Link {
	kept := slices.DeleteFunc(slices.Clone(shapes), func(o event.Link) bool {
		return (l.From == event.Every || l.From == o.From) && (l.To == event.Every || l.To == o.To)
	})
	return append(kept, l)
}

// shapeOf returns the newest shape for a link; nil if there is none.
func shapeOf(shapes []event.Link, from, to int) (found *event.Link) {
	for i, l := range shapes {
		if (l.From == event.Every || l.From == from) && (l.To == event.Every || l.To == to) {
			found = &shapes[i]
		}
	}
	return found
}

func (r *run) onRoster(w int) bool {
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
