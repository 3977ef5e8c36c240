package archive

import "testing"

// TestTurned checks the loss of a branch since its fork next to that of its parent, which has the round as its loss.
func TestTurned(t *testing.T) {
	parent, child := begin(1, nil), forked(1, true)
	parent.rounds(40)
	child.rounds(30)
	for _, r := range child.out {
		if r.Points != nil {
			for i := range r.Points.Values {
				r.Points.Values[i] = 10
			}
		}
	}
	p, c := parent.run(t, "p"), child.run(t, "c")
	if got := c.Turned(); got != "" {
		t.Errorf("without its parent: %q", got)
	}
	Join([]*Run{p, c})
	if got, want := c.Turned(), "training loss -0.5 (-4.8 %) in 20 rounds, without it +20"; got != want {
		t.Errorf("the branch: %q, want %q", got, want)
	}
	if got := p.Turned(); got != "" {
		t.Errorf("the parent: %q", got)
	}
}
