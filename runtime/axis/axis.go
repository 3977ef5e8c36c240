// Package axis converts the progress of a run between the axes of curves: rounds, steps, samples, epochs, bytes and
// seconds. A [Clock] accumulates the commits of the run.
package axis

import (
	"strings"

	"brood/models/usererr"
)

// Axis is a horizontal axis of curves.
type Axis int

const (
	Rounds Axis = iota
	Steps
	Samples
	Epochs
	Bytes   // payload that workers sent for the algorithm
	Seconds // time of rounds, without pauses
)

// Names of the axes, in the order of the constants.
var Names = []string{"round", "step", "sample", "epoch", "byte", "second"}

func (a Axis) String() string { return Names[a] }

// Parse returns the axis with a name, in the singular or the plural.
func Parse(name string) (Axis, error) {
	for i, n := range Names {
		if name == n || name == n+"s" {
			return Axis(i), nil
		}
	}
	return 0, usererr.Errorf("no axis %q%s: choose one of %s", name, usererr.Suggest(name, Names),
		strings.Join(Names, ", "))
}
