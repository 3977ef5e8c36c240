package panel

import (
	"brood/tui/cell"
)

// Placement is the area of a panel in a frame.
type Placement struct {
	Panel ID
	Area  cell.Rect
}

// PanelIDs returns the panels of a layout in order.
func PanelIDs(placed []Placement) (out []ID) {
	for _, p := range placed {
		out = append(out, p.Panel)
	}
	return out
}

// Sizes in cells.
const (
	MinW, MinH = 60, 12 // below: only the main numbers
	PanelsW    = 80     // least width for several panels
	FullW      = 120    // least width for the knob rail in the layout
	WideW      = 160    // least width for the population next to the loss
	RailW      = 40     // width of the knob rail
)
