package report

import (
	"math"
	"reflect"
	"testing"
)

func TestLowest(t *testing.T) {
	none := math.NaN()
	r := &Report{
		Classes:   []ClassScore{{Name: "a", F1: 0.9}, {Name: "b", F1: none}, {Name: "c", F1: 0.2}, {Name: "d", F1: 0.9}},
		Confusion: []Confused{{0, 0, 9}, {0, 2, 3}, {2, 0, 3}, {2, 3, 5}, {3, 3, 1}},
		Outputs:   []OutputScore{{R2: none}, {R2: 0.5}, {R2: -2}, {R2: none}, {R2: 0.1}},
	}
	var names string
	for _, c := range r.Lowest() {
		names += c.Name
	}
	if names != "cad" {
		t.Errorf("the classes %s", names)
	}
	if got, want := r.Mistaken(), []Confused{{2, 3, 5}, {0, 2, 3}, {2, 0, 3}}; !reflect.DeepEqual(got, want) {
		t.Errorf("mistaken are %v, want %v", got, want)
	}
	if got, want := r.LeastExplained(), []int{2, 4, 1, 0, 3}; !reflect.DeepEqual(got, want) {
		t.Errorf("outputs %v, want %v", got, want)
	}
}
