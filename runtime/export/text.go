package export

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"io"
	"math"
	"strconv"
)

// CSV writes a table as RFC 4180 has it, with a heading. A cell that nobody measured is empty; what was measured and is
// not finite reads NaN, +Inf or -Inf. Numbers are the shortest that read back as the same.
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

// JSONLines writes a table as one object a line, with keys in the order of the columns. A cell that nobody measured has
// no key; what was measured and is not finite is null.
func JSONLines(w io.Writer, t *Table) error {
	out := bufio.NewWriter(w)
	keys := make([][]byte, len(t.Columns))
	for i, c := range t.Columns {
		keys[i], _ = json.Marshal(c.Name) // text never fails
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
