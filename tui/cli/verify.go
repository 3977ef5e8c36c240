package cli

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"brood/models/usererr"
	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/verify"
	"brood/transport/wire"
	"brood/tui/textfmt"
)

func verifyCommand(s streams) *cobra.Command {
	var threads int
	var program string
	var asJSON bool
	var within float64
	c := &cobra.Command{
		Use:   "verify SESSION",
		Short: "Recompute a session and compare every commit",
		Long: `verify recomputes all rounds of a session and compares the hash of the state after each commit.

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
					word := "matches"
					if within > 0 {
						word = "executed"
					}
					fmt.Fprintf(s.err, "round %6d %s\n", k.To, word)
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
				return fmt.Errorf("session %s has no committed round: there is nothing to verify", filepath.Base(dir))
			}
			if asJSON {
				return objects(s.out, verifiedObject(dir, res, time.Since(t0)))
			}
			printVerified(s.out, res, within, time.Since(t0))
			return nil
		},
	}
	programFlags(c.Flags(), &program)
	threadsFlag(c.Flags(), &threads)
	c.Flags().Float64Var(&within, "within", 0,
		"compare saved parameters in place of hashes: the largest error, as a share "+
			"of their distance from the start")
	c.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	return c
}

// printVerified prints the result of a verification. within is the tolerance; 0: hashes were compared.
func printVerified(w io.Writer, res host.Verified, within float64, took time.Duration) {
	predicted := "as predicted"
	if res.WrongBytes {
		predicted = "unlike the formula of the algorithm"
	}
	fmt.Fprintf(w, "verified: %d commits, %s rounds recomputed in %s, %s on the links %s\n", res.Commits,
		textfmt.Grouped(res.Rounds), clockTime(took.Seconds()), textfmt.Size(res.Bytes), predicted)
	if within > 0 {
		fmt.Fprintf(w, "within %g: %s; %s\n", within, largestError(res.Within), uncompared(res))
	} else {
		fmt.Fprintln(w, res.Last.Hash)
	}
	if res.From > 0 {
		fmt.Fprintf(w, "not verified: the rounds up to %d, since older records were removed (--keep-log); the state after "+
			"them is that of a checkpoint\n", res.From)
	}
	fmt.Fprintf(w, "compared: %s and %s; %s\n", textfmt.Count(int(res.Evaluations), "test evaluation"),
		textfmt.Count(int(res.Points), "record")+" of points", textfmt.Count(res.Checkpoints, "checkpoint")+" on disk")
	if res.Signed > 0 {
		fmt.Fprintf(w, "signed: %s with rows, by the keys %s\n", textfmt.Count(res.Signed, "saved file"),
			strings.Join(signers(res), ", "))
	}
	fmt.Fprintf(w, "not compared: %s\n", uncovered(res))
	for _, text := range res.Alerts {
		fmt.Fprintf(w, "alert of the session: %s\n", oneLine(text))
	}
	switch {
	case res.Torn != nil:
		fmt.Fprintf(w, "missing: %d bytes at byte %d of %s are an incomplete frame; rounds after %d are not in the "+
			"log, and a resume recomputes them\n", res.Torn.Lost, res.Torn.Offset, res.Torn.Segment, res.Last.To)
	case res.Open:
		fmt.Fprintf(w, "missing: the end of the run; it is running, was killed, or its log was cut off after "+
			"round %d\n", res.Last.To)
	}
}

// largestError returns the largest error of a verification within a tolerance, as a sentence.
func largestError(c verify.Closeness) string {
	if c.LargestError == 0 {
		return fmt.Sprintf("the parameters of %s equal those of the session, bit for bit",
			textfmt.Count(c.Segments, "saved state"))
	}
	return fmt.Sprintf("largest error of the parameters %.2g, in round %d; %s compared", c.LargestError, c.Round,
		textfmt.Count(c.Segments, "saved state"))
}

// uncompared describes the rounds that a verification within a tolerance executed but did not compare.
func uncompared(res host.Verified) string {
	if res.Within.Compared >= res.Last.To {
		return "hashes were not compared"
	}
	return fmt.Sprintf("hashes were not compared, nor the rounds after %d", res.Within.Compared)
}

// uncovered lists the records that a verification does not compare.
func uncovered(res host.Verified) string {
	var out []string
	if res.Unmatched > 0 {
		out = append(out, textfmt.Count(int(res.Unmatched), "record")+
			" of points or evaluations that these rounds do not produce, such as the last ones of a stopped run")
	}
	if res.Removed > 0 {
		out = append(out, textfmt.Count(res.Removed, "checkpoint")+" whose files the run has removed")
	}
	return strings.Join(append(out, "times, and measurements of machines"), "; ")
}

// signers returns the keys that signed saved files, as brood revoke takes them.
func signers(res host.Verified) (keys []string) {
	for _, k := range res.Signers {
		keys = append(keys, wire.NodeID(k).String())
	}
	return keys
}

// verifiedObject returns the result of the verification of the session in dir as a JSON object.
func verifiedObject(dir string, res host.Verified, took time.Duration) map[string]any {
	return map[string]any{"event": "verified", "commits": res.Commits, "rounds": res.Rounds, "bytes": res.Bytes,
		"from_round": res.From, "params_hash": res.Last.Hash, "seconds": took.Seconds(), "session": dir, "open": res.Open,
		"torn":   res.Torn,
		"alerts": res.Alerts, "evaluations": res.Evaluations, "points": res.Points, "unmatched": res.Unmatched,
		"checkpoints": res.Checkpoints, "checkpoints_removed": res.Removed, "segments": res.Within.Segments,
		"largest_error": res.Within.LargestError, "signed": res.Signed, "signers": signers(res)}
}
