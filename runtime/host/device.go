package host

import (
	"fmt"

	"brood/models"
	"brood/models/data"
	"brood/models/gpu"
	"brood/models/gpu/opencl"
	"brood/runtime/option"
)

// drivers reach devices, in the order in which gpu counts them. option.Drivers names them.
var drivers = []gpu.Driver{opencl.Driver{}}

// Device is one beside the processor.
type Device struct {
	Name   string // as --device has it, such as opencl:0
	Info   gpu.Info
	driver gpu.Driver
	index  int
}

// Devices are those of all drivers. why has a sentence for each driver that has none.
func Devices() (list []Device, why []error) {
	for _, d := range drivers {
		found, err := d.Devices()
		if err != nil {
			why = append(why, err)
		}
		for i, info := range found {
			list = append(list, Device{fmt.Sprintf("%s:%d", d.Name(), i), info, d, i})
		}
	}
	return list, why
}

// Test says in one sentence why runs cannot compute on the device; nil: they can.
func (d Device) Test() error {
	open, err := d.driver.Open(d.index)
	if err != nil {
		return err
	}
	defer open.Close()
	return gpu.SelfTest(open)
}

// device finds the one that a text names, see [option.ParseDevice].
func device(text string) (Device, error) {
	driver, index, err := option.ParseDevice(text)
	if err != nil {
		return Device{}, err
	}
	list, why := Devices()
	var of []Device
	for _, d := range list {
		if driver == "gpu" || driver == d.driver.Name() {
			of = append(of, d)
		}
	}
	switch {
	case index < len(of):
		return of[index], nil
	case len(of) > 0:
		return Device{}, fmt.Errorf("device %s: there are %d of them here, counted from 0: see brood doctor", text, len(of))
	case len(why) > 0:
		return Device{}, fmt.Errorf("device %s: %w", text, why[0])
	}
	return Device{}, fmt.Errorf("device %s: there is none here: see brood doctor", text)
}

// on opens an engine on the device.
func (d Device) on(own *Own, net *models.Model, set *data.Set) (compute, error) {
	if own != nil {
		return nil, fmt.Errorf("graph %s: gorgonia computes a graph of one's own, and no device does: leave --device out", net.Name)
	}
	open, err := d.driver.Open(d.index)
	if err != nil {
		return nil, fmt.Errorf("device %s: %w", d.Name, err)
	}
	return gpu.New(open, net, set)
}
