package panel

import (
	"brood/tui/cell"
)

// Placement is a panel's area in a frame.
type Placement struct {
	Panel ID
	Area  cell.Rect
}

// PanelIDs are the panels of a layout, each once.
func PanelIDs(placed []Placement) (out []ID) {
	for _, p := range placed {
		out = append(out, p.Panel)
	}
	return out
}

// What fits where.
const (
	MinW, MinH = 60, 12 // below: vital numbers
	PanelsW    = 80     // several panels
	FullW      = 120    // the rail has a place
	WideW      = 160    // and the population beside the loss
	RailW      = 40
)
