package sweep

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestDraw: values are within their intervals and lists, spread as the interval says, different, and repeatable; more
// points begin with the fewer ones.
func TestDraw(t *testing.T) {
	axes, err := ParseAxes(strings.Fields("eta=log:0.001..1 momentum=uniform:0..0.9 batch=log:8..128 wire=float32,bf16"))
	if err != nil {
		t.Fatal(err)
	}
	axes[2].Whole = true
	points, err := Draw(axes, 600, 7)
	if err != nil || len(points) != 600 {
		t.Fatalf("%d points, %v", len(points), err)
	}
	below, half, kinds := 0, 0, map[string]int{}
	for _, p := range points {
		eta, e1 := strconv.ParseFloat(p[0], 64)
		momentum, e2 := strconv.ParseFloat(p[1], 64)
		batch, e3 := strconv.Atoi(p[2])
		if e1 != nil || e2 != nil || e3 != nil || eta < 0.001 || eta > 1 || momentum < 0 || momentum > 0.9 || batch < 8 ||
			batch > 128 || len(p[0]) > 9 {
			t.Fatalf("drew %v", p)
		}
		kinds[p[3]]++
		if eta < math.Sqrt(0.001) {
			below++
		}
		if momentum < 0.45 {
			half++
		}
	}
	for name, n := range map[string]int{"eta": below, "momentum": half, "wire": kinds["bf16"]} {
		if n < 250 || n > 350 {
			t.Errorf("%s: %d of 600 are in the first half", name, n)
		}
	}
	few, err := Draw(axes, 9, 7)
	other, err2 := Draw(axes, 9, 8)
	if err != nil || err2 != nil || fmt.Sprint(few) != fmt.Sprint(points[:9]) || fmt.Sprint(few) == fmt.Sprint(other) {
		t.Errorf("9 points: %v, with another seed %v", few, other)
	}
	if got, want := few[0], (Point{"0.1064", "0.7582", "21", "bf16"}); !slices.Equal(got, want) {
		t.Errorf("the first point is %v, want %v", got, want)
	}
}

// TestDrawRefused: an interval without numbers, or more points than there are, is named.
func TestDrawRefused(t *testing.T) {
	for words, want := range map[string]string{
		"eta=log:0..1":               "log:0..1: a logarithm needs numbers above 0",
		"eta=log:1":                  "log:1: write log:FROM..TO",
		"eta=uniform:a..1":           "write uniform:FROM..TO",
		"eta=uniform:2..2":           "uniform:2..2 is empty",
		"eta=log:1..2 eta=3":         "an interval is the only value",
		"eta=3 eta=log:1..2":         "an interval is the only value",
		"a=1,2 b=1..3":               "there are 6 different points",
		"eta=step:0.1,9=0.01":        "there are 1 different points",
		"eta=logarithmic:0.001..0.1": "there are 1 different points",
	} {
		axes, err := ParseAxes(strings.Fields(words))
		if err == nil {
			_, err = Draw(axes, 7, 1)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", words, err, want)
		}
	}
}
