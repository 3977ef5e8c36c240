package cli

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"brood/runtime/archive"

	"github.com/spf13/cobra"

	"brood/runtime/session"
)

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
				return usage("--frames %d: a recording has one frame at a round: name it with --at", frames.frames)
			case frames.frames == 1:
				opt.Title = filepath.Base(dir)
				return frames.print(c.Context(), recorded(dir, r), opt, s)
			case !s.terminal:
				return reprint(c, r, at, s)
			}
			// The last round of a log that cannot be read to its end is unknown.
			if x := session.Describe(dir); x.Err == "" && at > x.Round {
				return beyondEnd(at, x.Round)
			}
			return look(c.Context(), recorded(dir, r), opt, program, s)
		},
	}
	c.Flags().Uint64Var(&at, "at", 0, "start paused after this round")
	programFlags(c.Flags(), &program)
	draw.register(c)
	frames.register(c)
	return c
}

// beyondEnd refuses a round that a session has not.
func beyondEnd(at, last uint64) error {
	return fmt.Errorf("round %d lies beyond the end of the session at round %d", at, last)
}

// reprint writes a recorded session as plain lines, from a round on.
func reprint(c *cobra.Command, r *session.Reader, at uint64, s streams) error {
	p := &plainPrinter{out: s.out, Tally: archive.NewTally()}
	defer p.flush()
	var round uint64
	seen := uint64(0)
	for {
		rec, err := r.Next()
		if err != nil {
			if at > seen && errors.Is(err, io.EOF) {
				return beyondEnd(at, seen)
			}
			return ignoreEnd(err)
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
}
