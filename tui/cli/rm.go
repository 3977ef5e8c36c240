package cli

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"brood/runtime/session"
	"brood/tui/textfmt"
)

func rmCommand(s streams) *cobra.Command {
	return &cobra.Command{
		Use:        "rm SESSION...",
		SuggestFor: []string{"delete", "remove"},
		Short:      "Remove sessions that do not run",
		Args:       atLeastOne("a SESSION"),
		RunE: func(_ *cobra.Command, args []string) error {
			var dirs []string
			for _, a := range args {
				dir, err := resolve(a)
				if err == nil {
					err = removable(dir)
				}
				if err != nil {
					return err // before any is removed
				}
				dirs = append(dirs, dir)
			}
			freed := int64(0)
			for _, dir := range dirs {
				n, err := removeSession(dir)
				if err != nil {
					return err
				}
				freed += n
				fmt.Fprintf(s.out, "removed %s\n", oneLine(filepath.Base(dir)))
			}
			fmt.Fprintf(s.out, "freed %s\n", textfmt.Size(freed))
			return nil
		},
	}
}

// removable fails if the session in dir may not be removed: it runs, or it is not in the home directory of sessions.
func removable(dir string) error {
	home, err := session.Home()
	if err != nil {
		return err
	}
	if dir = filepath.Clean(dir); filepath.Dir(dir) != home {
		return fmt.Errorf("session %s is not in %s: delete its directory yourself", dir, home)
	}
	if running, pid := session.Running(dir); running {
		return &session.LockedError{Dir: dir, PID: pid}
	}
	return nil
}

// removeSession removes a session and returns its size in bytes.
func removeSession(dir string) (int64, error) {
	if err := removable(dir); err != nil {
		return 0, err
	}
	size := session.Size(dir)
	if err := os.RemoveAll(dir); err != nil {
		return 0, fmt.Errorf("delete session %s: %w", filepath.Base(dir), err)
	}
	return size, nil
}
