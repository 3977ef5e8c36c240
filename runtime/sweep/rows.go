package sweep

import (
	"bytes"
	"encoding/csv"
	"slices"
	"strconv"
)

// RowsFile is the table of the runs that were measured, in the directory of a batch.
const RowsFile = "runs.csv"

// WriteRows keeps [Batch.Rows] in the directory.
func (b *Batch) WriteRows() error { return b.write(RowsFile, b.Rows()) }

// Rows are a row for each run of this batch that is over, as CSV: its point, seed, outcome and figures.
func (b *Batch) Rows() []byte {
	var text bytes.Buffer
	out := csv.NewWriter(&text) // which cannot fail
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
