package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"brood/optim/catalog"
	"brood/runtime/archive"
	"brood/runtime/control"
	"brood/runtime/event"
	"brood/runtime/session"
	"brood/transport/wire"
	"brood/tui"
	"brood/tui/panel"
)

// clientName returns the name of this user. The writer's lease and the log of edits record it.
func clientName() string {
	if name := cmp.Or(os.Getenv("USER"), os.Getenv("LOGNAME"), os.Getenv("USERNAME")); name != "" {
		return name
	}
	if u, err := user.Current(); err == nil && u.Username != "" { // services and containers have no such variables
		return u.Username
	}
	return "operator"
}

// openWorkbench opens the workbench on a session and returns when the user leaves it. opt has the values of the flags;
// program is the command of an objective or of a program, "" for none.
func openWorkbench(ctx context.Context, o panel.Opened, opt panel.Options, program string, s streams) error {
	lib, err := newSessionLibrary(o)
	if err != nil {
		return err
	}
	defer lib.end()
	lib.program = program
	opt.Source, opt.Commander, opt.Session, opt.Resume, opt.Close, opt.Library = o.Source, o.Commander, o.Session,
		o.Resume, o.Close, lib
	opt.Algorithms, opt.In, opt.Out = catalog.All(), s.in, s.screen
	opt.Suspend, opt.By = resumable(), cmp.Or(opt.By, clientName())
	err = tui.Run(ctx, opt)
	if err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	last := lib.last()
	dir := last.Session
	if dir == "" {
		return nil // the session is on another machine
	}
	if running, _ := session.Running(dir); last.Commander != nil && running {
		fmt.Fprintf(s.out, "training continues: return with `brood attach %s`, stop it with `brood stop %s`\n",
			sessionArg(dir), sessionArg(dir))
	}
	return nil
}

// resolve finds a session by name, prefix or path.
func resolve(what string) (string, error) {
	home, err := session.Home()
	if err != nil {
		return "", err
	}
	return session.Resolve(home, what)
}

func attachCommand(s streams) *cobra.Command {
	var take, asJSON, readOnly bool
	var as, program string
	var frames frameFlags
	var draw drawFlags
	c := &cobra.Command{
		Use:   "attach SESSION|URL",
		Short: "Open a running session in the workbench",
		Args:  exactly("a SESSION or URL"),
		RunE: func(c *cobra.Command, args []string) error {
			for _, name := range []string{"frames", "screen", "size"} {
				if asJSON && c.Flags().Changed(name) {
					return usage("--json prints lines for a program: leave --%s out", name)
				}
			}
			if take && readOnly {
				return usage("--read-only sends no commands, and --take is for sending them: give one of them")
			}
			opt := draw.options()
			opt.ReadOnly = readOnly
			if err := frames.apply(c, &opt); err != nil {
				return err
			}
			name, err := authorName(as)
			if err != nil {
				return err
			}
			run, err := connect(c.Context(), args[0], name, take)
			if err != nil {
				return err
			}
			defer run.Close()
			if asJSON {
				return run.explain(attachProgram(c.Context(), run, name, readOnly, s))
			}
			o := live(run.dir, run.Client)
			opt.Title, opt.By = archive.ShortName(run.name), name
			switch {
			case frames.frames > 0:
				return run.explain(frames.print(c.Context(), o, opt, s))
			case !s.terminal:
				return run.explain(follow(c.Context(), run.Client, s))
			}
			if o.Close = run.Close; run.readOnly {
				o.Commander = nil
			}
			return openWorkbench(c.Context(), o, opt, program, s)
		},
	}
	draw.register(c)
	programFlags(c.Flags(), &program)
	c.Flags().BoolVar(&take, "take", false, "take the writer's lease from its holder")
	c.Flags().BoolVar(&asJSON, "json", false, "print events and read commands, one JSON object a line")
	c.Flags().BoolVar(&readOnly, "read-only", false, "reject all commands, from keys and from --json")
	asFlag(c, &as)
	frames.register(c)
	return c
}

// asFlag adds the flag --as: the author of the commands in the log of the run.
func asFlag(c *cobra.Command, as *string) {
	c.Flags().StringVar(as, "as", "", "name that the log records for your commands (default: your user name)")
}

// authorName returns the author of commands: the value of --as, or the name of this user if it is empty. It fails for
// names that the log reserves or cannot show.
func authorName(as string) (string, error) {
	if as == "" {
		return clientName(), nil
	}
	if slices.Contains(event.SpecAuthors, as) {
		return "", usage("--as %s: the log has this name for edits that no command made; choose another one", as)
	}
	if wire.CleanName(as) != as || strings.Contains(as, ":") { // the log writes NAME: REASON
		return "", usage("--as %q: give letters, digits and spaces, at most 64", as)
	}
	return as, nil
}

// follow prints a live run as plain lines, for output that is not a terminal.
func follow(ctx context.Context, client *control.Client, s streams) error {
	ctx, stop := writing(ctx)
	defer stop()
	v, err := client.Snapshot(ctx, 1<<62)
	if err != nil {
		return err
	}
	p := &plainPrinter{out: s.out, Tally: archive.NewTally()}
	p.Join(v)
	defer p.flush()
	for at := v.Position; ; {
		b, err := client.Next(ctx, at, 1024)
		if err != nil {
			return ignoreEnd(err)
		}
		for _, r := range b.Records {
			p.record(r)
		}
		at = b.Next
	}
}
