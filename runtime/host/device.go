package host

import (
	"fmt"
	"slices"
	"strings"

	"brood/models"
	"brood/models/arith"
	"brood/models/data"
	"brood/models/gpu"
	"brood/models/gpu/cuda"
	"brood/models/gpu/opencl"
	"brood/runtime/option"
)

// drivers lists the device drivers in the order in which "gpu" numbers their devices. option.Drivers has their names.
var drivers = []gpu.Driver{cuda.Driver{}, opencl.Driver{}}

// Device is a device other than the processor.
type Device struct {
	Name   string // value of --device, such as opencl:0
	Info   gpu.Info
	Same   string // name of the same card under an earlier driver, so that "gpu" skips this one; "" if there is none
	driver gpu.Driver
	index  int

	arithmetic string // of gpu.Tensors, if one was asked for
}

// Absent is a driver that found no device on this machine.
type Absent struct {
	Driver string
	Why    error // cause, in one sentence
}

// Devices returns the devices of all drivers, and the drivers that have none.
func Devices() ([]Device, []Absent) { return devicesOf(drivers) }

func devicesOf(drivers []gpu.Driver) (list []Device, absent []Absent) {
	for _, d := range drivers {
		found, err := d.Devices()
		if err != nil {
			absent = append(absent, Absent{d.Name(), err})
		}
		before := list
		for i, info := range found {
			name, same := fmt.Sprintf("%s:%d", d.Name(), i), ""
			// Drivers list all cards of a model, in the same order, so duplicates are matched one by one.
			duplicate := slices.IndexFunc(before, func(other Device) bool {
				return other.Info.Maker == info.Maker && other.Info.Refuse == ""
			})
			if duplicate >= 0 {
				same = before[duplicate].Name
				before = slices.Delete(slices.Clone(before), duplicate, duplicate+1)
			}
			list = append(list, Device{Name: name, Info: info, Same: same, driver: d, index: i})
		}
	}
	return list, absent
}

// Sense returns the current state of the device as its driver reports it without opening the device, see [gpu.Sense].
func (d Device) Sense() (taken int64, load, celsius float64) {
	s := gpu.Unknown
	if w, ok := d.driver.(gpu.Watcher); ok {
		s = w.Sense(d.index)
	}
	return s.Taken, s.Load, s.Celsius
}

// Test opens the device and tests its arithmetics. It returns the kernels that work, by their names in logs, and in why
// one error for each arithmetic that does not. err is not nil if no run can use the device.
func (d Device) Test() (kinds []string, why []error, err error) {
	open, err := d.driver.Open(d.index)
	if err != nil {
		return nil, nil, err
	}
	defer open.Close()
	if err := gpu.SelfTest(open); err != nil {
		return nil, nil, err
	}
	kinds = []string{arith.Name}
	for _, arithmetic := range d.Arithmetics() {
		if err := gpu.TensorTest(open, arithmetic); err != nil {
			why = append(why, err)
			continue
		}
		kinds = append(kinds, gpu.TensorKind(arithmetic, d.Info.Tensor))
	}
	return kinds, why, nil
}

// With returns the device with products computed in an arithmetic of [gpu.Tensors].
func (d Device) With(arithmetic string) Device {
	d.arithmetic = arithmetic
	return d
}

// kinds returns the kernels of the device by their names in logs: of the requested arithmetic, or of all.
func (d Device) kinds() (out []string) {
	if d.arithmetic != "" {
		return []string{gpu.TensorKind(d.arithmetic, d.Info.Tensor)}
	}
	out = []string{arith.Name}
	for _, arithmetic := range d.Arithmetics() {
		out = append(out, gpu.TensorKind(arithmetic, d.Info.Tensor))
	}
	return out
}

// device returns the device that a text selects, see [option.ParseDevice].
func device(text string) (Device, error) {
	driver, index, arithmetic, err := option.ParseDevice(text)
	if err != nil {
		return Device{}, err
	}
	list, absent := Devices()
	var of []Device
	for _, d := range list {
		usable := d.Same == "" && d.Info.Refuse == "" && (arithmetic == "" || d.Info.Tensor != "")
		if driver == "gpu" && usable || driver == d.driver.Name() {
			of = append(of, d)
		}
	}
	if index < len(of) {
		return of[index].With(arithmetic), nil
	}
	if len(of) == 1 {
		return Device{}, fmt.Errorf("device %s: this machine has one, with the number 0: see brood doctor", text)
	}
	if len(of) > 0 {
		return Device{}, fmt.Errorf("device %s: this machine has %d, numbered from 0: see brood doctor", text, len(of))
	}
	var why []string
	for _, a := range absent {
		if driver == "gpu" || driver == a.Driver {
			why = append(why, a.Why.Error())
		}
	}
	if len(why) == 0 {
		why = []string{"this machine has none: see brood doctor"}
	}
	if arithmetic != "" {
		why = append(why, fmt.Sprintf("a run in %s needs this card on the machine that starts or serves it, not only on "+
			"its workers", arithmetic))
	}
	return Device{}, fmt.Errorf("device %s: %s", text, strings.Join(why, "; "))
}

// DeviceText describes a device by its name, its model and its memory. It returns "" for the processor, which an empty
// text selects too.
func DeviceText(text string) (string, error) {
	if option.IsCPU(text) {
		return "", nil
	}
	d, err := device(text)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s %s, %s", d.Name, d.Info.Maker, gb(d.Info.Memory)), nil
}

// on opens an engine on the device. kind names the kernels of a recorded session, "" for a new one.
func (d Device) on(kind string, own *Own, net *models.Model, set *data.Set) (Engine, error) {
	if own != nil {
		return nil, fmt.Errorf("graph %s: only gorgonia computes a graph of a Go program, and it uses no device: omit "+
			"--device", net.Name)
	}
	if arithmetic, _, ok := gpu.ParseTensorKind(kind); ok && d.arithmetic == "" {
		d.arithmetic = arithmetic
	}
	return d.Engine(net, set)
}

// Engine opens an engine on the device. The caller closes it.
func (d Device) Engine(net *models.Model, set *data.Set) (*gpu.Engine, error) {
	if d.arithmetic != "" && d.Info.Tensor == "" {
		return nil, fmt.Errorf("device %s: it has no tensor cores for %s: train on an NVIDIA card with CUDA",
			d.Name, d.arithmetic)
	}
	open, err := d.driver.Open(d.index)
	if err != nil {
		return nil, fmt.Errorf("device %s: %w", d.Name, err)
	}
	if d.arithmetic != "" {
		return gpu.NewTensor(open, d.arithmetic, net, set)
	}
	return gpu.New(open, net, set)
}
