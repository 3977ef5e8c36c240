package cli

import (
	"bufio"
	"bytes"
	"context"
	_ "embed" // of the peer
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"brood/runtime/host"
)

// deviceStage is a part of the suite gpu. Each stage runs in a separate process, so that a crash or hang of a driver
// does not stop the next stage.
type deviceStage struct {
	name  string
	bound time.Duration // without the measuring time of --each; then the process is killed
	run   func(c *cobra.Command, d host.Device, report func(measurement)) error
}

// deviceStages run in this order on each device. One card by CUDA and again by OpenCL, which skips the last two stages,
// takes at most nine minutes.
var deviceStages = []deviceStage{
	{"engine", 30 * time.Second, benchOpen},
	{"hash", 45 * time.Second, benchHashes},
	{"memory", 13 * time.Second, benchMemory},
	{"noise", 13 * time.Second, benchDeviceNoise},
	{"train", 40 * time.Second, benchReplicas},
	{"es", 25 * time.Second, benchCandidates},
	{"tensor", 30 * time.Second, benchTensor},
	{"toolkit", 55 * time.Second, benchToolkit},
}

// tiny is the stage that runs under compute-sanitizer.
var tiny = deviceStage{"tiny", 0, benchTiny}

// listBound is the timeout for listing the devices.
const listBound = 20 * time.Second

// stageFigures is the largest number of figures in a stage. Each adds the time --each to the bound of the stage.
const stageFigures = 4

// suiteBound is the timeout of the whole suite.
const suiteBound = 9 * time.Minute

// benchGPU measures the first device, or every device with --all. With --stage it runs that stage in this process. If a
// stage fails, it continues with the next one and returns an error in the end.
func benchGPU(c *cobra.Command, report func(measurement)) error {
	all, err := c.Flags().GetBool("all")
	if err != nil {
		return err
	}
	stage, err := c.Flags().GetString("stage")
	if err != nil {
		return err
	}
	if stage != "" {
		return benchStage(c, stage, report)
	}
	ctx, cancel := context.WithTimeout(c.Context(), suiteBound)
	defer cancel()
	var names, failed []string
	err = runStage(ctx, c, "devices", "", listBound, func(m measurement) {
		if name, is := strings.CutPrefix(m.Name, "device "); is {
			names = append(names, name)
		}
		report(m)
	})
	switch {
	case err != nil:
		return err
	case len(names) == 0:
		return errors.New("there is no device to measure: see brood doctor")
	case !all:
		names = names[:1]
	}
	for _, name := range names {
		for _, s := range deviceStages {
			if ctx.Err() != nil {
				return fmt.Errorf("%s have passed before stage %s of %s: measure this device alone", suiteBound, s.name, name)
			}
			if err := runStage(ctx, c, s.name, name, s.bound, report); err != nil {
				failed = append(failed, name+" "+s.name)
				report(notMeasured(name+" "+s.name, "failed", err.Error()))
				if s.name == "engine" {
					break // no other stage can run on the device
				}
			}
		}
	}
	if slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, "cuda:") }) {
		benchPeer(ctx, c, "cuda", report)
	}
	if len(failed) > 0 {
		return fmt.Errorf("failed: %s", strings.Join(failed, ", "))
	}
	return nil
}

// runStage runs a stage in a child process and reports its measurements. It kills the process and fails after bound
// plus the measuring time of its figures.
func runStage(ctx context.Context, c *cobra.Command, name, device string, bound time.Duration,
	report func(measurement)) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	each, err := c.Flags().GetDuration("each")
	if err != nil {
		return err
	}
	bound += stageFigures * each
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	err = relay(exec.CommandContext(ctx, self, "bench", "gpu", "--json", "--stage", name+" "+device, "--each",
		each.String()), report)
	if ctx.Err() != nil {
		return fmt.Errorf("not finished after %s", bound)
	}
	return err
}

// peer is a Python program that measures the same work in PyTorch.
//
//go:embed bench_gpu_peer.py
var peer string

// peerBound is the timeout of the peer.
const peerBound = 50 * time.Second

// benchPeer measures PyTorch on the same work. A missing Python or PyTorch is not an error: it reports a figure without
// a value.
func benchPeer(ctx context.Context, c *cobra.Command, device string, report func(measurement)) {
	ctx, cancel := context.WithTimeout(ctx, peerBound)
	defer cancel()
	each, err := c.Flags().GetDuration("each")
	if err == nil {
		child := exec.CommandContext(ctx, "python3", "-", device, fmt.Sprint(each.Seconds()))
		child.Stdin = strings.NewReader(peer)
		err = relay(child, report)
	}
	if err != nil {
		report(notMeasured("PyTorch", "figures", "no more of it: "+err.Error()))
	}
}

// relay runs a process and reports the measurements of its standard output, one JSON object a line; it ignores other
// lines. If the process fails, the error is its last line on stderr.
func relay(child *exec.Cmd, report func(measurement)) error {
	var stderr bytes.Buffer
	child.Stderr = &stderr
	out, err := child.StdoutPipe()
	if err != nil {
		return err
	}
	if err := child.Start(); err != nil {
		return err
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var m measurement
		if json.Unmarshal(lines.Bytes(), &m) == nil {
			report(m)
		}
	}
	if err := child.Wait(); err != nil {
		return errors.New(lastLine(stderr.String(), err))
	}
	return nil
}

// lastLine returns the last line of stderr without the prefix of brood, or the text of err if there is none.
func lastLine(stderr string, err error) string {
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	if last := strings.TrimPrefix(lines[len(lines)-1], "brood: "); last != "" {
		return last
	}
	return err.Error()
}

// benchStage runs one stage in this process. stage is its name and the device, separated by a space; the stage devices
// lists the devices. [runStage] starts it in a child process.
func benchStage(c *cobra.Command, stage string, report func(measurement)) error {
	name, device, _ := strings.Cut(stage, " ")
	list, absent := host.Devices()
	if name == "devices" {
		for _, d := range list {
			note := fmt.Sprintf("%s, driver %s", d.Info.Maker, d.Info.Driver)
			if d.Same != "" {
				note += ", the same card as " + d.Same
			}
			report(measurement{Name: "device " + d.Name, Value: float64(d.Info.Memory) / (1 << 30), Unit: "GiB", Note: note})
		}
		for _, a := range absent {
			report(notMeasured("devices of "+a.Driver, "devices", a.Why.Error()))
		}
		return nil
	}
	at := slices.IndexFunc(list, func(d host.Device) bool { return d.Name == device })
	stages := append(slices.Clone(deviceStages), tiny)
	s := slices.IndexFunc(stages, func(s deviceStage) bool { return s.name == name })
	if at < 0 || s < 0 {
		return usage("there is no stage %q", stage)
	}
	return stages[s].run(c, list[at], func(m measurement) {
		m.Name = device + " " + m.Name
		report(m)
	})
}
