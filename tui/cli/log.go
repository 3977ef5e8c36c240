package cli

import (
	"fmt"
	"io"
	"math"
	"reflect"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"brood/models/engine"
	"brood/runtime/event"
	"brood/runtime/session"
	"brood/runtime/view"
	"brood/tui/textfmt"
)

func logCommand(s streams) *cobra.Command {
	c := &cobra.Command{
		Use:   "log SESSION",
		Short: "Print the log of a session: events as text, or with --json every record",
		Long: "Print the log of a session. Without a flag it prints the events as text: edits, plans, alerts,\n" +
			"checkpoints. With --json it prints every complete record as one object a line, in the order of the log;\n" +
			"docs/export.md describes the keys. The session may be running: the output ends with the last record so far.",
		Args: exactly("a SESSION"),
	}
	asJSON := c.Flags().Bool("json", false, "every record, one JSON object a line")
	c.RunE = func(_ *cobra.Command, args []string) error {
		dir, err := resolve(args[0])
		if err != nil {
			return err
		}
		log, err := session.OpenReader(dir)
		if err != nil {
			return err
		}
		defer log.Close()
		write := logLines(s.out)
		if *asJSON {
			write = func(n uint64, r event.Record) error { return objects(s.out, recordObject(n, r)) }
		}
		for r, err := range log.Rest() {
			if err == nil {
				err = write(log.At()-1, r)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	return c
}

// logLines prints events as text, like the Events panel.
func logLines(w io.Writer) func(uint64, event.Record) error {
	v := view.New()
	return func(_ uint64, r event.Record) error {
		before := v.Events
		v.Apply(r)
		for _, e := range v.Lane[len(v.Lane)-int(min(v.Events-before, uint64(len(v.Lane)))):] {
			level := ""
			if e.Level != event.LevelInfo {
				level = string(e.Level) + ": "
			}
			_, err := fmt.Fprintf(w, "%s  %8s  %-10s  %s%s\n", time.Unix(0, e.When).UTC().Format("2006-01-02 15:04:05"),
				textfmt.Grouped(e.Round), e.Kind, level, oneLine(e.Text))
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// recordObject returns a record of a log as a JSON object: its number n, its time, its kind, and its fields under the
// name of the kind.
func recordObject(n uint64, r event.Record) map[string]any {
	out := map[string]any{"n": n, "time": time.Unix(0, r.At).UTC().Format(time.RFC3339Nano)}
	v := reflect.ValueOf(r)
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.Pointer && !f.IsNil() {
			kind := snakeCase(v.Type().Field(i).Name)
			out["kind"], out[kind] = kind, jsonValue(f.Elem())
		}
	}
	return out
}

// jsonValue converts a value for JSON. Structs become objects with the snake_case names of their fields; nil pointers,
// empty optional fields, and bytes of another format are omitted. NaN and infinities become null.
func jsonValue(v reflect.Value) any {
	if m, ok := v.Interface().(engine.Member); ok && m == engine.None {
		return nil // the value is of the whole population
	}
	switch v.Kind() {
	case reflect.Pointer:
		return jsonValue(v.Elem())
	case reflect.Struct:
		out := map[string]any{}
		for i := range v.NumField() {
			f, t := v.Field(i), v.Type().Field(i)
			if _, opaque := f.Interface().([]byte); opaque {
				continue
			}
			optional := strings.Contains(t.Tag.Get("cbor"), "omitempty")
			if optional && f.IsZero() || f.Kind() == reflect.Pointer && f.IsNil() {
				continue
			}
			out[snakeCase(t.Name)] = jsonValue(f)
		}
		return out
	case reflect.Slice:
		out := make([]any, v.Len())
		for i := range out {
			out[i] = jsonValue(v.Index(i))
		}
		return out
	case reflect.Map:
		out := map[string]any{}
		for _, k := range v.MapKeys() {
			out[fmt.Sprint(k)] = jsonValue(v.MapIndex(k)) // a name, or the number of a worker
		}
		return out
	case reflect.Float64:
		if x := v.Float(); math.IsNaN(x) || math.IsInf(x, 0) {
			return nil
		}
	}
	return v.Interface()
}

// snakeCase converts the name of a Go field to a JSON key: "TestError" to "test_error".
func snakeCase(name string) string {
	var out []rune
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 && !unicode.IsUpper(rune(name[i-1])) {
			out = append(out, '_')
		}
		out = append(out, unicode.ToLower(r))
	}
	return string(out)
}
