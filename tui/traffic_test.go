package tui

import (
	"strings"
	"testing"

	"brood/runtime/view"
	"brood/runtime/view/sourcetest"
	"brood/tui/cell"
	"brood/tui/panel"
)

// TestTraffic checks that the Network screen draws a line for each operation, shows the difference to the prediction,
// marks the rounds with a difference, requests links like the Fleet screen, and exports its values.
func TestTraffic(t *testing.T) {
	c := &fleetSource{Memory: sourcetest.NewMemory(sourcetest.Run(6, 400)...), now: fleetOf(3)}
	d := open(t, 200, 50, nil, func(o *panel.Options) { o.Source = c })
	if d.press("5"); c.asked == 0 {
		t.Error("the links were not requested")
	}
	d.shows("traffic  bytes a round", "all workers · ", "a centre 5.9 kB", "b couple 35.3 kB", "≠ predicted by -999 B", "w1")
	alerts := 0
	for x := range 200 {
		if p := d.grid.At(x, 10); p.R == '┆' && p.Role == cell.Alert {
			alerts++
		}
	}
	if alerts != 1 {
		t.Errorf("%d rounds are marked, want the one whose bytes are not as predicted", alerts)
	}
	d.Focus = panel.Traffic
	all := d.panel(panel.Traffic).Export(d.model.Host)(d.Shown)
	names := map[string]int{}
	for _, r := range all[1:] {
		names[r[0]]++
	}
	if names["centre"] != 100 || names["couple"] != 100 || names[view.Excess] == 0 || len(names) != 3 {
		t.Errorf("rows by series: %v", names)
	}
	if d.press("o"); strings.Contains(d.screenText(), "log y") {
		t.Error("o does not turn the axis")
	}
}
