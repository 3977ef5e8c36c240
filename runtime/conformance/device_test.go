package conformance

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"brood/models"
	"brood/models/data"
	"brood/models/engine"
	"brood/models/gpu"
	"brood/models/gpu/opencl"
	"brood/models/longtest"
	"brood/models/native"
	"brood/models/native/kernel"
	"brood/optim"
	"brood/optim/catalog"
	"brood/runtime/event"
)

// toyNet returns the toy as a list of layers, on the toy's samples.
func toyNet(t *testing.T) (*models.Model, *data.Set) {
	t.Helper()
	m, err := models.FromSource("toy",
		fmt.Appendf(nil, "name = 'toy'\nclasses = %d\ninput = [1, 1, %d]\n[[layer]]\nkind = 'flatten'\n[[layer]]\n"+
			"kind = 'dense'\nout = %d\n[[layer]]\nkind = 'relu'\n[[layer]]\nkind = 'dense'\nout = %d\n", toyOut, toyIn,
			toyHidden, toyOut))
	if err != nil {
		t.Fatal(err)
	}
	xs, ys := clusters()
	var r [2]data.Raster
	for i, x := range xs {
		to := &r[min(1, i/(toyTrain+toyValid))]
		to.Values, to.Labels = append(to.Values, x[:]...), append(to.Labels, uint16(ys[i]))
	}
	set, err := data.New(data.Info{Name: "toy", Shape: []int{1, 1, toyIn}, Classes: toyOut}, r[0], r[1],
		float64(toyValid)/(toyTrain+toyValid))
	if err != nil {
		t.Fatal(err)
	}
	return m, set
}

// onDevice returns an engine maker on devices that open returns. Engines that a run leaves open are closed with the
// test.
func onDevice(t *testing.T, open func(worker int) gpu.Device) func(*Toy) engine.Engine {
	m, set := toyNet(t)
	var mu sync.Mutex
	made := 0
	return func(*Toy) engine.Engine {
		mu.Lock()
		defer mu.Unlock()
		e, err := gpu.New(open(made), m, set)
		if err != nil {
			panic(err)
		}
		made++
		t.Cleanup(e.Close)
		return e
	}
}

func openCL(t *testing.T) func(int) gpu.Device {
	t.Helper()
	if _, err := (opencl.Driver{}).Devices(); err != nil {
		t.Skip(err)
	}
	return func(int) gpu.Device {
		d, err := opencl.Driver{}.Open(0)
		if err != nil {
			panic(err)
		}
		return d
	}
}

// TestOnDevice: the suite passes on a device, with the hash of the native engine.
func TestOnDevice(t *testing.T) {
	longtest.Need(t, longtest.Devices, "runs the suite on a device")
	open := openCL(t)
	m, set := toyNet(t)
	for _, a := range catalog.All() {
		if !a.Needs.Model() || a.Needs&optim.Whole != 0 {
			continue // which computes nothing, or has tasks without device kernels
		}
		t.Run(a.Name, func(t *testing.T) {
			base := quick(Rig{Algorithm: a.Name, Rounds: 12, Members: 8, Workers: 1, Seed: 3})
			base.Engine = func(*Toy) engine.Engine {
				e, err := native.NewEngine(m, set, 1, kernel.Best())
				if err != nil {
					panic(err)
				}
				return e
			}
			here := run(t, base).Hash()
			base.Engine = onDevice(t, open)
			if got := run(t, base).Hash(); got != here {
				t.Errorf("hash %s, on the native engine %s", got, here)
			}
			Suite(t, a, base)
		})
	}
}

// failing is a device whose launches fail from a given one on.
type failing struct {
	gpu.Device
	from, launches int
}

var errFell = errors.New("fell off the bus")

func (d *failing) Launch(k gpu.Kernel, groups [3]int, size int, args ...any) error {
	if d.launches++; d.from > 0 && d.launches > d.from {
		return errFell
	}
	return d.Device.Launch(k, groups, size, args...)
}

// TestDeviceFaults: if a device fails at any launch, its worker dies. The run continues without it, the log has the
// error of the device, and the log verifies.
func TestDeviceFaults(t *testing.T) {
	longtest.Need(t, longtest.Devices, "some thirty runs on a device")
	open := openCL(t)
	r := rand.New(rand.NewPCG(4, 5))
	for _, alg := range []string{"dp-sgd", "parle", "openai-es", "popsgd", "pesgd"} {
		t.Run(alg, func(t *testing.T) {
			whole := &failing{}
			base := quick(Rig{Algorithm: alg, Members: 6, Workers: 3, Rounds: 12, Seed: 3, OnLoss: "reseed"})
			base.Engine = onDevice(t, func(worker int) gpu.Device {
				if worker == 1 {
					whole.Device = open(worker)
					return whole
				}
				return open(worker)
			})
			run(t, base)
			for range 6 {
				at := 3 + r.IntN(whole.launches-3) // the first two launches are the self-test
				t.Run(fmt.Sprint("launch ", at), func(t *testing.T) {
					rig := base
					rig.Engine = onDevice(t, func(worker int) gpu.Device {
						if worker == 1 {
							return &failing{Device: open(worker), from: at}
						}
						return open(worker)
					})
					o := run(t, rig)
					if !slices.ContainsFunc(o.Log.Records, func(x event.Record) bool {
						return strings.Contains(fmt.Sprintf("%+v", cmp.Or(x.Alert, &event.Alert{})), errFell.Error())
					}) {
						t.Error("the log does not have the error of the device")
					}
					rig.Engine = onDevice(t, open)
					if got, err := rig.Verify(t.Context(), o); err != nil || got.Commits == 0 {
						t.Errorf("%+v, %v", got, err)
					}
				})
			}
		})
	}
}
