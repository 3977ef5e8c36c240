package cli

import (
	"bytes"
	"encoding/csv"
	"slices"
	"strconv"

	"brood/presets"
)

const runsFile = "runs.csv"

// writeRuns keeps a row for each run of this command that was measured.
func (b *batch) writeRuns() error {
	return b.write(runsFile, b.rows())
}

func (b *batch) rows() []byte {
	var text bytes.Buffer
	out := csv.NewWriter(&text) // which cannot fail
	_ = out.Write(append(append(slices.Clone(b.columns), "seed", "outcome"), presets.MetricNames()...))
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range b.trials {
		outcome := map[trialState]string{trialDone: "measured", trialDiverged: "diverged"}[t.state]
		if outcome == "" {
			continue
		}
		row := append(slices.Clone(t.point), strconv.Itoa(t.seed), outcome)
		for _, name := range presets.MetricNames() {
			text := ""
			if x, ok := t.tally.metric(name); ok {
				text = strconv.FormatFloat(x, 'g', -1, 64)
			}
			row = append(row, text)
		}
		_ = out.Write(row)
	}
	out.Flush()
	return text.Bytes()
}
