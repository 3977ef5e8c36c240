package host

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"brood/models/gpu"
	"brood/models/gpu/opencl"
	"brood/runtime/event"
	"brood/runtime/option"
)

// TestDriversAreNamed: the names that --device accepts are the names of the drivers, in the same order, and each is
// also a value of BROOD_ENGINE.
func TestDriversAreNamed(t *testing.T) {
	var names, made []string
	for _, d := range drivers {
		names = append(names, d.Name())
	}
	for _, m := range engines {
		if m.device && kernelWord(m.kernels) == "" { // it runs on the processor
			made = append(made, m.name)
		}
	}
	if !slices.Equal(gpu.Tensors, option.Arithmetics) {
		t.Errorf("arithmetics %v, options %v", gpu.Tensors, option.Arithmetics)
	}
	if !slices.Equal(names, option.Drivers) || !slices.Equal(made, option.Drivers) {
		t.Errorf("drivers %v, engines on devices %v, options %v", names, made, option.Drivers)
	}
}

// cards is a driver with one device of each of these makes. why is the error that it returns.
type cards struct {
	name  string
	makes []string
	why   error
}

func (c cards) Name() string { return c.name }

func (c cards) Devices() (list []gpu.Info, err error) {
	for _, make := range c.makes {
		info := gpu.Info{Maker: make}
		if c.name == "cuda" && make == "old" {
			info.Refuse = "it is old"
		}
		list = append(list, info)
	}
	return list, c.why
}

func (c cards) Open(int) (gpu.Device, error) { return nil, errors.New("this driver opens no device") }

// TestCardsAreCountedOnce: "gpu" numbers each card once, under the first driver that lists it. The other drivers still
// select it by their own names. If there is no device, the error has the cause of every selected driver.
func TestCardsAreCountedOnce(t *testing.T) {
	defer func(all []gpu.Driver) { drivers = all }(drivers)
	drivers = []gpu.Driver{cards{name: "cuda", makes: []string{"a", "a", "b"}},
		cards{name: "opencl", makes: []string{"pocl", "a", "b", "a", "a"}}}
	for text, want := range map[string]string{"gpu": "cuda:0", "gpu:2": "cuda:2", "gpu:3": "opencl:0", "gpu:4": "opencl:4",
		"opencl:1": "opencl:1", "cuda:1": "cuda:1"} {
		if d, err := device(text); err != nil || d.Name != want {
			t.Errorf("%s is %s, %v", text, d.Name, err)
		}
	}
	if _, err := device("gpu:5"); err == nil ||
		err.Error() != "device gpu:5: this machine has 5, numbered from 0: see brood doctor" {
		t.Error(err)
	}
	list, _ := Devices()
	if list[4].Same != "cuda:0" || list[5].Same != "cuda:2" || list[6].Same != "cuda:1" || list[7].Same != "" {
		t.Errorf("%+v", list)
	}
	drivers = []gpu.Driver{cards{name: "cuda", makes: []string{"old", "a"}},
		cards{name: "opencl", makes: []string{"old", "a"}}}
	for text, want := range map[string]string{"gpu": "cuda:1", "gpu:1": "opencl:0", "cuda:0": "cuda:0"} {
		if d, err := device(text); err != nil || d.Name != want {
			t.Errorf("%s is %s, %v", text, d.Name, err)
		}
	}
	drivers = []gpu.Driver{cards{name: "cuda", why: errors.New("no CUDA here")},
		cards{name: "opencl", why: errors.New("no OpenCL here")}}
	for text, want := range map[string]string{"gpu": "device gpu: no CUDA here; no OpenCL here",
		"opencl": "device opencl: no OpenCL here"} {
		if _, err := device(text); err == nil || err.Error() != want {
			t.Error(err)
		}
	}
}

// tight is the OpenCL driver with a limited memory of its devices.
type tight struct {
	opencl.Driver
	memory int64
}

func (d tight) Open(i int) (gpu.Device, error) {
	open, err := d.Driver.Open(i)
	return tightDevice{open, d.memory}, err
}

type tightDevice struct {
	gpu.Device
	memory int64
}

func (d tightDevice) Info() gpu.Info {
	info := d.Device.Info()
	info.Memory, info.Most = d.memory, d.memory
	return info
}

// TestFitsOnDevice: Prepare rejects a run that does not fit into the memory of its device. The error names the largest
// population that fits, and that population is accepted. Memory on the device does not count as memory of the machine.
func TestFitsOnDevice(t *testing.T) {
	if _, err := (opencl.Driver{}).Devices(); err != nil {
		t.Skip(err)
	}
	defer func(all []gpu.Driver) { drivers = all }(drivers)
	prepare := func(members int, device string, memory int64) (*Job, error) {
		drivers = []gpu.Driver{cards{name: "cuda", why: errors.New("no CUDA here")}, tight{memory: memory}}
		return Prepare(Options{
			Algorithm: "dp-sgd",
			Model:     "mlp-small",
			Data:      fewImages,
			Members:   members,
			Workers:   1,
			Device:    device,
			Limit:     event.Limit{Rounds: 2},
			By:        "test",
		})
	}
	whole, err := prepare(12, "opencl", 1<<40)
	if err != nil {
		t.Fatal(err)
	}
	few, err := prepare(2, "opencl", 1<<40)
	if err != nil {
		t.Fatal(err)
	}
	processor, err := prepare(12, "cpu", 1<<40)
	if err != nil {
		t.Fatal(err)
	}
	if few.DeviceMemory <= 0 || whole.DeviceMemory <= few.DeviceMemory || processor.DeviceMemory != 0 ||
		whole.Config.Memory >= processor.Config.Memory {
		t.Errorf("on the device %d and %d bytes, on the host %d, and %d on the processor", whole.DeviceMemory,
			few.DeviceMemory, whole.Config.Memory, processor.Config.Memory)
	}
	limit := (whole.DeviceMemory + few.DeviceMemory) / 2
	_, err = prepare(12, "opencl", limit)
	most := 0
	if err != nil {
		_, say, _ := strings.Cut(err.Error(), ": ")
		fmt.Sscanf(say, "%d would fit", &most)
	}
	if err == nil || most < 2 || most > 11 || !strings.Contains(err.Error(), "a run with 12 members needs about") ||
		!strings.Contains(err.Error(), " of memory on opencl:0 (") {
		t.Fatal(err)
	}
	if _, err := prepare(most, "opencl", limit); err != nil {
		t.Errorf("%d members: %v", most, err)
	}
	if _, err := prepare(most+1, "opencl", limit); err == nil {
		t.Errorf("%d members also fit", most+1)
	}
}
