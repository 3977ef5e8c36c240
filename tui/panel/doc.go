// Package panel is the interface between the workbench and its panels. A [Panel] is a value: what it draws, its keys,
// commands, export and, if it leads one, its [Screen]. Its functions receive a [Host], which holds the shown run, the
// state of the charts and the position of the user; a panel requests everything else through [Workbench].
//
// The package also has what panels share: the window of rounds and the axes of charts (window.go, scale.go, tile.go),
// tables, dialogs, filters, and the interfaces that the workbench reads and commands a run through (source.go,
// library.go, launcher.go).
//
// The panels are in the packages below it, one for each family: live (training), fleet (workers, links, machines),
// knobs, trained (what the model does), alerts (events, alerts, log) and runs (recorded sessions, overlays, the
// launcher). A family imports this package and not the workbench.
package panel
