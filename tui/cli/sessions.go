package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"brood/runtime/archive"
	"brood/runtime/session"
	"brood/tui/panel"
	"brood/tui/textfmt"
)

func sessionsCommand(s streams) *cobra.Command {
	c := &cobra.Command{
		Use:        "sessions [DIR]",
		SuggestFor: []string{"list", "ls", "runs"},
		Short:      "List your recorded and running sessions, or those in a directory",
		Long: "List your recorded and running sessions, or those in DIR: the directory of a sweep or a study, or the " +
			"one that contains\n" +
			"the --session of a run. Without DIR it lists $BROOD_SESSIONS, or else brood's directory of state files " +
			"of your user.",
		Args: atMostOne("directory"),
	}
	asJSON, rail := jsonFlag(c), false
	c.Flags().BoolVar(&rail, "rail", false, "list these sessions for the workbench of another machine")
	curves := c.Flags().String("curves", "", "write the curves of this session for the workbench of another machine")
	for _, hidden := range []string{"rail", "curves"} {
		_ = c.Flags().MarkHidden(hidden)
	}
	c.RunE = func(_ *cobra.Command, args []string) error {
		home, err := listDirectory(args)
		if err != nil {
			return err
		}
		lib := archive.OpenLibrary(home, archive.CacheDir())
		if rail {
			return writeRail(s.out, lib, home)
		}
		if *curves != "" {
			return writeCurves(s.out, lib, home, *curves)
		}
		list, err := lib.List()
		if errors.Is(err, fs.ErrPermission) {
			return session.Denied(home)
		}
		if err != nil {
			return err
		}
		closed := session.Closed(home)
		if len(closed) > 0 {
			fmt.Fprintf(s.err, "brood: %s: permission denied: not listed; ask the owner for read permission\n",
				oneLine(strings.Join(closed[:min(len(closed), 3)], ", ")+andMore(len(closed)-3)))
		}
		if *asJSON {
			var all []map[string]any
			for _, x := range list {
				all = append(all, sessionObject(x))
			}
			return objects(s.out, all...)
		}
		switch {
		case len(list) > 0:
			printSessions(s.out, list)
		case len(closed) == 0:
			fmt.Fprintf(s.out, "no sessions in %s yet: `%s` records one\n", home, recordCommand(args, home))
		}
		return nil
	}
	return c
}

// printSessions prints a table of sessions, and below it the errors of those that cannot be read. Names and tags have a
// column if some session has them.
func printSessions(w io.Writer, list []session.Info) {
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
		state := panel.SessionState(x)
		if x.Running {
			state = "● " + state
		}
		row := []string{x.Name, state, x.Algorithm, textfmt.FileCut(x.Model, longPath), textfmt.FileCut(x.Data, longPath),
			grouped(int64(x.Round)), testCell(x), x.Started.Format("2006-01-02 15:04"), humanBytes(x.Size)}
		if named {
			row = append(row, x.About.Name)
		}
		if tagged {
			row = append(row, strings.Join(x.About.Tags, " "))
		}
		t.row(row...)
	}
	t.write(w)
	for _, x := range list {
		if x.Err != "" {
			fmt.Fprintln(w, oneLine(x.Name+": "+x.Err))
		}
	}
}

// testCell formats the last test score of a session, with its round if that is not the last one; a dash for none.
func testCell(x session.Info) string {
	if x.Score == nil {
		return "–"
	}
	test := textfmt.ScoreText(x.Score.Value, x.Score.Percent)
	if !x.Score.Percent {
		test = strings.TrimPrefix(x.Score.Title, "test ") + " " + test
	}
	if x.TestRound != x.Round {
		test += " @" + grouped(int64(x.TestRound))
	}
	return test
}

// andMore returns the end of a shortened list, "" if it is complete.
func andMore(more int) string {
	if more <= 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", more)
}

// listDirectory returns the directory whose sessions are listed: the argument as a path or as a name in the sessions
// directory, or that directory without an argument. It fails if the argument is a session itself.
func listDirectory(args []string) (string, error) {
	home, err := session.Home()
	if err != nil || len(args) == 0 {
		return home, err
	}
	for _, dir := range []string{args[0], filepath.Join(home, args[0])} {
		st, err := os.Stat(dir)
		if errors.Is(err, fs.ErrPermission) {
			return "", session.Denied(dir)
		}
		if err != nil || !st.IsDir() {
			continue
		}
		if _, _, one := session.LogSize(dir); one {
			list := "brood sessions"
			if parent := filepath.Dir(dir); parent != home {
				list += " " + parent
			}
			return "", usage("%s is a session itself: `%s` lists it", args[0], list)
		}
		return filepath.Abs(dir)
	}
	return "", usage("%s: no such directory, neither as a path nor in your sessions directory", args[0])
}

// recordCommand returns the command that records a session in dir, the listed directory. It keeps the path that the
// user gave if that leads to dir.
func recordCommand(args []string, dir string) string {
	if len(args) == 0 {
		return "brood run"
	}
	at := args[0]
	if abs, err := filepath.Abs(at); err != nil || abs != dir {
		at = dir
	}
	return "brood run --session " + filepath.Join(at, "NAME")
}

// longPath is the width in cells of a path in a table.
const longPath = 32
