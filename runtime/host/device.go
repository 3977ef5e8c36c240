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

// drivers reach devices, in the order in which gpu counts them. option.Drivers names them.
var drivers = []gpu.Driver{cuda.Driver{}, opencl.Driver{}}

// Device is one beside the processor.
type Device struct {
	Name   string // as --device has it, such as opencl:0
	Info   gpu.Info
	Same   string // the device of a driver before, which is the same card; gpu does not count it again
	driver gpu.Driver
	index  int

	arithmetic string // of gpu.Tensors, if one was asked for
}

// Absent is a driver that has no device here.
type Absent struct {
	Driver string
	Why    error // in one sentence
}

// Devices are those of all drivers.
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
			// Cards of one make are in one order, and a driver that has one of them has all.
			twin := slices.IndexFunc(before, func(other Device) bool {
				return other.Info.Maker == info.Maker && other.Info.Refuse == ""
			})
			if twin >= 0 {
				same = before[twin].Name
				before = slices.Delete(slices.Clone(before), twin, twin+1)
			}
			list = append(list, Device{Name: name, Info: info, Same: same, driver: d, index: i})
		}
	}
	return list, absent
}

// Sense is how the device is now, as far as its driver tells without opening it; see [gpu.Sense].
func (d Device) Sense() (taken int64, load, celsius float64) {
	s := gpu.Unknown
	if w, ok := d.driver.(gpu.Watcher); ok {
		s = w.Sense(d.index)
	}
	return s.Taken, s.Load, s.Celsius
}

// Test says by what names logs have the arithmetics that the device computes, and of others in a sentence each why it
// does not. An error is one that keeps runs from computing there.
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

// With is the device where products are computed in an arithmetic of [gpu.Tensors].
func (d Device) With(arithmetic string) Device {
	d.arithmetic = arithmetic
	return d
}

// kinds are the names that logs have for what the device computes, in the arithmetic that was asked for or in any.
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

// device finds the one that a text names, see [option.ParseDevice].
func device(text string) (Device, error) {
	driver, index, arithmetic, err := option.ParseDevice(text)
	if err != nil {
		return Device{}, err
	}
	list, absent := Devices()
	var of []Device
	for _, d := range list {
		if driver == "gpu" && d.Same == "" && d.Info.Refuse == "" && (arithmetic == "" || d.Info.Tensor != "") || driver == d.driver.Name() {
			of = append(of, d)
		}
	}
	if index < len(of) {
		return of[index].With(arithmetic), nil
	}
	if len(of) == 1 {
		return Device{}, fmt.Errorf("device %s: there is one here, with the number 0: see brood doctor", text)
	}
	if len(of) > 0 {
		return Device{}, fmt.Errorf("device %s: there are %d of them here, counted from 0: see brood doctor", text, len(of))
	}
	var why []string
	for _, a := range absent {
		if driver == "gpu" || driver == a.Driver {
			why = append(why, a.Why.Error())
		}
	}
	if len(why) == 0 {
		why = []string{"there is none here: see brood doctor"}
	}
	if arithmetic != "" {
		why = append(why, fmt.Sprintf("a run of %s is prepared where such a card is: whoever begins or serves it needs one, and not its workers alone", arithmetic))
	}
	return Device{}, fmt.Errorf("device %s: %s", text, strings.Join(why, "; "))
}

// DeviceText is a device as others read of it: its name, its maker's word for it and its memory. The processor, which
// "" is too, has none.
func DeviceText(text string) (string, error) {
	if option.Processor(text) {
		return "", nil
	}
	d, err := device(text)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s %s, %s", d.Name, d.Info.Maker, gb(d.Info.Memory)), nil
}

// on opens an engine on the device, for a session of a kind of kernels or for a new one.
func (d Device) on(kind string, own *Own, net *models.Model, set *data.Set) (compute, error) {
	if own != nil {
		return nil, fmt.Errorf("graph %s: gorgonia computes a graph of one's own, and no device does: leave --device out", net.Name)
	}
	if arithmetic, _, ok := gpu.ParseTensorKind(kind); ok && d.arithmetic == "" {
		d.arithmetic = arithmetic
	}
	return d.Engine(net, set)
}

// Engine opens an engine on the device, which is the caller's to close.
func (d Device) Engine(net *models.Model, set *data.Set) (*gpu.Engine, error) {
	if d.arithmetic != "" && d.Info.Tensor == "" {
		return nil, fmt.Errorf("device %s: it has no tensor cores for %s: train on an NVIDIA card, by CUDA", d.Name, d.arithmetic)
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
