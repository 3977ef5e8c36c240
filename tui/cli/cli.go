// Package cli implements the command line: it assembles runs, viewers and tools from the other packages, and owns
// exit statuses and printed output. It may import every package of the module.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"brood/models/program"
	"brood/models/usererr"
	"brood/optim"
	"brood/optim/catalog"
	"brood/runtime/archive"
	"brood/runtime/fleet"
	"brood/runtime/option"
	"brood/runtime/session"
	"brood/tui/panel"
)

// Exit statuses.
const (
	exitDone    = 0
	exitFailed  = 1 // failed on this machine; the message says what to do
	exitUsage   = 2 // the arguments are invalid on every machine
	exitCtrlC   = 130
	exitSigterm = 143
)

// exitError is an error with an exit status.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// usage returns a usage error: invalid arguments.
func usage(format string, args ...any) error { return usererr.Errorf(format, args...) }

// statusOf maps an error to the exit status: the status of an exitError, exitUsage for a usage error, else
// exitFailed.
func statusOf(err error) int {
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.code
	}
	switch {
	case err == nil:
		return exitDone
	case usererr.Is(err):
		return exitUsage
	}
	return exitFailed
}

// streams holds the input and outputs of a command. Writes to out and err pass through [cleaned].
type streams struct {
	in       *os.File
	out, err io.Writer
	screen   io.Writer // terminal of a workbench, which queries its size; nil: no workbench
	terminal bool      // standard input and out are terminals that a workbench can use
}

// Main runs the command of this process's arguments and returns its exit status. It registers the algorithms in own
// under their names, so that a program of another module is a brood with more algorithms.
func Main(own ...*optim.Algorithm) int {
	if err := catalog.Add(own...); err != nil {
		fmt.Fprintln(os.Stderr, "brood: "+sentence(err))
		return exitFailed
	}
	tty := term.IsTerminal(os.Stdout.Fd()) && term.IsTerminal(os.Stdin.Fd()) && os.Getenv("TERM") != "dumb"
	return Run(context.Background(), os.Args[1:], streams{
		in:       os.Stdin,
		out:      os.Stdout,
		err:      os.Stderr,
		screen:   os.Stdout,
		terminal: tty,
	})
}

// Run is Main for given arguments. It fails if a command succeeded but could not write all of its output, unless the
// reader closed the pipe.
func Run(ctx context.Context, args []string, s streams) int {
	out := newStdout(s.out)
	s.out, s.err = &cleaned{out}, &cleaned{s.err}
	ctx = context.WithValue(ctx, stdoutKey{}, out)
	err := execute(ctx, args, s)
	program.CloseAll()
	if out.ended() && errors.Is(err, context.Canceled) { // canceled because the reader closed the pipe
		err = nil
	}
	if failed := out.failure(); failed != nil {
		if _, reported := errors.AsType[*writeError](err); !reported {
			err = errors.Join(err, failed)
		}
	}
	if err != nil {
		fmt.Fprintln(s.err, "brood: "+sentence(err))
		if f, ok := errors.AsType[*fleet.Fault](err); ok { // a bug: print the stack for a report
			_, _ = s.err.Write(f.Stack)
		}
	}
	return statusOf(err)
}

// execute runs the command of these arguments. The caller cleans the output and reports the error.
func execute(ctx context.Context, args []string, s streams) error {
	root := newRoot(s)
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) { // a shell asks for completions
		completeIn(root)
	}
	root.SetArgs(args)
	root.SetOut(s.out)
	root.SetErr(s.err)
	return root.ExecuteContext(ctx)
}

func newRoot(s streams) *cobra.Command {
	run := &runFlags{}
	root := &cobra.Command{
		Use:   "brood",
		Short: "Train one model with a population, in the terminal",
		Long: "brood trains one model with a population: coupled replicas, evolution, gossip. Without a command it " +
			"opens the workbench\n" +
			"on your runs; with none yet, it starts training the default preset.",
		Args:          noArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(c *cobra.Command, _ []string) error {
			if s.terminal && len(passOn(c, drawNames...)) == 0 && recordedAny() {
				return openWorkbench(c.Context(), panel.Opened{}, run.draw.options(), "", s)
			}
			return run.execute(c, "", s)
		},
	}
	run.register(root)
	root.Version = versionText()
	root.SetVersionTemplate(versionLine() + "\n")
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(flagError)
	for _, c := range []func(streams) *cobra.Command{
		runCommand, serveCommand, workerCommand, fleetCommand, openCommand, inviteCommand, revokeCommand,
		attachCommand, setCommand, stopCommand, sessionsCommand, replayCommand, compareCommand, ecdfCommand, geometryCommand,
		verifyCommand, forkCommand, rmCommand, pruneCommand, exportCommand, logCommand, evalCommand, predictCommand,
		sampleCommand,
		simulateCommand, sweepCommand, reproduceCommand, judgeCommand, scaleCommand, checkCommand, programCommand, mcpCommand,
		presetsCommand,
		algorithmsCommand, modelsCommand, dataCommand, benchCommand, doctorCommand, versionCommand,
	} {
		root.AddCommand(c(s))
	}
	wrapHelp(root, s)
	return root
}

// flagError returns a usage error for an invalid flag. If the flags follow a misspelled command, it reports that
// command instead.
func flagError(c *cobra.Command, err error) error {
	if words := c.Flags().Args(); len(words) > 0 { // a flag of another command follows its misspelled name
		if err := unknownCommand(c, words[0], c.ValidateArgs(words) != nil); err != nil {
			return err
		}
	}
	if value, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		err = fmt.Errorf("--%s %s: that is no %s", value.GetFlag().Name, value.GetValue(),
			kinds[value.GetFlag().Value.Type()])
	}
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok && unknown.GetSpecifiedShortnames() == "" {
		var names []string
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, "--"+f.Name)
			}
		})
		err = fmt.Errorf("%w%s", err, usererr.Suggest("--"+unknown.GetSpecifiedName(), names))
	}
	return usage("%w; see `%s --help`", err, c.CommandPath())
}

// recordedAny reports whether there is a session to open, or a configured host that may have some.
func recordedAny() bool {
	if hosts, err := readHosts(); len(hosts) > 0 || err != nil {
		return true
	}
	home, err := session.Home()
	if err != nil {
		return false
	}
	return archive.OpenLibrary(home, "").Any()
}

// kinds describes the values of each type of flag, for errors.
var kinds = func() map[string]string {
	out := map[string]string{"age": "time such as 30d or 12h", "bool": "true or false",
		"round":    "round: give a number, or best",
		"seeds":    "number of seeds, nor a list of seeds such as 7,1009",
		"theme":    "theme: give dark, light or plain",
		"intSlice": "list of whole numbers such as 2,4,8", "stringSlice": "list of names such as dp-sgd,parle",
		"threads": fmt.Sprintf("number of threads: give 1 to %d", maxThreads)}
	for kind, noun := range option.Nouns {
		out[string(kind)] = noun
	}
	return out
}()

// exactly returns a cobra.PositionalArgs that requires one argument for each name. The names appear in errors.
func exactly(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) < len(names) {
			return usage("%s needs %s; see `%s --help`", c.CommandPath(), names[len(args)], c.CommandPath())
		}
		if len(args) > len(names) {
			what := fmt.Sprintf("see `%s --help`", c.CommandPath())
			if c.Flags().Lookup(option.Data.Name) != nil {
				what = "--" + option.Data.Name + " names a data set or a path"
			}
			return usage("%s does not take the argument %q; %s", c.CommandPath(), args[len(names)], what)
		}
		return nil
	}
}

// onePrinter fails if both --plain and --json are given.
func onePrinter(plain, json bool) error {
	if plain && json {
		return usage("--plain and --json exclude each other")
	}
	return nil
}

// atLeastOne returns a cobra.PositionalArgs that requires an argument. The name appears in errors.
func atLeastOne(name string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return exactly(name)(c, args)
		}
		return nil
	}
}

// atMostOne returns a cobra.PositionalArgs that allows one argument, a thing of this kind.
func atMostOne(kind string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) > 1 {
			return usage("%s takes one %s, but got %q too", strings.TrimPrefix(c.CommandPath(), "brood "), kind,
				args[1])
		}
		return nil
	}
}

// passOn returns the flags that were set, as arguments, except those in but.
func passOn(c *cobra.Command, but ...string) (out []string) {
	c.Flags().Visit(func(fl *pflag.Flag) {
		if slices.Contains(but, fl.Name) {
			return
		}
		if values, ok := fl.Value.(interface{ GetSlice() []string }); ok {
			for _, v := range values.GetSlice() {
				out = append(out, "--"+fl.Name+"="+v)
			}
			return
		}
		out = append(out, "--"+fl.Name+"="+fl.Value.String())
	})
	return out
}
