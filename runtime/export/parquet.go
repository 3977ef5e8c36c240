package export

import (
	"encoding/json"
	"io"
	"slices"

	"github.com/parquet-go/parquet-go"
)

// Keys of the metadata of a Parquet file. The values are JSON: the columns with their units, and the sessions with
// their settings.
const (
	metaColumns  = "brood.columns"
	metaSessions = "brood.sessions"
)

// groupRows is the largest number of rows of a row group. A row group is in memory until it is written.
const groupRows = 1 << 17

// Parquet writes a table with typed columns, compressed with Snappy. A cell that was not measured is null. Times are
// UTC in microseconds, which old readers support too. The metadata contains units and settings.
func Parquet(w io.Writer, t *Table) error {
	columns, sessions, err := t.metadata()
	if err != nil {
		return err
	}
	out := parquet.NewWriter(w, t.schema(), parquet.Compression(&parquet.Snappy), parquet.CreatedBy("brood", "1", "0"),
		parquet.KeyValueMetadata(metaColumns, columns), parquet.KeyValueMetadata(metaSessions,
			sessions), parquet.MaxRowsPerRowGroup(groupRows))
	line := make(parquet.Row, len(t.Columns))
	rows := []parquet.Row{line}
	err = t.Each(func(row []any) error {
		for i, x := range row {
			v := parquet.NullValue()
			switch x := x.(type) {
			case string:
				v = parquet.ByteArrayValue([]byte(x))
			case int64:
				if t.Columns[i].Kind == Time {
					x /= 1000
				}
				v = parquet.Int64Value(x)
			case float64:
				v = parquet.DoubleValue(x)
			}
			there := 1
			if x == nil {
				there = 0
			}
			line[i] = v.Level(0, there, i)
		}
		_, err := out.WriteRows(rows)
		return err
	})
	if err != nil {
		return err
	}
	return out.Close()
}

// ordered is a group whose columns are in the order of the table. A plain Group sorts them by name.
type ordered struct {
	parquet.Group
	fields []parquet.Field
}

func (o ordered) Fields() []parquet.Field { return o.fields }

func (t *Table) schema() *parquet.Schema {
	g := parquet.Group{}
	for _, c := range t.Columns {
		var n parquet.Node
		switch c.Kind {
		case Text:
			n = parquet.Encoded(parquet.String(), &parquet.RLEDictionary)
		case Whole:
			n = parquet.Int(64)
		case Real:
			n = parquet.Leaf(parquet.DoubleType)
		case Time:
			n = parquet.Timestamp(parquet.Microsecond)
		}
		g[c.Name] = parquet.Optional(n)
	}
	o := ordered{g, g.Fields()}
	at := func(f parquet.Field) int {
		return slices.IndexFunc(t.Columns, func(c Column) bool { return c.Name == f.Name() })
	}
	slices.SortFunc(o.fields, func(a, b parquet.Field) int { return at(a) - at(b) })
	return parquet.NewSchema("brood", o)
}

// metadata returns the values of metaColumns and metaSessions.
func (t *Table) metadata() (columns, sessions string, err error) {
	type column struct {
		Name string `json:"name"`
		Unit string `json:"unit,omitempty"`
		Doc  string `json:"doc,omitempty"`
	}
	type run struct {
		Session  string             `json:"session"`
		Rounds   uint64             `json:"rounds"`
		Settings map[string]string  `json:"settings"`
		Metrics  map[string]float64 `json:"metrics"`
	}
	var cs []column
	for _, c := range t.Columns {
		cs = append(cs, column{c.Name, c.Unit, c.Doc})
	}
	var rs []run
	for _, r := range t.Runs {
		x := run{r.Name, r.rounds, map[string]string{}, map[string]float64{}}
		for _, s := range r.Settings {
			x.Settings[s.Name] = s.Value
		}
		for name := range r.Figures {
			if v, ok := r.Metric(name); ok && v-v == 0 {
				x.Metrics[name] = v
			}
		}
		rs = append(rs, x)
	}
	a, err := json.Marshal(cs)
	if err != nil {
		return "", "", err
	}
	b, err := json.Marshal(rs)
	return string(a), string(b), err
}
