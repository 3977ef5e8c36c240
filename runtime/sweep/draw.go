package sweep

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"brood/models/arith"
	"brood/models/noise"
	"brood/models/usererr"
)

// between is an interval from which the values of an axis are drawn.
type between struct {
	low, high float64
	log       bool // the logarithm is uniform, else the value
}

// parseBetween parses uniform:FROM..TO and log:FROM..TO. ok is false for another text.
func parseBetween(text string) (b between, ok bool, err error) {
	kind, ends, ok := strings.Cut(text, ":")
	if b.log = kind == "log"; !ok || !b.log && kind != "uniform" {
		return b, false, nil
	}
	from, to, _ := strings.Cut(ends, "..")
	var e1, e2 error
	b.low, e1 = number(from)
	b.high, e2 = number(to)
	switch {
	case e1 != nil || e2 != nil:
		return b, true, usererr.Errorf("%s: write %s:FROM..TO, such as %s:0.001..0.1", text, kind, kind)
	case !(b.low < b.high):
		return b, true, usererr.Errorf("%s is empty: write the smaller number first", text)
	case b.log && b.low <= 0:
		return b, true, usererr.Errorf("%s: a logarithm needs numbers above 0", text)
	}
	return b, true, nil
}

// at returns the value at u, from 0 to 1, with four digits or as the nearest whole number.
func (b between) at(u float64, whole bool) string {
	x := b.low + float64(u*(b.high-b.low))
	if b.log {
		low := arith.Log(b.low)
		x = arith.Exp(low + float64(u*(arith.Log(b.high)-low)))
	}
	if whole {
		return strconv.FormatFloat(math.Round(x), 'f', 0, 64)
	}
	return strconv.FormatFloat(x, 'g', 4, 64)
}

// Drawn reports whether values of the axis can only be drawn.
func (a Axis) Drawn() bool { return a.between != between{} }

// Draw returns n different points whose values are drawn: of an interval, or one of a list. They depend only on seed
// and on the axes, so that the first n of more points are the same. It fails if there are fewer than n.
func Draw(axes []Axis, n int, seed uint64) ([]Point, error) {
	var out []Point
	seen := map[string]bool{}
	for k := uint64(0); len(out) < n; k++ {
		if k >= uint64(100*n) {
			return nil, usererr.Errorf("there are %d different points: draw no more of them", len(out))
		}
		key, point := noise.Key{Seed: seed, Purpose: noise.Search, Round: k}, Point{}
		for i, a := range axes {
			if a.Drawn() {
				point = append(point, a.between.at((float64(key.Uint32(i))+0.5)/(1<<32), a.Whole))
			} else {
				point = append(point, a.Values[key.Below(i, len(a.Values))])
			}
		}
		if text := strings.Join(point, "\x00"); !seen[text] {
			seen[text], out = true, append(out, slices.Clip(point))
		}
	}
	return out, nil
}
