package cli

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"brood/runtime/simulate"
	"brood/tui/textfmt"
)

// rackFlags describes racks: groups of workers that share an uplink and a downlink.
type rackFlags struct {
	of       int
	up, down string
	delay    time.Duration
}

// racks parses the flags; nil without racks.
func (r rackFlags) racks() (*simulate.Racks, error) {
	up, err := parseRate("rack-up", r.up)
	if err != nil {
		return nil, err
	}
	down, err := parseRate("rack-down", r.down)
	if err = cmp.Or(err, checkDuration(time.Minute, "rack-delay", r.delay)); err != nil {
		return nil, err
	}
	switch {
	case r.of < 0:
		return nil, usage("--rack %d: give the number of workers per rack", r.of)
	case r.of == 0 && (up > 0 || down > 0 || r.delay > 0):
		return nil, usage("--rack-up, --rack-down and --rack-delay need racks: give --rack too, the workers of each")
	case r.of == 0:
		return nil, nil
	}
	return &simulate.Racks{Of: func(machine int) int { return machine / r.of }, Up: up, Down: down, Delay: r.delay}, nil
}

// checkChurn rejects invalid values of --churn, --away and --goodbye.
func (f *fleetSimulation) checkChurn(given func(flag string) bool) error {
	const least, longest = time.Second, 1000 * time.Hour
	switch {
	case given("churn") && (f.churn < least || f.churn > longest):
		return usage("--churn %s: give the mean time that a worker stays, from %s to %s", f.churn, least, longest)
	case f.churn == 0 && (given("away") || f.goodbye):
		return usage("--away and --goodbye need workers that leave: give --churn too, such as --churn 10m")
	}
	return checkDuration(longest, "away", f.away)
}

// drawChurn draws the times for which a worker stays and is away. Both are exponentially distributed.
func (f *fleetSimulation) drawChurn(_ int, uniform func() float64) (stays, away time.Duration) {
	draw := func(mean time.Duration) time.Duration { return time.Duration(-math.Log(1-uniform()) * float64(mean)) }
	return draw(f.churn), draw(f.away)
}

// parseSlow parses the values of --slow: slowdown factors by worker, or everyWorker.
func parseSlow(words []string) (map[int]float64, error) {
	slow := map[int]float64{}
	for _, text := range words {
		name, by, one := strings.Cut(text, "=")
		w, bad := everyWorker, error(nil)
		if one {
			w, bad = strconv.Atoi(name)
		} else {
			by = text
		}
		x, worse := strconv.ParseFloat(by, 64)
		if bad != nil || worse != nil || one && w < 0 || !(x > 0 && x <= 1000) {
			return nil, usage("--slow %s: give WORKER=FACTOR, such as 0=2.5, or a FACTOR for all", text)
		}
		slow[w] = x
	}
	return slow, nil
}

// fleet describes the links and the workers for the heading of the table.
func (f *fleetSimulation) fleet() string {
	links := clauses("links: ", "links as fast as loopback on this machine", []clause{
		{f.link.rate != "", f.link.rate + " per second each"},
		{f.link.delay > 0, f.link.delay.String() + " delay"},
		{f.link.jitter > 0, "up to " + f.link.jitter.String() + " of jitter"},
		{f.link.loss > 0, fmt.Sprintf("%.3g%% lost", 100*f.link.loss)},
		{f.control > 0, f.control.String() + " delay to the coordinator"},
		{f.up != "", "a worker sends " + f.up},
		{f.down != "", subject(f.up, "a worker") + " receives " + f.down},
		{f.rack.of > 0, fmt.Sprintf("racks of %s", textfmt.Count(f.rack.of, "worker"))},
		{f.rack.up != "", "a rack sends " + f.rack.up},
		{f.rack.down != "", subject(f.rack.up, "a rack") + " receives " + f.rack.down},
		{f.rack.delay > 0, f.rack.delay.String() + " more delay between racks"},
	})
	leave := "die"
	if f.goodbye {
		leave = "leave"
	}
	return links + clauses("; workers: ", "", []clause{
		{len(f.slow) > 0, "slower by " + strings.Join(f.slow, " and ")},
		{f.cores > 0, textfmt.Count(f.cores, "core") + " for all"},
		{f.churn > 0, fmt.Sprintf("stay for %s on average, then %s, and return after %s on average", f.churn, leave,
			f.away)},
	})
}

// clause is a part of a heading, printed if on is set.
type clause struct {
	on   bool
	text string
}

// clauses returns word followed by the parts that are on, or otherwise if none is.
func clauses(word, otherwise string, parts []clause) string {
	var on []string
	for _, x := range parts {
		if x.on {
			on = append(on, x.text)
		}
	}
	if len(on) == 0 {
		return otherwise
	}
	return word + strings.Join(on, ", ")
}

// subject returns the subject of a clause: "and" if the clause before it, with the same subject, is on, else who.
func subject(before, who string) string {
	if before != "" {
		return "and"
	}
	return who
}
