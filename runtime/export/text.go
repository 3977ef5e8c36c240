package export

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"io"
	"math"
	"strconv"
)

// CSV writes a table in the format of RFC 4180, with a header. A cell that was not measured is empty. Values that are
// not finite are NaN, +Inf or -Inf. Numbers have the fewest digits that parse to the same value.
func CSV(w io.Writer, t *Table) error {
	out := csv.NewWriter(w)
	line := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		line[i] = c.Name
	}
	if err := out.Write(line); err != nil {
		return err
	}
	err := t.Each(func(row []any) error {
		for i, x := range row {
			switch x := x.(type) {
			case nil:
				line[i] = ""
			case string:
				line[i] = x
			case int64:
				if line[i] = strconv.FormatInt(x, 10); t.Columns[i].Kind == Time {
					line[i] = stamp(x)
				}
			case float64:
				line[i] = strconv.FormatFloat(x, 'g', -1, 64)
			}
		}
		return out.Write(line)
	})
	out.Flush()
	if err != nil {
		return err
	}
	return out.Error()
}

// JSONLines writes a table as one object a line, with keys in the order of the columns. A cell that was not measured
// has no key. Values that are not finite are null.
func JSONLines(w io.Writer, t *Table) error {
	out := bufio.NewWriter(w)
	keys := make([][]byte, len(t.Columns))
	for i, c := range t.Columns {
		keys[i], _ = json.Marshal(c.Name) // never fails for a string
	}
	err := t.Each(func(row []any) error {
		comma := byte('{')
		for i, x := range row {
			switch v := x.(type) {
			case nil:
				continue
			case int64:
				if t.Columns[i].Kind == Time {
					x = stamp(v)
				}
			case float64:
				if math.IsNaN(v) || math.IsInf(v, 0) {
					x = nil
				}
			}
			value, err := json.Marshal(x)
			if err != nil {
				return err
			}
			out.WriteByte(comma)
			out.Write(keys[i])
			out.WriteByte(':')
			out.Write(value)
			comma = ','
		}
		_, err := out.WriteString("}\n")
		return err
	})
	if err != nil {
		return err
	}
	return out.Flush()
}
