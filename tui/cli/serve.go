package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/option"
	"brood/runtime/remote"
	"brood/transport/wire"
)

type serveFlags struct {
	run       runFlags
	listeners listenFlags
	listen    string
	enrol     int
	announce  func(printer, *remote.Server) // prints how workers and viewers join
}

// servePort is the default address of a served run.
const servePort = ":4433"

func serveCommand(s streams) *cobra.Command {
	_, c := newServe(s, func(out printer, srv *remote.Server) { invite(out, s, srv) })
	return c
}

// newServe returns the command serve and its flags. announce prints how workers and viewers join.
func newServe(s streams, announce func(printer, *remote.Server)) (*serveFlags, *cobra.Command) {
	f := &serveFlags{run: runFlags{serves: true}, announce: announce}
	c := &cobra.Command{
		Use:   "serve [run] [PRESET|FILE.toml]",
		Short: "Train on workers of other machines: prints the command that joins them",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 && args[0] == "run" {
				args = args[1:]
			}
			return atMostOne("preset")(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 && args[0] == "run" {
				args = args[1:]
			}
			return f.execute(c, strings.Join(args, ""), s)
		},
	}
	f.run.register(c)
	fl := c.Flags()
	f.listeners.register(fl)
	fl.StringVar(&f.listen, "listen", servePort,
		"UDP address to listen on: HOST:PORT, or :PORT for all addresses of this machine")
	fl.IntVar(&f.enrol, "enrol", 0, "workers that the join URL admits (default: as many as it waits for)")
	joinFlags(c, &f.run.opts)
	for _, name := range append([]string{"background"}, drawNames...) {
		_ = fl.MarkHidden(name)
	}
	return f, c
}

// guests is how many viewers, and how many operators, the first URLs admit. brood invite creates more URLs.
const guests = 8

// invite prints the commands with which workers and viewers join.
func invite(out printer, s streams, srv *remote.Server) {
	for _, way := range []struct {
		event, command string
		role           wire.Role
	}{{"join", "worker", wire.Worker}, {"watch", "attach", wire.Viewer}, {"operate", "attach", wire.Operator}} {
		url := srv.Join(way.role)
		if url == "" {
			continue
		}
		if j, ok := out.(*jsonPrinter); ok {
			j.put(map[string]any{"event": way.event, "url": url})
		} else {
			fmt.Fprintf(s.out, "%s: brood %s %s\n", way.event, way.command, url)
		}
	}
}

// awaited returns the number of other processes that the run waits for.
func (f *serveFlags) awaited() int {
	return max(f.run.opts.Wait, f.run.opts.MinWorkers-f.run.opts.Workers)
}

// check rejects flags that a served run cannot have.
func (f *serveFlags) check(c *cobra.Command) error {
	switch {
	case f.run.background:
		return usage("serve runs in the foreground: leave --background out, and open the run with brood attach SESSION")
	case f.run.opts.Wait < 0 || f.run.opts.Wait > 1024:
		return usage("--wait %d: give 0 to 1024", f.run.opts.Wait)
	case f.run.opts.Wait == 0 && f.run.opts.Workers < 1:
		return usage("--wait 0: the run would have no workers; give --workers too, or --wait 1 or more")
	case f.run.opts.MinWorkers < 0 || f.run.opts.MinWorkers > 1024:
		return usage("--min-workers %d: give 0 to 1024", f.run.opts.MinWorkers)
	case c.Flags().Changed("enrol") && f.enrol < f.awaited():
		return usage("--enrol %d: the run waits for more workers than that: give %d or more", f.enrol, f.awaited())
	}
	if err := onePrinter(f.run.plain, f.run.json); err != nil {
		return err
	}
	if f.run.opts.Workers == 0 {
		c.Flags().Lookup(option.Workers.Name).Changed = false
	}
	return nil
}

func (f *serveFlags) execute(c *cobra.Command, preset string, s streams) (err error) {
	if err := f.check(c); err != nil {
		return err
	}
	out := newPrinter(s, f.run.json)
	logged := withLog(out)
	cfg := remote.Config{
		Address:  f.listen,
		Enrol:    max(f.enrol, f.awaited(), 1),
		Guests:   guests,
		Software: "brood " + versionText(),
		Note:     logged.note,
	}
	if err := f.run.continueSession(c, preset); err != nil {
		return err
	}
	if f.run.resume != "" {
		if cfg.Dir, err = resolve(f.run.resume); err != nil {
			return err
		}
		if !c.Flags().Changed("listen") {
			cfg.Address = "" // keep the recorded address
		}
	}
	srv, err := remote.Listen(cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, srv.Close()) }()
	d, err := f.listeners.listen(logged.note)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			d.part(err.Error())
		} else {
			d.part("the run is over")
		}
		err = errors.Join(err, d.Close())
	}()
	p, err := f.run.prepare(c.Context(), c, preset)
	if err != nil {
		return f.run.unlessComplete(err, s)
	}
	if f.run.continueRun {
		p.interrupt = srv.KeepWorkers
	}
	p.open = func(p prepared, watch func(event.Record)) (*host.Run, error) {
		run, err := srv.Serve(p.job, p.sess, p.from, watch, f.run.opts.Workers)
		if err != nil {
			return nil, err
		}
		f.announce(out, srv)
		d.serve(p.sess.Dir())
		d.announce(out, s)
		return run, nil
	}
	return train(c.Context(), p, logged)
}
