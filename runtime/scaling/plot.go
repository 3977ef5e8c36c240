package scaling

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// Plot holds lines over the sizes of a fleet.
type Plot struct {
	Title   string
	Unit    string // of y
	Workers []int
	Log     bool // y is drawn over its logarithm
	Lines   []Line
}

// Line has a value for each size of the fleet, NaN if not measured. Low and High are its quartiles, NaN if unknown.
type Line struct {
	Name         string
	Curve        int  // index of its curve in the plan; lines of a curve have one colour
	Limited      bool // over links with a rate
	Y, Low, High []float64
	Late         []bool // the workers missed their pace: the value may be too low
}

// Results holds the results of the runs of a plan.
type Results struct {
	Curves  []string // in the order of the plan
	Links   []string
	Workers []int
	Each    []int  // members of each worker, for weak scaling or with a target
	Members []int  // members of the whole fleet, for strong scaling
	Target  string // "" for none
	Of      map[Key]Figures
}

// at returns the figures of a run. A single worker has no links.
func (r Results) at(curve, link string, workers, members int) (f Figures, ok bool) {
	if workers == 1 {
		link = ""
	}
	f, ok = r.Of[Key{curve, link, workers, members}]
	return f, ok && f.Rounds > 0
}

// Plots returns the plots of the results: weak efficiency t_1/t_N for each population per worker, and strong efficiency
// t_1/(N t_N) for each population of the fleet; or, with a target, the seconds and the bytes until it is met. t_N is
// the round time on N workers (Malik et al., DarwiNN, 2020). Bands are by the quartiles of t_N.
func (r Results) Plots() (out []Plot) {
	defer func() { // omit plots without values
		out = slices.DeleteFunc(out, func(p Plot) bool { return len(p.Lines) == 0 })
	}()
	if r.Target != "" {
		for _, n := range r.Each {
			of := fmt.Sprintf("%s of each worker", members(n))
			out = append(out, r.plot("time to "+r.Target+", "+of, "s", true,
				func(c, l string, w int) (y, low, high float64, late bool) {
					if f, ok := r.at(c, l, w, n*w); ok && f.Met {
						return f.Seconds, math.NaN(), math.NaN(), f.Late > TooLate
					}
					return math.NaN(), math.NaN(), math.NaN(), false
				}), r.plot("sent until "+r.Target+", "+of, "MB", true, func(c, l string, w int) (y, low, high float64, late bool) {
				if f, ok := r.at(c, l, w, n*w); ok && f.Met && w > 1 {
					return f.Sent / 1e6, math.NaN(), math.NaN(), false
				}
				return math.NaN(), math.NaN(), math.NaN(), false
			}))
		}
		return out
	}
	for _, n := range r.Each {
		out = append(out, r.plot(fmt.Sprintf("weak, %s of each worker", members(n)), "t_1/t_N", false,
			func(c, l string, w int) (y, low, high float64, late bool) {
				return r.efficiency(Key{c, l, w, n * w}, n, 1)
			}))
	}
	for _, n := range r.Members {
		out = append(out, r.plot(fmt.Sprintf("strong, %s of all workers", members(n)), "t_1/(N t_N)", false,
			func(c, l string, w int) (y, low, high float64, late bool) {
				return r.efficiency(Key{c, l, w, n}, n, float64(w))
			}))
	}
	return out
}

func members(n int) string {
	if n == 1 {
		return "1 member"
	}
	return strconv.Itoa(n) + " members"
}

// efficiency returns t_1/(by t_N) of a run with its quartiles. t_1 is of the run on a single worker with alone members.
func (r Results) efficiency(k Key, alone int, by float64) (y, low, high float64, late bool) {
	f, ok := r.at(k.Curve, k.Link, k.Workers, k.Members)
	one, is := r.at(k.Curve, "", 1, alone)
	if !ok || !is || f.Commits < Least || one.Commits < Least {
		return math.NaN(), math.NaN(), math.NaN(), false
	}
	return one.Round / (by * f.Round), one.Round / (by * f.High), one.Round / (by * f.Low), f.Late > TooLate ||
		one.Late > TooLate
}

func (r Results) plot(title, unit string, log bool,
	of func(curve, link string, workers int) (y, low, high float64, late bool)) Plot {
	p := Plot{Title: title, Unit: unit, Workers: r.Workers, Log: log}
	for i, c := range r.Curves {
		for _, l := range r.Links {
			line := Line{Name: c, Curve: i, Limited: l != ""}
			if line.Limited {
				line.Name += ", " + l
			}
			for _, w := range r.Workers {
				y, low, high, late := of(c, l, w)
				line.Y, line.Low, line.High, line.Late = append(line.Y, y), append(line.Low, low), append(line.High, high),
					append(line.Late, late)
			}
			if slices.ContainsFunc(line.Y, func(y float64) bool { return y == y }) {
				p.Lines = append(p.Lines, line)
			}
		}
	}
	return p
}

// Range returns the range of y. Efficiencies begin at 0, and the range includes their quartiles up to a quarter above
// the highest value; times and bytes have whole decades.
func (p Plot) Range() (lo, hi float64) {
	lo, hi = math.Inf(1), 0
	bars := 0.0
	for _, l := range p.Lines {
		for i, y := range l.Y {
			if y == y && (y > 0 || !p.Log) {
				lo, hi = min(lo, y), max(hi, y)
				if i < len(l.High) && l.High[i] > bars {
					bars = l.High[i]
				}
			}
		}
	}
	if p.Log {
		if hi == 0 { // no positive value
			lo, hi = 1, 1
		}
		return math.Pow(10, math.Floor(math.Log10(lo))), math.Pow(10, math.Ceil(math.Log10(hi)+1e-9))
	}
	return 0, max(1, math.Ceil(max(hi, min(bars, 1.25*hi))*5)/5)
}

// Share returns the position of a value in the range, from 0 to 1.
func (p Plot) Share(y float64) float64 {
	lo, hi := p.Range()
	if p.Log {
		return math.Log(y/lo) / math.Log(hi/lo)
	}
	return (y - lo) / (hi - lo)
}

// Ticks returns the values of y with labels.
func (p Plot) Ticks() (out []float64) {
	lo, hi := p.Range()
	if p.Log {
		for y := lo; y <= hi*1.001; y *= 10 {
			out = append(out, y)
		}
		return out
	}
	for y := 0.0; y <= hi+1e-9; y += 0.2 {
		out = append(out, y)
	}
	return out
}
