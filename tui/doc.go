// Package tui is the workbench: a viewer of a run, live or recorded. It reads a [panel.Source], folds its records into
// a view and draws that. Commands of the user go out through a [panel.Commander] and come back as records. Nothing here
// trains, and closing the workbench does not affect the run.
//
//	err := tui.Run(ctx, panel.Options{Source: src, Commander: cmd, Algorithms: catalog.All()})
//
// Update does no I/O: reading the source and sending commands are Bubble Tea commands, and the reader sends one message
// per frame. Package panel has the interface of panels and what they share; the packages below it have the panels. A
// new panel is one file and one entry in panels.go. Help, palette and command line are generated from the tables of the
// panels and those of the workbench in keys.go and commands.go. Smoothing, the window of rounds and filters belong to
// the viewer and do not reach the run. No panel knows an algorithm by name: the algorithm declares its knobs and
// series.
package tui
