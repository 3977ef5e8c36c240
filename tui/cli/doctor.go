package cli

import (
	"errors"
	"fmt"
	"os"
	goruntime "runtime"
	"strings"

	"github.com/spf13/cobra"

	"brood/models/data"
	"brood/runtime/host"
	"brood/runtime/session"
	"brood/tui/textfmt"
)

// version is set by the linker for a release; "" otherwise.
var version = ""

// finding is one check of the doctor. If it is Needed and not Ready, brood cannot run.
type finding struct {
	What   string `json:"what"`
	State  string `json:"state"`
	Ready  bool   `json:"ready"`
	Needed bool   `json:"needed"`
}

func doctorCommand(s streams) *cobra.Command {
	c := &cobra.Command{Use: "doctor", Short: "Check the requirements of brood on this machine, and list what is missing",
		Args: noArgs}
	asJSON := jsonFlag(c)
	c.RunE = func(*cobra.Command, []string) error {
		found := examine(s.terminal)
		t, failed := newTable("what", "state"), 0
		for _, f := range found {
			t.row(f.What, f.State)
			if f.Needed && !f.Ready {
				failed++
			}
		}
		if *asJSON {
			if err := objects(s.out, found...); err != nil {
				return err
			}
		} else {
			t.write(s.out)
		}
		switch {
		case failed == 1:
			return errors.New("one of these prevents brood from running")
		case failed > 1:
			return fmt.Errorf("%d of these prevent brood from running", failed)
		}
		return nil
	}
	return c
}

// examine checks this machine. Devices and data sets are not Needed.
func examine(terminal bool) []finding {
	kernels, kernelsErr := host.Available()
	if device := host.BF16Device(); device != "" {
		kernels += "; candidates in bfloat16 by instructions of this processor: --device " + device
	}
	home, homeErr := session.Home()
	if homeErr == nil {
		if homeErr = writableDir(home); homeErr != nil {
			homeErr = fmt.Errorf("cannot be written: %w; set BROOD_SESSIONS to another directory", homeErr)
		}
	}
	found := []finding{
		{"version", versionText() + " " + goruntime.Version(), true, true},
		{"machine", fmt.Sprintf("%s/%s, %d cores", goruntime.GOOS, goruntime.GOARCH, goruntime.NumCPU()), true, true},
		state("kernels", kernels, kernelsErr, true),
		{"terminal", fmt.Sprintf("%v, TERM=%s", terminal, os.Getenv("TERM")), terminal, false},
		state("sessions", home, homeErr, true),
	}
	list, absent := host.Devices()
	for _, d := range list {
		kinds, why, err := d.Test()
		text := fmt.Sprintf("%s, %s, driver %s: holds %s", d.Info.Maker, textfmt.Size(d.Info.Memory), d.Info.Driver,
			strings.Join(kinds, ", "))
		for _, figure := range deviceLoad(d.Sense()) {
			text += ", " + figure
		}
		if d.Same != "" {
			text += ", the same card as " + d.Same
		}
		for _, w := range why {
			text += "; " + w.Error()
		}
		found = append(found, state("device "+d.Name, text, err, false))
	}
	for _, a := range absent {
		found = append(found, state("devices "+a.Driver, "", a.Why, false))
	}
	for _, name := range data.List() {
		_, err := data.Load(name)
		found = append(found, state("data "+name, "ready", err, false))
	}
	return found
}

// deviceLoad describes the state of a device: bytes of memory in use, load as a share, and temperature. Negative values
// are unknown and omitted.
func deviceLoad(taken int64, load, celsius float64) (out []string) {
	if taken >= 0 {
		out = append(out, textfmt.Size(taken)+" in use")
	}
	if load >= 0 {
		out = append(out, fmt.Sprintf("%.0f %% busy", 100*load))
	}
	if celsius >= 0 {
		out = append(out, fmt.Sprintf("%.0f °C", celsius))
	}
	return out
}

func state(what, text string, err error, needed bool) finding {
	if err != nil {
		text = err.Error()
	}
	return finding{what, text, err == nil, needed}
}

// writableDir reports an error if files cannot be created in a directory. It creates the directory if it is missing.
func writableDir(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".doctor")
	if err != nil {
		return err
	}
	f.Close()
	return os.Remove(f.Name())
}
