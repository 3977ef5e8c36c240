package scaling

import (
	"bytes"
	"encoding/csv"
	"math"
	"strconv"
)

// Row holds the figures of a kind of run and its efficiency.
type Row struct {
	Key
	Figures
	Weak, Strong float64 // efficiency; NaN if the plan does not have the runs for it
}

// Rows returns the measured kinds of runs, by curve, link, workers and members.
func (r Results) Rows() (out []Row) {
	for _, c := range r.Curves {
		for i, l := range r.Links {
			for _, w := range r.Workers {
				if w == 1 && i > 0 {
					continue // a single worker has no links
				}
				out = append(out, r.rowsOf(c, l, w)...)
			}
		}
	}
	return out
}

func (r Results) rowsOf(curve, link string, workers int) (out []Row) {
	seen := map[int]bool{}
	add := func(members int) {
		f, ok := r.at(curve, link, workers, members)
		if !ok || seen[members] {
			return
		}
		seen[members] = true
		k := Key{curve, link, workers, members}
		if workers == 1 {
			k.Link = ""
		}
		row := Row{Key: k, Figures: f, Weak: math.NaN(), Strong: math.NaN()}
		for _, each := range r.Each {
			if r.Target == "" && each*workers == members {
				row.Weak, _, _, _ = r.efficiency(k, each, 1)
			}
		}
		for _, all := range r.Members {
			if all == members {
				row.Strong, _, _, _ = r.efficiency(k, all, float64(workers))
			}
		}
		out = append(out, row)
	}
	for _, each := range r.Each {
		add(each * workers)
	}
	for _, all := range r.Members {
		add(all)
	}
	return out
}

// Late counts the kinds of runs whose workers missed their pace by more than [TooLate].
func (r Results) Late() (n int) {
	for _, f := range r.Of {
		if f.Late > TooLate {
			n++
		}
	}
	return n
}

// Few counts the points without a round time: they have fewer than [Least] counted commits, and the plan has no target.
func (r Results) Few() (n int) {
	for _, f := range r.Of {
		if r.Target == "" && f.Commits < Least {
			n++
		}
	}
	return n
}

// CSV returns a table with a row for each kind of run, in seconds and bytes.
func (r Results) CSV() []byte {
	var text bytes.Buffer
	w := csv.NewWriter(&text) // writing to a buffer cannot fail
	_ = w.Write(columns)
	for _, x := range r.Rows() {
		if x.Commits < Least {
			x.Round, x.Low, x.High = math.NaN(), math.NaN(), math.NaN()
		}
		_ = w.Write([]string{x.Curve, x.Link, strconv.Itoa(x.Workers), strconv.Itoa(x.Members), strconv.Itoa(x.Rounds),
			strconv.Itoa(x.Commits), number(x.Round), number(x.Low), number(x.High), number(x.Bytes), number(x.Seconds),
			number(x.Sent), strconv.Itoa(x.Late), strconv.FormatBool(x.Met), number(x.Weak), number(x.Strong),
			number(x.Waited), number(x.WaitedMost), strconv.Itoa(x.Runs)})
	}
	w.Flush()
	return text.Bytes()
}

// number formats a number; "" for NaN.
func number(x float64) string {
	if math.IsNaN(x) {
		return ""
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}

var columns = []string{"curve", "link", "workers", "members", "rounds", "commits", "round_seconds", "low", "high",
	"round_bytes", "seconds", "bytes", "late", "met", "weak", "strong", "waited", "waited_most", "seeds"}

// JSON returns the row as a JSON object. plan is the name of the plan, targeted whether it has a target.
func (x Row) JSON(plan string, targeted bool) map[string]any {
	out := map[string]any{"event": "scaling", "plan": plan, "curve": x.Curve, "link": x.Link, "workers": x.Workers,
		"members": x.Members, "seeds": x.Runs, "rounds": x.Rounds, "commits": x.Commits, "late_percent": x.Late,
		"round_seconds": x.Round, "round_seconds_low": x.Low, "round_seconds_high": x.High, "round_bytes": x.Bytes,
		"seconds": x.Seconds, "bytes": x.Sent}
	if targeted {
		out["met"] = x.Met
	}
	if x.Commits < Least {
		delete(out, "round_seconds")
		delete(out, "round_seconds_low")
		delete(out, "round_seconds_high")
	}
	for name, v := range map[string]float64{"weak": x.Weak, "strong": x.Strong, "waited": x.Waited,
		"waited_most": x.WaitedMost} {
		if !math.IsNaN(v) {
			out[name] = v
		}
	}
	return out
}
