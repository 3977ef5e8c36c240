// Package tui is the workbench: a viewer of a run, live or recorded. It reads a [Source], folds its records into a view
// and draws that; what a person changes goes out through a [Commander] and comes back as records like everything else.
// Nothing here trains, and leaving it harms nothing.
//
//	err := tui.Run(ctx, tui.Options{Source: src, Commander: cmd, Algorithms: catalog.All()})
//
// Update does no I/O: reading the source and sending commands are Bubble Tea commands, and a reader hands over one
// message per frame. A screen is one file and one line in screens.go; keys, help and palette come from the table in
// keys.go. What a viewer turns for its own eyes (smoothing, the window of rounds, filters) is in window.go and filter.go and
// reaches no run. A [Library] lets a person go to other sessions and branch off recordings. No panel knows an algorithm by
// name: knobs and series are declared by the algorithm's value. It imports runtime, optim and its own cell and chart.
package tui
