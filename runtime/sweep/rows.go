package sweep

import (
	"bytes"
	"encoding/csv"
	"slices"
	"strconv"
)

// RowsFile is the name of the file with [Batch.Rows] in the directory of a batch.
const RowsFile = "runs.csv"

// WriteRows writes [Batch.Rows] to the directory.
func (b *Batch) WriteRows() error { return b.write(RowsFile, b.Rows()) }

// Rows returns a CSV table with a row for each finished or diverged run: its point, seed, outcome and metrics.
func (b *Batch) Rows() []byte {
	var text bytes.Buffer
	out := csv.NewWriter(&text) // writing to a buffer cannot fail
	_ = out.Write(append(append(slices.Clone(b.Columns), "seed", "outcome"), b.Metrics...))
	b.Each(func(t *Trial) {
		if !t.Over() {
			return
		}
		row := append(slices.Clone(t.Point), strconv.Itoa(t.Seed), t.Outcome())
		for _, name := range b.Metrics {
			text := ""
			if x, ok := t.Metric(name); ok {
				text = strconv.FormatFloat(x, 'g', -1, 64)
			}
			row = append(row, text)
		}
		_ = out.Write(row)
	})
	out.Flush()
	return text.Bytes()
}
