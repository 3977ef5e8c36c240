// Package tui is the workbench: a viewer of a run, live or recorded. It reads a [Source], folds its records into a view
// and draws that; what a person changes goes out through a [Commander] and comes back as records like everything else.
// Nothing here trains, and leaving it harms nothing.
//
//	err := tui.Run(ctx, tui.Options{Source: src, Commander: cmd, Algorithms: catalog.All()})
//
// Update does no I/O: reading the source and sending commands are Bubble Tea commands, and a reader hands over one
// message per frame. A panel is a value: one file, and one line in panel.go. It brings what it draws, its keys, hints,
// export and, if it likes, a screen; help, palette and command line are made of what all panels bring and of the
// workbench's own tables in keys.go and commands.go. What a viewer turns for its own eyes (smoothing, the window of
// rounds, filters) is in window.go and filter.go and reaches no run. A [Library] lets a person go to other sessions and
// branch off recordings. No panel knows an algorithm by name: knobs and series are declared by the algorithm's value.
// It imports runtime, optim and its own cell and chart.
package tui
