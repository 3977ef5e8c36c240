// Package bench measures a machine: its kernels, devices and rounds, where possible next to the limit that the
// machine sets. Suites report figures as they are measured and print nothing.
package bench

import (
	"encoding/json"
	"math"
	"time"
)

// DefaultEach is the default measuring time of a figure.
const DefaultEach = 800 * time.Millisecond

// Figure is one figure of a suite.
type Figure struct {
	Suite string  `json:"suite"` // set by the caller of the suite
	Name  string  `json:"name"`
	Value float64 `json:"value"` // NaN, null in JSON: not measured
	Unit  string  `json:"unit"`
	// Ratio is the value divided by its limit: the median over pairs that were measured in alternation. 0: not measured.
	Ratio   float64 `json:"ratio,omitempty"`
	Scatter float64 `json:"scatter,omitempty"` // half the interquartile range of the ratio
	Goal    float64 `json:"goal,omitempty"`    // for the ratio, or for the value if there is no ratio; 0: none
	Limit   string  `json:"limit,omitempty"`   // the part of the machine that limits the figure
	Note    string  `json:"note,omitempty"`
}

// notMeasured returns a figure without a value. why is its note.
func notMeasured(name, unit, why string) Figure {
	return Figure{Name: name, Value: math.NaN(), Unit: unit, Note: why}
}

// plainFigure is a Figure with the default JSON encoding.
type plainFigure Figure

// MarshalJSON encodes a value of NaN as null.
func (m Figure) MarshalJSON() ([]byte, error) {
	if m.Value == m.Value {
		return json.Marshal(plainFigure(m))
	}
	return json.Marshal(struct {
		plainFigure
		Value *float64 `json:"value"`
	}{plainFigure: plainFigure(m)})
}

// UnmarshalJSON decodes a value of null as NaN.
func (m *Figure) UnmarshalJSON(text []byte) error {
	read := plainFigure{Value: math.NaN()}
	err := json.Unmarshal(text, &read)
	*m = Figure(read)
	return err
}
