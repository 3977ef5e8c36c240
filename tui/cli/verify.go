package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"brood/models/usererr"
	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/verify"
)

func verifyCommand(s streams) *cobra.Command {
	var threads int
	var program string
	var asJSON bool
	var within float64
	c := &cobra.Command{
		Use:   "verify SESSION",
		Short: "Recompute a session and compare every commit",
		Long: `verify executes all rounds of a session again and compares the hash of the state after each commit.

--within compares saved parameters with a tolerance instead: use it if the results of your program vary, or on another
kind of device than the session's. The rounds are executed from each saved state to the next. The error is a
share of the distance of the parameters from the start of the run.`,
		Args: exactly("a SESSION"),
		RunE: func(c *cobra.Command, args []string) error {
			dir, err := resolve(args[0])
			if err != nil {
				return err
			}
			if c.Flags().Changed("within") && !(within > 0 && within <= 1) {
				return usererr.Errorf("within %g: give a share above 0 and at most 1, such as 0.01", within)
			}
			t0 := time.Now()
			last := t0
			own, err := host.Program(program)
			if err != nil {
				return err
			}
			res, err := own.VerifyWithin(c.Context(), dir, threads, within, func(k event.Commit) {
				if !asJSON && time.Since(last) > time.Second {
					last = time.Now()
					what := "agrees"
					if within > 0 {
						what = "executed"
					}
					fmt.Fprintf(s.err, "round %6d %s\n", k.To, what)
				}
			})
			var differs *verify.MismatchError
			var apart *verify.DistanceError
			switch {
			case errors.As(err, &differs), errors.As(err, &apart):
				return fmt.Errorf("session %s does not verify: %w", filepath.Base(dir), usererr.Recorded(err))
			case err != nil:
				return fmt.Errorf("session %s cannot be verified: %w", filepath.Base(dir), usererr.Recorded(err))
			}
			if res.Last == nil {
				return fmt.Errorf("session %s holds no committed round: there is nothing to verify", filepath.Base(dir))
			}
			if asJSON {
				return objects(s.out, verifiedObject(dir, res, time.Since(t0)))
			}
			predicted := "as predicted"
			if res.WrongBytes {
				predicted = "which the algorithm's formula does not predict"
			}
			fmt.Fprintf(s.out, "holds: %d commits, %s rounds executed again in %s, %s on the links %s\n", res.Commits,
				grouped(int64(res.Rounds)), clockTime(time.Since(t0).Seconds()), humanBytes(res.Bytes), predicted)
			if within > 0 {
				fmt.Fprintf(s.out, "within %g: %s; %s\n", within, largestError(res.Within), uncompared(res))
			} else {
				fmt.Fprintln(s.out, res.Last.Hash)
			}
			fmt.Fprintf(s.out, "compared: %s and %s; %s\n", plural(int(res.Evaluations), "test evaluation"),
				plural(int(res.Points), "record")+" of points", plural(res.Checkpoints, "checkpoint")+" on disk")
			fmt.Fprintf(s.out, "not compared: %s\n", uncovered(res))
			for _, text := range res.Told {
				fmt.Fprintf(s.out, "the session says: %s\n", oneLine(text))
			}
			switch {
			case res.Torn != nil:
				fmt.Fprintf(s.out, "missing: %d bytes at byte %d of %s are no whole frame; what came after round %d is not in the log, a resume does it again\n", res.Torn.Lost, res.Torn.Offset, res.Torn.Segment, res.Last.To)
			case res.Open:
				fmt.Fprintf(s.out, "missing: the end of the run; it goes on, was killed, or its log was cut off after round %d\n",
					res.Last.To)
			}
			return nil
		},
	}
	programFlags(c.Flags(), &program)
	threadsFlag(c.Flags(), &threads)
	c.Flags().Float64Var(&within, "within", 0, "compare saved parameters in place of hashes: the largest error, as a share "+
		"of their distance from the start")
	c.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	return c
}

// largestError returns the largest error of a verification within a tolerance, as a sentence.
func largestError(c verify.Closeness) string {
	if c.LargestError == 0 {
		return fmt.Sprintf("the parameters of %s are those of the session, bit for bit", plural(c.Segments, "saved state"))
	}
	return fmt.Sprintf("of the parameters of %s, the largest error is %.2g, in round %d", plural(c.Segments, "saved state"),
		c.LargestError, c.Round)
}

// uncompared says which rounds were executed and not compared in a verification within a tolerance.
func uncompared(res host.Verified) string {
	if res.Within.Compared >= res.Last.To {
		return "hashes were not compared"
	}
	return fmt.Sprintf("hashes were not compared, nor the rounds after %d", res.Within.Compared)
}

// uncovered lists what verifying does not compare.
func uncovered(res host.Verified) string {
	var out []string
	if res.Unmatched > 0 {
		out = append(out, plural(int(res.Unmatched), "record")+
			" of points or evaluations that these rounds do not give, such as those of a run that was stopped")
	}
	if res.Removed > 0 {
		out = append(out, plural(res.Removed, "checkpoint")+" whose files the run has removed")
	}
	return strings.Join(append(out, "times, and what machines measured"), "; ")
}

// verifiedObject is what verifying the session in dir came to.
func verifiedObject(dir string, res host.Verified, took time.Duration) map[string]any {
	return map[string]any{"event": "verified", "commits": res.Commits, "rounds": res.Rounds, "bytes": res.Bytes,
		"params_hash": res.Last.Hash, "seconds": took.Seconds(), "session": dir, "open": res.Open, "torn": res.Torn, "told": res.Told,
		"evaluations": res.Evaluations, "points": res.Points, "unmatched": res.Unmatched, "checkpoints": res.Checkpoints, "checkpoints_removed": res.Removed, "segments": res.Within.Segments,
		"largest_error": res.Within.LargestError}
}
