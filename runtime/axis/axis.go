// Package axis tells how far a run was on everything that curves are drawn over: rounds, steps, samples, epochs, bytes
// and seconds. It folds commits, and knows no screen.
package axis

import (
	"strings"

	"brood/models/usererr"
)

// Axis is what a curve is drawn over.
type Axis int

// The axes: what a round costs differs between runs, and so does which of them is ahead.
const (
	Rounds Axis = iota
	Steps
	Samples
	Epochs
	Bytes   // payload that workers sent for the algorithm
	Seconds // of the workers' rounds: pauses do not count
)

// Names of the axes, in the order of the constants.
var Names = []string{"round", "step", "sample", "epoch", "byte", "second"}

func (a Axis) String() string { return Names[a] }

// Parse finds an axis by its name, in the singular or the plural.
func Parse(name string) (Axis, error) {
	for i, n := range Names {
		if name == n || name == n+"s" {
			return Axis(i), nil
		}
	}
	return 0, usererr.Errorf("there is no axis %q%s: choose one of %s", name, usererr.Suggest(name, Names),
		strings.Join(Names, ", "))
}
