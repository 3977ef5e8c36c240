package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"brood/runtime/remote"
	"brood/runtime/session"
	"brood/runtime/view"
)

func openCommand(s streams) *cobra.Command {
	var f listenFlags
	var listen string
	c := &cobra.Command{
		Use:   "open SESSION",
		Short: "Give others access to a running session, without stopping it",
		Args:  exactly("a SESSION"),
		Long: "Give others access to a running session, without stopping it: by URL (--listen), by SSH (--ssh), or " +
			"Prometheus (--metrics).\n" +
			"The listeners close with Ctrl+C, or with the run.",
		RunE: func(c *cobra.Command, args []string) (err error) {
			if listen == "" && f.ssh == "" && f.metrics == "" {
				return usage("brood open needs --listen, --ssh or --metrics with an address")
			}
			run, err := connect(c.Context(), args[0], clientName(), false)
			if err != nil {
				return err
			}
			defer run.Close()
			if run.dir == "" {
				return usage("%s runs on another machine: use brood open there", args[0])
			}
			ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			out := newPrinter(s, false)
			logged := withLog(out)
			logged.setSession(run.dir, fmt.Sprintf("brood open begins as process %d", os.Getpid()))
			defer func() { logged.fail(err) }()
			d, err := f.listen(logged.note)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, d.Close()) }()
			if listen != "" {
				srv, err := remote.Listen(remote.Config{
					Address:  listen,
					Guests:   guests,
					Software: "brood " + versionText(),
					Note:     logged.note,
				})
				if err != nil {
					return err
				}
				defer func() { err = errors.Join(err, srv.Close()) }()
				srv.AdmitClients(run.dir)
				invite(out, s, srv)
			}
			d.serve(run.dir)
			d.announce(out, s)
			if err := run.wait(ctx); !errors.Is(err, context.Canceled) {
				if !session.Describe(run.dir).Phase.Over() {
					killed := run.explain(view.ErrKilled)
					d.part(killed.Error())
					return killed
				}
				d.part("the run is over")
				fmt.Fprintln(s.out, "brood: the run is over")
				return err
			}
			d.part("brood open has ended; training continues")
			fmt.Fprintln(s.out, "brood: the listeners are closed; training continues")
			return nil
		},
	}
	c.Flags().StringVar(&listen, "listen", "",
		"UDP address for viewers and operators: HOST:PORT, or :PORT for all addresses of this machine")
	f.register(c.Flags())
	return c
}
