package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"brood/models/engine"
	"brood/runtime/evaluate"
	"brood/runtime/geometry"
	"brood/runtime/host"
	"brood/tui/panel/trained"
)

func geometryCommand(s streams) *cobra.Command {
	var want geometry.Wanted
	var pair, program string
	var ascii asciiFlag
	c := &cobra.Command{
		Use:   "geometry SESSION",
		Short: "Measure the geometry of a population: overlaps, distances, the loss between two members",
		Long: "Measure the geometry of a population after a round: the cosine of the angle between the parameters\n" +
			"of any two members, their distances from each other and from the centre, and the loss at points of the\n" +
			"straight line between two members, on the samples of probes. Without --at it is the round of the newest\n" +
			"checkpoint; for another round the rounds since the checkpoint before it are recomputed. The session may be\n" +
			"running, and is not changed.",
		Args: exactly("a SESSION"),
	}
	asJSON := jsonFlag(c)
	c.Flags().Uint64Var(&want.At, "at", 0, "round to measure (default: the newest checkpoint)")
	c.Flags().StringVar(&pair, "line", "",
		"measure the loss between these members, as A,B (default: the two that are furthest apart)")
	c.Flags().IntVar(&want.Points, "points", 21, "points on that line, 2 to 1001")
	threadsFlag(c.Flags(), &want.Threads)
	programFlags(c.Flags(), &program)
	ascii.register(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if want.Points < 2 || want.Points > 1001 {
			return usage("--points %d: give 2 to 1001", want.Points)
		}
		if err := checkAt(c, want.At); err != nil {
			return err
		}
		if pair != "" {
			var err error
			if want.From, want.To, err = twoMembers(pair); err != nil {
				return err
			}
			want.Pair = true
		}
		dir, err := resolve(args[0])
		if err != nil {
			return err
		}
		own, err := host.Program(program)
		if err != nil {
			return err
		}
		notes := s.err
		if *asJSON {
			notes = io.Discard
		}
		x, err := evaluate.MeasureGeometry(c.Context(), own, dir, want, noteRecomputed(notes, time.Now()))
		if err != nil {
			return err
		}
		if *asJSON {
			return objects(s.out, geometryObject(x))
		}
		fmt.Fprint(s.out, trained.GeometryText(x, lineWidth(s), ascii.only(s)))
		return nil
	}
	return c
}

// lineWidth returns the width of drawings on standard output in cells: the width of the terminal, limited to 60 to 160,
// or 100 without a terminal.
func lineWidth(s streams) int {
	if w := s.columns(); w > 0 {
		return min(max(w, 60), 160)
	}
	return 100
}

// twoMembers parses A,B. The prefix m that screens show is optional.
func twoMembers(text string) (a, b engine.Member, err error) {
	from, to, ok := strings.Cut(text, ",")
	x, errA := strconv.ParseUint(strings.TrimPrefix(strings.TrimSpace(from), "m"), 10, 31)
	y, errB := strconv.ParseUint(strings.TrimPrefix(strings.TrimSpace(to), "m"), 10, 31)
	if !ok || errA != nil || errB != nil {
		return 0, 0, usage("--line %s: give two members, such as 0,3", text)
	}
	return engine.Member(x), engine.Member(y), nil
}

// geometryObject returns the JSON object of a geometry. Lists have the order of members.
func geometryObject(x *geometry.Geometry) map[string]any {
	numbers := func(l []float64) []any {
		out := make([]any, len(l))
		for i, v := range l {
			out[i] = finite(v)
		}
		return out
	}
	if len(x.Slopes) > 0 {
		batch, batchError, train, trainError := x.Cosines()
		return map[string]any{"event": "geometry", "session": x.Session, "algorithm": x.Algorithm, "round": x.Round,
			"population": x.Population,
			"estimate": map[string]any{"generations": len(x.Slopes), "directions": x.Slopes[0].Directions,
				"parameters": x.Params, "bound": x.Bound(),
				"batch": finite(batch), "batch_error": finite(batchError), "train": finite(train),
				"train_error": finite(trainError), "train_samples": x.Samples}}
	}
	overlap, distance := make([][]any, len(x.Members)), make([][]any, len(x.Members))
	for i := range x.Members {
		row := make([]float64, len(x.Members))
		for j := range row {
			row[j] = x.Overlap(i, j)
		}
		overlap[i], distance[i] = numbers(row), numbers(x.Distance[i])
	}
	out := map[string]any{"event": "geometry", "session": x.Session, "algorithm": x.Algorithm, "round": x.Round,
		"population": x.Population, "members": x.Members,
		"overlap": overlap, "distance": distance, "spread": numbers(x.Spread), "length": numbers(x.Length)}
	if len(x.Line) > 1 {
		var loss, wrong []float64
		for _, p := range x.Line {
			loss, wrong = append(loss, p.Mean()), append(wrong, p.Error())
		}
		height, at := x.Barrier()
		line := map[string]any{"from": x.From, "to": x.To, "barrier": finite(height), "barrier_at": at}
		if x.Measured {
			for i, l := range loss {
				loss[i] = 0 - l // not -l, which gives -0 for 0
			}
			line["fitness"] = numbers(loss)
		} else {
			line["loss"] = numbers(loss)
		}
		if x.Graded {
			line["error"] = numbers(wrong)
		}
		out["line"] = line
	}
	return out
}
