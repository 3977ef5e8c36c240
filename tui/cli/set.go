package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"brood/runtime/event"
)

func setCommand(s streams) *cobra.Command {
	var take bool
	var as, why string
	c := &cobra.Command{Use: "set SESSION|URL NAME=VALUE...", Short: "Set knobs of a running session, as one transaction",
		Long: "Set knobs of a running session, as one transaction. NAME is a knob of its algorithm, `members` for\n" +
			"the population size, or `algorithm` to swap it. VALUE is a number, a choice or a schedule. A position in a\n" +
			"schedule is a round of the run; with a + it counts rounds from the first round of the setting. A schedule\n" +
			"that has already ended is rejected. `*0.5` and `/2` scale the value in effect, or the whole schedule that\n" +
			"the knob follows.",
		Example: `  brood set SESSION eta=0.02 gamma=exp:20*0.99/round..2
  brood set SESSION eta=cosine:0.1..0.001@+200
  brood set SESSION eta=step:0.1,+60=0.02,+120=0.004 members=8
  brood set SESSION gamma=/2
  brood set SESSION algorithm=elastic eta=0.05`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usage("set needs a SESSION or URL and NAME=VALUE; see `brood set --help`")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			settings, err := parseSettings(args[1:])
			if err != nil {
				return err
			}
			cmd := event.Command{Why: why}
			for _, x := range settings {
				if x.Knob == "algorithm" {
					cmd.Algorithm = x.Expr
				} else {
					cmd.Set = append(cmd.Set, x)
				}
			}
			return send(c.Context(), args[0], as, take, cmd, s)
		}}
	c.Flags().BoolVar(&take, "take", false, "take the writer's lease from its holder")
	c.Flags().StringVar(&why, "why", "", "reason for the change, recorded in the log")
	asFlag(c, &as)
	return c
}

// send sends a command to a running session and prints the receipt. as is the value of --as, see [authorName]. After a
// stop it waits until the process of the run has ended.
func send(ctx context.Context, what, as string, take bool, cmd event.Command, s streams) error {
	name, err := authorName(as)
	if err != nil {
		return err
	}
	cmd.By = name
	run, err := connect(ctx, what, name, take)
	if err != nil {
		return err
	}
	defer run.Close()
	r, err := run.commandAndLeave(ctx, cmd)
	if err != nil {
		return err
	}
	if !r.Accepted && r.Usage {
		return usage("%s", r.Reason)
	}
	if !r.Accepted {
		return errors.New(r.Reason)
	}
	if cmd.Link != nil {
		fmt.Fprintf(s.out, "accepted: %s\n", *cmd.Link)
		return nil
	}
	if cmd.Action == event.Stop {
		if err := run.wait(ctx); err != nil {
			return err
		}
		fmt.Fprintln(s.out, strings.TrimSpace("stopped; "+run.resumeHint()))
		return nil
	}
	fmt.Fprintf(s.out, "accepted, from round %d\n", r.Round+1)
	return nil
}
