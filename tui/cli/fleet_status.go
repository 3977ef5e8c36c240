package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"brood/models/engine"
	"brood/runtime/view"
	"brood/tui/textfmt"
)

// fleetStatusCommand returns the command that prints the state of the workers of a running run once.
func fleetStatusCommand(s streams) *cobra.Command {
	var asJSON *bool
	c := &cobra.Command{
		Use:   "status SESSION|URL",
		Short: "Show the workers of a running run: state, members, links, and the newest checkpoint",
		Args:  exactly("a SESSION or URL"),
		RunE: func(c *cobra.Command, args []string) error {
			run, err := connect(c.Context(), args[0], clientName(), false)
			if err != nil {
				return err
			}
			defer run.Close()
			v, err := run.Snapshot(c.Context(), 1<<62)
			if err != nil {
				return run.explain(err)
			}
			fleet, err := run.Fleet(c.Context())
			if err != nil {
				return run.explain(err)
			}
			if *asJSON {
				return objects(s.out, fleetObject(run.name, v, fleet))
			}
			for _, line := range fleetLines(run.name, v, fleet, time.Now()) {
				fmt.Fprintln(s.out, line)
			}
			return nil
		},
	}
	asJSON = jsonFlag(c)
	return c
}

// fleetLines returns the state of a run and a table of its workers.
func fleetLines(name string, v *view.View, f view.Fleet, now time.Time) (out []string) {
	out = append(out, fmt.Sprintf("%s: %s, round %d, %s on %s", name, v.State.Phase, v.Progress.Rounds,
		textfmt.Count(len(v.Members().Members), "member"), textfmt.Count(len(f.Workers), "worker")))
	switch missing := f.Wait - len(f.Workers); {
	case v.Plan == nil && missing > 0:
		out = append(out, fmt.Sprintf("it waits for %s", textfmt.Count(missing, "more worker")))
	case v.Checkpoint != nil:
		line := fmt.Sprintf("saved: round %d", v.Checkpoint.Round)
		for _, e := range slices.Backward(v.Lane) {
			if e.Kind == view.KindCheckpoint {
				line += ", " + textfmt.Duration(now.Sub(time.Unix(0, e.When))) + " ago"
				break
			}
		}
		out = append(out, line)
	}
	if len(f.Workers) == 0 {
		return out
	}
	t := newTable(">worker", "machine", "state", "members", "kernels", ">rtt", ">sent", ">received", ">silent",
		">joined", "key")
	for _, w := range f.Workers {
		rtt, sent, received, silent, joined := "–", "–", "–", "–", "–"
		if w.Name != "" {
			rtt = w.RTT.Round(10 * time.Microsecond).String()
			sent, received = textfmt.Size(w.Sent)+"/s", textfmt.Size(w.Received)+"/s"
			silent, joined = textfmt.Duration(w.Silent), textfmt.Duration(w.Since)+" ago"
		}
		members := cmp.Or(textfmt.MemberRanges(w.Members), "none")
		t.row(strconv.Itoa(w.ID), cmp.Or(w.Name, "the run's"), string(w.State), members,
			cmp.Or(w.Device, w.Kernels, "–"), rtt, sent, received, silent, joined, cmp.Or(w.Key, "–"))
	}
	out = append(out, t.lines()...)
	for _, l := range f.Links {
		if l.Shape != nil {
			out = append(out, "slowed down: "+l.Shape.String())
		}
	}
	for _, pair := range relayedPairs(f) {
		out = append(out, fmt.Sprintf("through the coordinator: worker %d and worker %d", pair[0], pair[1]))
	}
	return out
}

// relayedPairs returns the workers whose link goes through the coordinator, each pair once, the lower worker first.
func relayedPairs(f view.Fleet) [][2]int {
	pairs := [][2]int{}
	for _, l := range f.Links {
		pair := [2]int{min(l.From, l.To), max(l.From, l.To)}
		if l.Relayed && !slices.Contains(pairs, pair) {
			pairs = append(pairs, pair)
		}
	}
	return pairs
}

// fleetObject is the JSON object of [fleetStatusCommand].
func fleetObject(name string, v *view.View, f view.Fleet) map[string]any {
	workers := []map[string]any{}
	for _, w := range f.Workers {
		members := w.Members
		if members == nil {
			members = []engine.Member{}
		}
		one := map[string]any{"worker": w.ID, "state": w.State, "members": members}
		if w.Name != "" {
			one["machine"], one["address"], one["kernels"], one["device"] = w.Name, w.Address, w.Kernels, w.Device
			one["rtt_seconds"], one["silent_seconds"] = w.RTT.Seconds(), w.Silent.Seconds()
			one["key"] = w.Key
			one["joined_seconds"], one["sent_per_second"], one["received_per_second"] = w.Since.Seconds(), w.Sent, w.Received
		}
		workers = append(workers, one)
	}
	line := map[string]any{"event": "fleet", "session": name, "phase": v.State.Phase, "round": v.Progress.Rounds,
		"wait": f.Wait, "workers": workers, "relayed": relayedPairs(f)}
	if v.Checkpoint != nil {
		line["checkpoint_round"] = v.Checkpoint.Round
	}
	return line
}
