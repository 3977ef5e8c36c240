package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"brood/runtime/library"
	"brood/runtime/session"
	"brood/tui"
)

func sessionsCommand(s streams) *cobra.Command {
	c := &cobra.Command{Use: "sessions", Short: "List your recorded and running sessions", Args: noArgs}
	asJSON, rail := jsonFlag(c), false
	c.Flags().BoolVar(&rail, "rail", false, "tell the workbench of another machine of these sessions")
	curves := c.Flags().String("curves", "", "tell it of the curves of this session")
	for _, hidden := range []string{"rail", "curves"} {
		_ = c.Flags().MarkHidden(hidden)
	}
	c.RunE = func(*cobra.Command, []string) error {
		home, err := session.Home()
		if err != nil {
			return err
		}
		lib := library.Open(home, library.Cache())
		if rail {
			return writeRail(s.out, lib, home)
		}
		if *curves != "" {
			return writeCurves(s.out, lib, home, *curves)
		}
		list, err := lib.List()
		if err != nil {
			return err
		}
		if *asJSON {
			var all []map[string]any
			for _, x := range list {
				all = append(all, sessionObject(x))
			}
			return objects(s.out, all...)
		}
		if len(list) == 0 {
			fmt.Fprintf(s.out, "no sessions in %s yet: `brood run` makes one\n", home)
			return nil
		}
		t := newTable("session", "state", "algorithm", "model", "data", ">round", ">test", "started", ">size")
		tagged := slices.ContainsFunc(list, func(x session.Info) bool { return len(x.About.Tags) > 0 })
		named := slices.ContainsFunc(list, func(x session.Info) bool { return x.About.Name != "" })
		if named {
			t.column("name")
		}
		if tagged {
			t.column("tags")
		}
		for _, x := range list {
			state, test := tui.Standing(x), "–"
			if x.Running {
				state = "● " + state
			}
			if x.Score != nil {
				test = tui.ScoreText(x.Score.Value, x.Score.Percent)
				if !x.Score.Percent {
					test = strings.TrimPrefix(x.Score.Title, "test ") + " " + test
				}
				if x.TestRound != x.Round {
					test += " @" + grouped(int64(x.TestRound))
				}
			}
			row := []string{x.Name, state, x.Algorithm, tui.FileCut(x.Model, longPath), tui.FileCut(x.Data, longPath), grouped(int64(x.Round)), test,
				x.Started.Format("2006-01-02 15:04"), humanBytes(x.Size)}
			if named {
				row = append(row, x.About.Name)
			}
			if tagged {
				row = append(row, strings.Join(x.About.Tags, " "))
			}
			t.row(row...)
		}
		t.write(s.out)
		for _, x := range list {
			if x.Err != "" {
				fmt.Fprintf(s.out, "%s: %s\n", x.Name, x.Err)
			}
		}
		return nil
	}
	return c
}

// longPath is the cells that a table has for a path.
const longPath = 32
