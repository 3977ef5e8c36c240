package scaling

import (
	"fmt"
	"math"
	"slices"
)

// Prediction compares the measured round of a run with that of a simulated fleet. Times are in seconds.
type Prediction struct {
	Key
	Measured      float64 // round time
	MeasuredBytes float64 // per round
	Late          int     // percent, see [Figures]
	Round         float64 // predicted round time
	Plain         float64 // round time by latency and bandwidth only
	Bytes         float64 // predicted, per round
}

// Error returns the relative error of the predicted round time; positive if it is too long.
func (f Prediction) Error() float64 { return f.Round/f.Measured - 1 }

// PlainError returns the relative error of Plain.
func (f Prediction) PlainError() float64 { return f.Plain/f.Measured - 1 }

// JSON returns the prediction as a JSON object. plan is the name of the plan.
func (f Prediction) JSON(plan string) map[string]any {
	return map[string]any{"event": "foretold", "plan": plan, "curve": f.Curve, "link": f.Link, "workers": f.Workers,
		"members": f.Members, "late_percent": f.Late, "round_seconds": f.Measured, "foretold_round_seconds": f.Round,
		"error": f.Error(), "plain_round_seconds": f.Plain, "plain_error": f.PlainError(),
		"round_bytes": f.MeasuredBytes, "foretold_round_bytes": f.Bytes}
}

// Sum returns a sentence with the mean and the 95th percentile of the absolute errors.
func Sum(all []Prediction) string {
	if len(all) == 0 {
		return "no measured round can be predicted"
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
		return fmt.Sprintf("1 round predicted: %.1f %% off; the plain model: %.1f %% off; %s", 100*mine[0],
			100*plain[0],
			bytes)
	}
	errors := func(x []float64) string {
		slices.Sort(x)
		sum := 0.0
		for _, v := range x {
			sum += v
		}
		return fmt.Sprintf("%.1f %% off on average, 95 %% of them by at most %.1f %%", 100*sum/float64(len(x)),
			100*x[(len(x)*95+99)/100-1])
	}
	return fmt.Sprintf("%d rounds predicted: %s; the plain model: %s; bytes of %d are exact", len(all), errors(mine),
		errors(plain), exact)
}
