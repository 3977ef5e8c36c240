package bench

import (
	"bufio"
	"bytes"
	"context"
	_ "embed" // peer.py
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"brood/models/usererr"
	"brood/runtime/host"
)

// deviceStage is a part of the suite gpu. Each stage runs in a separate process, so that a crash or hang of a driver
// does not stop the next stage.
type deviceStage struct {
	name  string
	bound time.Duration // without the measuring time of its figures; then the process is killed
	run   func(b DeviceSuite, ctx context.Context, d host.Device) error
}

// deviceStages run in this order on each device. One card by CUDA and again by OpenCL, which skips the last two stages,
// takes at most nine minutes.
var deviceStages = []deviceStage{
	{"engine", 30 * time.Second, DeviceSuite.open},
	{"hash", 45 * time.Second, DeviceSuite.hashes},
	{"memory", 13 * time.Second, DeviceSuite.memory},
	{"noise", 13 * time.Second, DeviceSuite.noise},
	{"train", 40 * time.Second, DeviceSuite.replicas},
	{"es", 25 * time.Second, DeviceSuite.candidates},
	{"tensor", 30 * time.Second, DeviceSuite.tensor},
	{"toolkit", 55 * time.Second, DeviceSuite.toolkit},
}

// tiny is the stage that runs under compute-sanitizer.
var tiny = deviceStage{"tiny", 0, DeviceSuite.tiny}

// listBound is the timeout for listing the devices.
const listBound = 20 * time.Second

// stageFigures is the largest number of figures in a stage. Each adds its measuring time to the bound of the stage.
const stageFigures = 4

// suiteBound is the timeout of the whole suite.
const suiteBound = 9 * time.Minute

// DeviceSuite measures devices: their kernels, hash, launches, copies, noise, training and candidates.
type DeviceSuite struct {
	Each time.Duration // measuring time of a figure
	// Command returns the command line of a process that calls [DeviceSuite.RunStage] with a stage and prints its figures
	// to standard output as JSON, one object a line. Only Run and the stage toolkit need it.
	Command func(stage string) []string
	Report  func(Figure) // is called in the goroutine of the caller
}

// Run measures the first device, or with all every device, for nine minutes at most. It runs each stage in a child
// process. If a stage fails, it continues with the next one and returns an error in the end.
func (b DeviceSuite) Run(ctx context.Context, all bool) error {
	ctx, cancel := context.WithTimeout(ctx, suiteBound)
	defer cancel()
	var names, failed []string
	listing := b
	listing.Report = func(m Figure) {
		if name, is := strings.CutPrefix(m.Name, "device "); is {
			names = append(names, name)
		}
		b.Report(m)
	}
	err := listing.runChild(ctx, "devices", "", listBound)
	switch {
	case err != nil:
		return err
	case len(names) == 0:
		return errors.New("no device to measure: see brood doctor")
	case !all:
		names = names[:1]
	}
	for _, name := range names {
		for _, s := range deviceStages {
			if ctx.Err() != nil {
				return fmt.Errorf("stopped after %s, before stage %s of %s: measure this device "+
					"alone", suiteBound, s.name, name)
			}
			if err := b.runChild(ctx, s.name, name, s.bound); err != nil {
				failed = append(failed, name+" "+s.name)
				b.Report(notMeasured(name+" "+s.name, "failed", err.Error()))
				if s.name == "engine" {
					break // no other stage can run on the device
				}
			}
		}
	}
	if slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, "cuda:") }) {
		b.runPeer(ctx, "cuda")
	}
	if len(failed) > 0 {
		return fmt.Errorf("failed: %s", strings.Join(failed, ", "))
	}
	return nil
}

// runChild runs a stage in a child process and reports its figures. It kills the process and fails after bound plus the
// measuring time of its figures.
func (b DeviceSuite) runChild(ctx context.Context, name, device string, bound time.Duration) error {
	bound += stageFigures * b.Each
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	command := b.Command(name + " " + device)
	err := relay(exec.CommandContext(ctx, command[0], command[1:]...), b.Report)
	if ctx.Err() != nil {
		return fmt.Errorf("not finished after %s", bound)
	}
	return err
}

// peer is a Python program that measures the same work in PyTorch.
//
//go:embed peer.py
var peer string

// peerBound is the timeout of the peer.
const peerBound = 50 * time.Second

// runPeer measures PyTorch on the same work. A missing Python or PyTorch is not an error: it reports a figure without a
// value.
func (b DeviceSuite) runPeer(ctx context.Context, device string) {
	ctx, cancel := context.WithTimeout(ctx, peerBound)
	defer cancel()
	child := exec.CommandContext(ctx, "python3", "-", device, fmt.Sprint(b.Each.Seconds()))
	child.Stdin = strings.NewReader(peer)
	if err := relay(child, b.Report); err != nil {
		b.Report(notMeasured("PyTorch", "figures", "stopped: "+err.Error()))
	}
}

// relay runs a process and reports the measurements of its standard output, one JSON object a line; it ignores other
// lines. If the process fails, the error is its last line on stderr.
func relay(child *exec.Cmd, report func(Figure)) error {
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
		var m Figure
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

// RunStage runs one stage in this process. stage is its name and the device, separated by a space; the stage devices
// lists the devices. It fails with a usage error if there is no such stage or device.
func (b DeviceSuite) RunStage(ctx context.Context, stage string) error {
	name, device, _ := strings.Cut(stage, " ")
	list, absent := host.Devices()
	if name == "devices" {
		for _, d := range list {
			note := fmt.Sprintf("%s, driver %s", d.Info.Maker, d.Info.Driver)
			if d.Same != "" {
				note += ", the same card as " + d.Same
			}
			b.Report(Figure{Name: "device " + d.Name, Value: float64(d.Info.Memory) / (1 << 30), Unit: "GiB", Note: note})
		}
		for _, a := range absent {
			b.Report(notMeasured("devices of "+a.Driver, "devices", a.Why.Error()))
		}
		return nil
	}
	at := slices.IndexFunc(list, func(d host.Device) bool { return d.Name == device })
	stages := append(slices.Clone(deviceStages), tiny)
	s := slices.IndexFunc(stages, func(s deviceStage) bool { return s.name == name })
	if at < 0 || s < 0 {
		return usererr.Errorf("no stage %q for a device of this machine", stage)
	}
	named := b
	named.Report = func(m Figure) {
		m.Name = device + " " + m.Name
		b.Report(m)
	}
	return stages[s].run(named, ctx, list[at])
}
