package scaling

import (
	"fmt"
	"math"
	"slices"
)

// Foretold is what a simulated fleet says of a run beside what was measured.
type Foretold struct {
	Key
	Measured      float64 // seconds of a round
	MeasuredBytes float64 // of a round
	Late          int     // percent, as of [Figures]
	Round         float64 // foretold
	Plain         float64 // as latency and bandwidth alone have it
	Bytes         float64
}

// Error is by what share the foretold round is longer than the measured one.
func (f Foretold) Error() float64 { return f.Round/f.Measured - 1 }

// PlainError is that of latency and bandwidth alone.
func (f Foretold) PlainError() float64 { return f.Plain/f.Measured - 1 }

// JSON is the row as an object of the plan of that name.
func (f Foretold) JSON(plan string) map[string]any {
	return map[string]any{"event": "foretold", "plan": plan, "curve": f.Curve, "link": f.Link, "workers": f.Workers,
		"members": f.Members, "late_percent": f.Late,
		"round_seconds": f.Measured, "foretold_round_seconds": f.Round, "error": f.Error(), "plain_round_seconds": f.Plain, "plain_error": f.PlainError(),
		"round_bytes": f.MeasuredBytes, "foretold_round_bytes": f.Bytes}
}

// Sum says in a line how far off all of them are together. Errors count without their sign.
func Sum(all []Foretold) string {
	if len(all) == 0 {
		return "nothing was measured that could be foretold"
	}
	var mine, plain []float64
	exact := 0
	for _, f := range all {
		mine, plain = append(mine, math.Abs(f.Error())), append(plain, math.Abs(f.PlainError()))
		if math.Abs(f.Bytes-f.MeasuredBytes) < .5 {
			exact++
		}
	}
	if len(all) == 1 {
		bytes := [...]string{"bytes are not exact", "bytes are exact"}[exact]
		return fmt.Sprintf("1 round foretold: %.1f %% off; the plain model: %.1f %% off; %s", 100*mine[0], 100*plain[0],
			bytes)
	}
	said := func(x []float64) string {
		slices.Sort(x)
		sum := 0.0
		for _, v := range x {
			sum += v
		}
		return fmt.Sprintf("%.1f %% off on average, 95 %% of them by at most %.1f %%", 100*sum/float64(len(x)),
			100*x[(len(x)*95+99)/100-1])
	}
	return fmt.Sprintf("%d rounds foretold: %s; the plain model: %s; bytes of %d are exact", len(all), said(mine),
		said(plain), exact)
}
