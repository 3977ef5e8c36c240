package cli

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"brood/runtime/option"
	"brood/runtime/session"
	"brood/tui/textfmt"
)

type pruneFlags struct {
	older  time.Duration
	keep   int
	dryRun bool
}

func pruneCommand(s streams) *cobra.Command {
	f := &pruneFlags{}
	c := &cobra.Command{Use: "prune", Short: "Remove old sessions that do not run",
		Long: "Remove sessions that do not run: those without a write for the time --older, or all but the --keep\n" +
			"newest, or, with both, those that are older and not among the newest. Stopped and killed sessions that could\n" +
			"be resumed are removed too.",
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			given := c.Flags().Changed
			switch {
			case !given("older") && !given("keep"):
				return usage("prune needs --older, such as --older 30d, or --keep N, or both; --dry-run shows what would be " +
					"removed")
			case given("older") && f.older <= 0:
				return usage("--older %s: give a time above 0, such as 30d", f.older)
			case f.keep < 0:
				return usage("--keep %d: give 0 or more", f.keep)
			}
			home, err := session.Home()
			if err != nil {
				return err
			}
			list, err := session.List(home)
			if err != nil {
				return err
			}
			return f.prune(list, time.Now(), s.out)
		}}
	older := valueFlag[time.Duration]{&f.older, "age", option.ParseAge, time.Duration.String}
	c.Flags().Var(older, "older", "remove sessions without a write for this time, such as 30d or 12h")
	c.Flags().IntVar(&f.keep, "keep", 0, "keep this many of the newest sessions")
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "print what would be removed, and remove nothing")
	return c
}

// prune removes sessions of a list, which is sorted from the newest to the oldest.
func (f *pruneFlags) prune(list []session.Info, now time.Time, out io.Writer) error {
	removed, freed := "removed", "freed"
	if f.dryRun {
		removed, freed = "would remove", "would free"
	}
	bytes, n := int64(0), 0
	for _, x := range list[min(f.keep, len(list)):] {
		idle := now.Sub(lastWrite(x))
		if x.Running || idle < f.older {
			continue
		}
		size := x.Size
		if !f.dryRun {
			var err error
			if size, err = removeSession(x.Dir); err != nil {
				return err
			}
		}
		bytes, n = bytes+size, n+1
		fmt.Fprintf(out, "%s %s: %s, idle for %.0f days\n", removed, oneLine(x.Name), x.State(), idle.Hours()/24)
	}
	fmt.Fprintf(out, "%s %s: %d of %s\n", freed, textfmt.Size(bytes), n, textfmt.Count(len(list), "session"))
	return nil
}

// lastWrite returns when a file of a session was last written, except for its lock.
func lastWrite(x session.Info) time.Time {
	last := x.Started
	entries, _ := os.ReadDir(x.Dir)
	for _, e := range entries {
		if i, err := e.Info(); err == nil && e.Name() != session.LockName && i.ModTime().After(last) {
			last = i.ModTime()
		}
	}
	return last
}
