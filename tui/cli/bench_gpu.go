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

// deviceStage is a part of the suite gpu, in a process of its own: whatever a driver does, the next one begins.
type deviceStage struct {
	name  string
	bound time.Duration // after which its process is killed
	run   func(c *cobra.Command, d host.Device, report func(measurement)) error
}

// deviceStages are taken one after another on each device. A card of CUDA, and the same by OpenCL, which has nothing to
// do in the last two, take nine minutes at most.
var deviceStages = []deviceStage{
	{"engine", 30 * time.Second, benchOpening},
	{"hash", 45 * time.Second, benchHashes},
	{"memory", 13 * time.Second, benchMemory},
	{"noise", 13 * time.Second, benchDeviceNoise},
	{"train", 40 * time.Second, benchReplicas},
	{"es", 25 * time.Second, benchCandidates},
	{"tensor", 30 * time.Second, benchTensor},
	{"toolkit", 55 * time.Second, benchToolkit},
}

// tiny is what compute-sanitizer watches.
var tiny = deviceStage{"tiny", 0, benchTiny}

// listBound is what listing the devices may take.
const listBound = 20 * time.Second

// stageFigures is how many a stage has at most, each of which is measured for --each beyond the stage's bound.
const stageFigures = 4

// mostOfDevices bounds the whole suite.
const mostOfDevices = 9 * time.Minute

// benchGPU tries the first device, or with --all every one.
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
	ctx, cancel := context.WithTimeout(c.Context(), mostOfDevices)
	defer cancel()
	var names, failed []string
	err = inStage(ctx, c, "devices", "", listBound, func(m measurement) {
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
				return fmt.Errorf("%s are over before %s of %s: measure it alone", mostOfDevices, s.name, name)
			}
			if err := inStage(ctx, c, s.name, name, s.bound, report); err != nil {
				failed = append(failed, name+" "+s.name)
				report(notMeasured(name+" "+s.name, "failed", err.Error()))
				if s.name == "engine" {
					break // nothing runs there
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

// inStage runs a stage in a process of its own, and hands its lines on.
func inStage(ctx context.Context, c *cobra.Command, name, device string, bound time.Duration,
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
		return fmt.Errorf("it was not done after %s", bound)
	}
	return err
}

// peer is PyTorch on the same work.
//
//go:embed bench_gpu_peer.py
var peer string

// peerBound is what PyTorch may take.
const peerBound = 50 * time.Second

// benchPeer has PyTorch do the same work where it is, which is no failure where it is not.
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

// relay runs a process and hands its lines on. What it said last is the error.
func relay(child *exec.Cmd, report func(measurement)) error {
	var said bytes.Buffer
	child.Stderr = &said
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
		return errors.New(lastLine(said.String(), err))
	}
	return nil
}

// lastLine is what a process said last, or else how it ended.
func lastLine(said string, err error) string {
	lines := strings.Split(strings.TrimSpace(said), "\n")
	if last := strings.TrimPrefix(lines[len(lines)-1], "brood: "); last != "" {
		return last
	}
	return err.Error()
}

// benchStage is one stage, as inStage calls it.
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
