package option

import (
	"slices"
	"strconv"
	"strings"

	"brood/models/typed"
)

// CPU is the processor, as a device.
const CPU = "cpu"

// Drivers are the interfaces by which devices are reached; gpu stands for all of them, in this order.
var Drivers = []string{"cuda", "opencl"}

// ParseDevice reads what computes: cpu, a driver, or gpu for the first that has one, with a colon the number of the
// device: opencl:1.
func ParseDevice(text string) (driver string, index int, err error) {
	driver, number, numbered := strings.Cut(text, ":")
	known := driver == "gpu" || slices.Contains(Drivers, driver)
	switch {
	case text == CPU:
		return CPU, 0, nil
	case known && !numbered:
		return driver, 0, nil
	case known:
		if index, err = strconv.Atoi(number); err == nil && index >= 0 && index < 64 && strconv.Itoa(index) == number {
			return driver, index, nil
		}
	}
	return "", 0, typed.Errorf("device %q: choose cpu, gpu, or one that brood doctor lists, such as opencl:0", text)
}

func devices() []string { return []string{CPU, "gpu", "cuda:0", "opencl:0"} }

func computes(text string) error {
	_, _, err := ParseDevice(text)
	return err
}
