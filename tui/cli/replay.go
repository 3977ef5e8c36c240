package cli

import (
	"errors"
	"fmt"
	"io"

	"brood/runtime/archive"

	"github.com/spf13/cobra"

	"brood/runtime/session"
)

// ignoreEnd returns nil for io.EOF, else err.
func ignoreEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func replayCommand(s streams) *cobra.Command {
	var at uint64
	var program string
	var draw drawFlags
	var frames frameFlags
	c := &cobra.Command{
		Use:   "replay SESSION",
		Short: "Replay a recorded session in the workbench",
		Args:  exactly("a SESSION"),
		RunE: func(c *cobra.Command, args []string) error {
			dir, err := resolve(args[0])
			if err != nil {
				return err
			}
			r, err := session.OpenReader(dir)
			if err != nil {
				return err
			}
			defer r.Close()
			opt := draw.options()
			opt.At = at
			if err := frames.apply(c, &opt); err != nil {
				return err
			}
			switch {
			case frames.frames > 1:
				return usage("--frames %d: a recording has one frame per round: give 1, and the round with "+
					"--at", frames.frames)
			case frames.frames == 1:
				opt.Session = dir
				return frames.print(c.Context(), recorded(dir, r), opt, s)
			case !s.terminal:
				return printRecorded(c, r, at, s)
			}
			// The last round of a log that cannot be read to its end is unknown.
			if x := session.Describe(dir); x.Err == "" && at > x.Round {
				return beyondEnd(at, x.Round)
			}
			return openWorkbench(c.Context(), recorded(dir, r), opt, program, s)
		},
	}
	c.Flags().Uint64Var(&at, "at", 0, "start paused after this round")
	programFlags(c.Flags(), &program)
	draw.register(c)
	frames.register(c)
	return c
}

// beyondEnd returns the error for a round after the last one of a session.
func beyondEnd(at, last uint64) error {
	return fmt.Errorf("round %d is after the end of the session, round %d", at, last)
}

// printRecorded prints a recorded session as plain lines, starting at round at.
func printRecorded(c *cobra.Command, r *session.Reader, at uint64, s streams) error {
	p := &plainPrinter{out: s.out, Tally: archive.NewTally()}
	defer p.flush()
	var round uint64
	seen := uint64(0)
	for rec, err := range r.Rest() {
		if err != nil {
			return err
		}
		if rec.Commit != nil {
			round = rec.Commit.To
			seen = max(seen, round)
		}
		switch {
		case round < at:
			p.Tally.Record(rec)
		case rec.Commit != nil:
			p.Tally.Record(rec)
			loss := ""
			if word, x, ok := p.Shown(); ok {
				loss = fmt.Sprintf("%s %7.4f", word, x)
			}
			p.line("round %6d  epoch %6.2f  %s  %s", rec.Commit.To, rec.Commit.Progress.Epochs, loss, rec.Commit.Hash)
		default:
			p.record(rec)
		}
		if c.Context().Err() != nil {
			return c.Context().Err()
		}
	}
	if at > seen {
		return beyondEnd(at, seen)
	}
	return nil
}
