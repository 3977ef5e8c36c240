package host

import (
	"errors"
	"slices"
	"testing"

	"brood/models/gpu"
	"brood/runtime/option"
)

// TestDriversAreNamed: what --device may name is what there is, in one order, and each is an engine by the environment.
func TestDriversAreNamed(t *testing.T) {
	var names, made []string
	for _, d := range drivers {
		names = append(names, d.Name())
	}
	for _, m := range engines {
		if m.device {
			made = append(made, m.name)
		}
	}
	if !slices.Equal(names, option.Drivers) || !slices.Equal(made, option.Drivers) {
		t.Errorf("drivers %v, engines on devices %v, options %v", names, made, option.Drivers)
	}
}

// cards is a driver that has devices of these makes, or says why it has none.
type cards struct {
	name  string
	makes []string
	why   error
}

func (c cards) Name() string { return c.name }

func (c cards) Devices() (list []gpu.Info, err error) {
	for _, make := range c.makes {
		list = append(list, gpu.Info{Maker: make})
	}
	return list, c.why
}

func (c cards) Open(int) (gpu.Device, error) { return nil, errors.New("none is opened here") }

// TestCardsAreCountedOnce: gpu counts a card once, by the first driver that has it; the others have it by their names.
// Where there is none, every driver that was asked says why.
func TestCardsAreCountedOnce(t *testing.T) {
	defer func(all []gpu.Driver) { drivers = all }(drivers)
	drivers = []gpu.Driver{cards{name: "cuda", makes: []string{"a", "a", "b"}}, cards{name: "opencl", makes: []string{"pocl", "a", "b", "a", "a"}}}
	for text, want := range map[string]string{"gpu": "cuda:0", "gpu:2": "cuda:2", "gpu:3": "opencl:0", "gpu:4": "opencl:4", "opencl:1": "opencl:1", "cuda:1": "cuda:1"} {
		if d, err := device(text); err != nil || d.Name != want {
			t.Errorf("%s is %s, %v", text, d.Name, err)
		}
	}
	if _, err := device("gpu:5"); err == nil || err.Error() != "device gpu:5: there are 5 of them here, counted from 0: see brood doctor" {
		t.Error(err)
	}
	list, _ := Devices()
	if list[4].Same != "cuda:0" || list[5].Same != "cuda:2" || list[6].Same != "cuda:1" || list[7].Same != "" {
		t.Errorf("%+v", list)
	}
	drivers = []gpu.Driver{cards{name: "cuda", why: errors.New("no CUDA here")}, cards{name: "opencl", why: errors.New("no OpenCL here")}}
	for text, want := range map[string]string{"gpu": "device gpu: no CUDA here; no OpenCL here", "opencl": "device opencl: no OpenCL here"} {
		if _, err := device(text); err == nil || err.Error() != want {
			t.Error(err)
		}
	}
}
