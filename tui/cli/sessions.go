package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"charm.land/lipgloss/v2"
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
			"of your user.\n\n" +
			"A query has words and comparisons, such as 'algorithm=parle eta<0.1 test_error<3 tag:best', as / in the " +
			"workbench.\n" +
			"Names are those of columns, knobs and other settings, and metrics; : finds a part of a text.",
		Args: atMostOne("directory"),
	}
	asJSON, rail := jsonFlag(c), false
	c.Flags().BoolVar(&rail, "rail", false, "list these sessions for the workbench of another machine")
	query := c.Flags().String("filter", "", "list only the sessions that match this `query`")
	columns := c.Flags().StringSlice("columns", nil, "names with commas, of knobs and metrics too: "+columnList()+
		" (default: those that fit)")
	curves := c.Flags().String("curves", "", "write the curves of this session for the workbench of another machine")
	for _, hidden := range []string{"rail", "curves"} {
		_ = c.Flags().MarkHidden(hidden)
	}
	c.RunE = func(_ *cobra.Command, args []string) error {
		q, err := archive.ParseQuery(*query)
		if err != nil {
			return fmt.Errorf("--filter: %w", err)
		}
		if err := checkColumns(*columns); err != nil {
			return err
		}
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
		_ = lib.Save() // an error only costs time: the next list reads the logs again
		all := len(list)
		list = slices.DeleteFunc(list, func(x archive.Row) bool { return !q.Match(x) })
		closed := session.Closed(home)
		if len(closed) > 0 {
			names := strings.Join(closed[:min(len(closed), 3)], ", ")
			if more := len(closed) - 3; more > 0 {
				names += fmt.Sprintf(" and %d more", more)
			}
			fmt.Fprintf(s.err, "brood: %s: permission denied: not listed; ask the owner for read permission\n",
				oneLine(names))
		}
		if *asJSON {
			var out []map[string]any
			for _, x := range list {
				out = append(out, sessionObject(x.Info))
			}
			return objects(s.out, out...)
		}
		switch {
		case len(list) > 0:
			printSessions(s, list, *columns)
		case all > 0:
			fmt.Fprintf(s.out, "no session matches %q: %s have other values\n", *query, textfmt.Count(all, "session"))
		case len(closed) == 0:
			fmt.Fprintf(s.out, "no sessions in %s yet: `%s` records one\n", home, recordCommand(args, home))
		}
		return nil
	}
	return c
}

// columnList returns the names of the columns of sessions.
func columnList() string {
	var names []string
	for _, c := range archive.Columns {
		if c.Name != archive.CurveColumn {
			names = append(names, c.Name)
		}
	}
	return strings.Join(names, ", ")
}

// checkColumns returns an error for a name that is no column.
func checkColumns(names []string) error {
	for _, name := range names {
		if _, err := archive.Lookup(name); err != nil && name != archive.KnobColumns {
			return fmt.Errorf("--columns: %w", err)
		}
	}
	return nil
}

// printSessions prints a table of sessions, and below it the errors of those that cannot be read. With no columns given
// it has the usual ones and those with what the user wrote about a session, as far as they fit in the terminal, or in
// 80 characters.
func printSessions(s streams, list []archive.Row, columns []string) {
	fits := len(columns) == 0
	if fits {
		for _, c := range archive.Columns {
			if !c.Extra || c.Name == archive.TitleColumn {
				columns = append(columns, c.Name)
			}
		}
	}
	width := max(80, s.columns())
	cols := panel.RunColumns(archive.Chosen(columns, list), list, width)
	names := listedNames(list)
	if fits {
		widest := len(nameHead)
		for _, name := range names {
			widest = max(widest, lipgloss.Width(name))
		}
		cols, _ = panel.FitColumns(cols, width-stateSign, widest, widest)
	}
	t := newTable(nameHead)
	for _, c := range cols {
		if c.Right {
			c.Title = ">" + c.Title
		}
		t.column(c.Title)
	}
	for i, x := range list {
		row := []string{names[i]}
		for _, c := range cols {
			text := c.Text(x)
			if c.Name == archive.StateColumn && x.Running {
				text = "● " + text
			}
			row = append(row, text)
		}
		t.row(row...)
	}
	t.write(s.out)
	for _, x := range list {
		if x.Err != "" {
			fmt.Fprintln(s.out, oneLine(x.Name+": "+x.Err))
		}
	}
}

const (
	nameHead  = "session"
	stateSign = 2 // width of the sign of a running session
)

// listedNames returns the names of sessions without their dates, as commands accept them, or the whole names where
// these would be ambiguous.
func listedNames(list []archive.Row) (names []string) {
	count := map[string]int{}
	for _, x := range list {
		count[archive.ShortName(x.Name)]++
	}
	for _, x := range list {
		name := archive.ShortName(x.Name)
		if count[name] > 1 {
			name = x.Name
		}
		names = append(names, name)
	}
	return names
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
	return "brood run --session " + at + string(filepath.Separator) + "NAME" // not joined, so that ./NAME stays a path
}
