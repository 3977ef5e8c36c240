package cli

import (
	"fmt"
	goruntime "runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// versionText returns the version of a release, else the version of the module or the commit, else "unreleased".
func versionText() string {
	v := version
	if info, ok := debug.ReadBuildInfo(); ok && v == "" {
		v = info.Main.Version
		for _, x := range info.Settings {
			if x.Key == "vcs.revision" && len(x.Value) >= 12 {
				v = x.Value[:12]
			}
		}
	}
	if v == "" || v == "(devel)" {
		v = "unreleased"
	}
	return v
}

// versionLine returns the output of `brood version` and `brood --version`.
func versionLine() string {
	return fmt.Sprintf("brood %s %s/%s %s", versionText(), goruntime.GOOS, goruntime.GOARCH, goruntime.Version())
}

func versionCommand(s streams) *cobra.Command {
	c := &cobra.Command{Use: "version", Short: "Print the version", Args: noArgs}
	asJSON := jsonFlag(c)
	c.RunE = func(*cobra.Command, []string) error {
		if *asJSON {
			return objects(s.out, map[string]any{"version": versionText(), "os": goruntime.GOOS, "arch": goruntime.GOARCH,
				"go": goruntime.Version()})
		}
		fmt.Fprintln(s.out, versionLine())
		return nil
	}
	return c
}
