package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"brood/runtime/control"
	"brood/transport/identity"
	"brood/transport/wire"
)

func inviteCommand(s streams) *cobra.Command {
	g := control.Gate{}
	c := &cobra.Command{
		Use:   "invite SESSION",
		Short: "Print a URL that admits others to a served run",
		Args:  exactly("a SESSION or URL"),
		Long: "Print a URL that admits others to a served run: workers that host members, read-only viewers, or\n" +
			"operators, who may send commands. A client that was admitted once can reconnect with its key until `brood\n" +
			"revoke`.",
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case g.Uses < 1 || g.Uses > 1<<20:
				return usage("--uses %d: give 1 or more", g.Uses)
			case g.TTL <= 0:
				return usage("--ttl %s: give a duration such as 1h", g.TTL)
			case g.Role != wire.Worker.String() && g.Role != wire.Viewer.String() && g.Role != wire.Operator.String():
				return usage("--role %q: give worker, viewer or operator", g.Role)
			}
			run, err := connect(c.Context(), args[0], clientName(), false)
			if err != nil {
				return err
			}
			defer run.Close()
			url, err := run.Gate(c.Context(), g)
			if err == nil {
				fmt.Fprintln(s.out, url)
			}
			return err
		},
	}
	c.Flags().StringVar(&g.Role, "role", wire.Viewer.String(), "role of the clients: worker, viewer or operator")
	c.Flags().IntVar(&g.Uses, "uses", 1, "number of clients that the URL admits")
	c.Flags().DurationVar(&g.TTL, "ttl", identity.TokenTTL, "time for which the URL is valid")
	return c
}
