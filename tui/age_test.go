package tui

import (
	"testing"

	"brood/optim"
	"brood/runtime/view/sourcetest"
	"brood/tui/panel"
)

// otherAlgorithm is a second algorithm.
func otherAlgorithm() *optim.Algorithm {
	a := *sourcetest.Algorithm()
	a.Name, a.Series = "other", []optim.Series{{Name: "score", Title: "score", Kind: optim.PerMember}}
	return &a
}

// TestCurvesStopAtASwap checks that curves do not cross unmeasured rounds and that values of the previous algorithm are
// not shown as current.
func TestCurvesStopAtASwap(t *testing.T) {
	change := func(o *panel.Options) { o.Algorithms = append(o.Algorithms, otherAlgorithm()) }
	d := open(t, 200, 50, sourcetest.Swapped(3, 400, false), change)
	d.shows("round 401", "score", "centre val 0.250", "vote")
	d.hides("━━ best", "▒ worst", "· spread", "couple ")
	d = open(t, 200, 50, sourcetest.Swapped(3, 400, true), change)
	d.shows("training loss", "couple")
	d.hides("━━ best", "· spread", "vote ")
	golden(t, "swapped-200x50", d.screenText())
	d = open(t, 80, 24, sourcetest.Swapped(3, 400, true), change)
	golden(t, "swapped-80x24", d.screenText())
}
