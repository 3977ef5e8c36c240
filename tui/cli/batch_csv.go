package cli

import (
	"encoding/csv"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"brood/presets"
)

const runsFile = "runs.csv"

// writeRuns keeps a row for each run of this command that was measured.
func (b *batch) writeRuns() error {
	f, err := os.CreateTemp(b.dir, newBatch+"*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // where it was not renamed
	if err := errors.Join(b.rows(f), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), filepath.Join(b.dir, runsFile))
}

func (b *batch) rows(to io.Writer) error {
	out := csv.NewWriter(to)
	_ = out.Write(append(append(slices.Clone(b.columns), "seed", "outcome"), presets.MetricNames()...)) // Flush tells
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
	return out.Error()
}
