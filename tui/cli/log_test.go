package cli

import (
	"math"
	"os"
	"reflect"
	"slices"
	"testing"

	"brood/models/engine"
	"brood/runtime/event"
)

// TestLogPage: the page names every kind of record and every key of brood log --json.
func TestLogPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/export.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, m := range codeWords.FindAllStringSubmatch(string(page), -1) {
		documented = append(documented, m[1])
	}
	keys, walked := 0, map[reflect.Type]bool{}
	var walk func(of reflect.Type)
	walk = func(of reflect.Type) {
		switch of.Kind() {
		case reflect.Pointer, reflect.Slice:
			walk(of.Elem())
		case reflect.Struct:
			if walked[of] { // an evaluation has another one
				return
			}
			walked[of] = true
			for f := range of.Fields() {
				if keys++; !slices.Contains(documented, snakeCase(f.Name)) {
					t.Errorf("export.md does not name the key %s of %s", snakeCase(f.Name), of)
				}
				walk(f.Type)
			}
		}
	}
	for f := range reflect.TypeFor[event.Record]().Fields() {
		if f.Name != "At" {
			if !slices.Contains(documented, snakeCase(f.Name)) {
				t.Errorf("export.md does not name records of %s", snakeCase(f.Name))
			}
			walk(f.Type)
		}
	}
	if keys < 80 {
		t.Errorf("%d keys were found", keys)
	}
}

func TestRecordObject(t *testing.T) {
	r := event.Record{At: 1e18, Points: &event.Points{
		Round:   3,
		Series:  "loss",
		Members: []engine.Member{1, engine.None},
		Values:  []float64{0.5, math.NaN()},
	}}
	want := map[string]any{"n": uint64(7), "time": "2001-09-09T01:46:40Z", "kind": "points",
		"points": map[string]any{"round": uint64(3), "series": "loss", "members": []any{engine.Member(1), nil}, "values": []any{0.5, nil}}}
	if got := recordObject(7, r); !reflect.DeepEqual(got, want) {
		t.Errorf("%#v", got)
	}
	links := event.Record{
		At: 1e18, Machines: &event.Machines{Round: 1, Of: []event.Machine{{Worker: 0, To: map[int]float64{1: 5, 2: 6}}}},
	}
	of := recordObject(8, links)["machines"].(map[string]any)["of"].([]any)[0].(map[string]any)
	if to := map[string]any{"1": 5.0, "2": 6.0}; !reflect.DeepEqual(of["to"], to) {
		t.Errorf("to other workers: %#v", of["to"])
	}
}
