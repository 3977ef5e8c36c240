//go:build !nogpu && linux && (amd64 || arm64)

package cuda

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"brood/models"
	"brood/models/data"
	"brood/models/engine"
	"brood/models/gpu"
	"brood/models/gpu/clib"
	"brood/models/gpu/nvml"
)

// Controls of the fake driver: see testdata/fake.c.
var (
	fakeFail func(call string, after, code int32)
	fakeLeft func() int32

	fakeCounts func(alone, whole, changed *int32)
)

// built compiles the fake driver and loads it into this process as CUDA.
var built = sync.OnceValues(func() (skip, err error) {
	dir, err := os.MkdirTemp("", "fake")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "libcuda.so.1")
	if out, err := exec.Command("cc", "-O1", "-shared", "-fPIC", "-o", name, "testdata/fake.c",
		"-lm").CombinedOutput(); err != nil {
		return errors.New("no C compiler: " + err.Error() + ": " + string(out)), nil
	}
	beside := filepath.Join(dir, "libnvidia-ml.so.1")
	if out, err := exec.Command("cc", "-O1", "-shared", "-fPIC", "-o", beside,
		"../nvml/testdata/fake.c").CombinedOutput(); err != nil {
		return nil, errors.New(err.Error() + ": " + string(out))
	}
	os.Setenv("BROOD_CUDA", name)
	os.Setenv("BROOD_NVML", beside)
	nvml.Read("") // loads it
	if err := loaded(); err != nil {
		return nil, err
	}
	_, err = clib.Load(map[string]any{"fakeFail": &fakeFail, "fakeLeft": &fakeLeft, "fakeCounts": &fakeCounts}, name)
	return nil, err
})

// fake returns the fake driver, and checks at the test's end that everything was freed.
func fake(t *testing.T) Driver {
	t.Helper()
	skip, err := built()
	if skip != nil {
		t.Skip(skip)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		fakeFail("", 0, 0)
		if n := fakeLeft(); n > 0 {
			t.Errorf("%d things were not given back", n)
		}
	})
	return Driver{}
}

// TestDriver: the fake driver receives valid arguments, and the results are passed on.
func TestDriver(t *testing.T) {
	list, err := fake(t).Devices()
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	want := gpu.Info{
		Name:   "cuda:0 (Fake 100)",
		Maker:  "Fake 100",
		Driver: "CUDA 12.4, compute capability 8.0",
		Memory: 1 << 30,
		Most:   1 << 30,
		Double: true,
		Tensor: "cuda8.0",
	}
	if list[0] != want {
		t.Errorf("%+v", list[0])
	}
	for i, want := range map[int]string{
		1: "cuda:1 (Fake 1): the kernels are made for compute capability 8.0 and up, and this has 7.0: use it as opencl",
		2: "cuda:2: there are 2 devices, counted from 0",
	} {
		if _, err := (Driver{}).Open(i); err == nil || err.Error() != want {
			t.Errorf("%d: %v", i, err)
		}
	}
	d, err := Driver{}.Open(0)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := gpu.SelfTest(d); err != nil {
		t.Error(err)
	}
	for _, arithmetic := range gpu.Tensors {
		if err := gpu.TensorTest(d, arithmetic); err != nil {
			t.Error(err)
		}
	}
}

// TestSense: the state of a card comes from the management library, which finds it by its PCI bus address: for the
// driver, an open device, and an engine on it.
func TestSense(t *testing.T) {
	driver := fake(t)
	want := gpu.Sense{Taken: 324 << 20, Load: 0.87, Celsius: 61}
	if got := driver.Sense(0); got != want {
		t.Errorf("of the driver %+v", got)
	}
	if got := driver.Sense(7); got != gpu.Unknown {
		t.Errorf("of no device %+v", got)
	}
	d, err := driver.Open(0)
	if err != nil {
		t.Fatal(err)
	}
	e := small(t, d)
	defer e.Close()
	if taken, load, celsius := e.Sense(); (gpu.Sense{Taken: taken, Load: load, Celsius: celsius}) != want {
		t.Errorf("of an engine: %d, %g, %g", taken, load, celsius)
	}
	held, total := e.DeviceMemory()
	if _, free := e.Device(); free != total-(324<<20-held) {
		t.Errorf("%d of %d are free, of which it holds %d itself", free, total, held)
	}
	// The device is a quarter of the card.
	if got := sense(10, 1<<28); got != (gpu.Sense{Taken: -1, Load: -1, Celsius: 61}) {
		t.Errorf("of a part %+v", got)
	}
	fakeFail("cuDeviceGetPCIBusId", 0, 1)
	if taken, load, celsius := e.Sense(); taken >= 0 || load >= 0 || celsius >= 0 {
		t.Errorf("of a card without a place: %d, %g, %g", taken, load, celsius)
	}
	fakeFail("", 0, 0)
}

// TestQueue: writes and launches from short-lived threads are queued and executed in order, and queued data remains
// valid until it is read, even if it exceeds the staging memory.
func TestQueue(t *testing.T) {
	d, err := fake(t).Open(0)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	const each, pieces = 1 << 20, 20
	m, err := d.Alloc(each * pieces)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Free(m)
	p := make([]byte, each)
	for i := range pieces {
		for j := range p {
			p[j] = byte(i + j)
		}
		done := make(chan error)
		go func() {
			runtime.LockOSThread() // so the thread ends with the goroutine
			done <- d.Write(m, i*each, p)
		}()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		clear(p)
	}
	large := bytes.Repeat([]byte{9}, stagingRoom+1)
	if err := d.Write(m, 5, large); err != nil {
		t.Fatal(err)
	}
	clear(large)
	got := make([]byte, each*pieces)
	if err := d.Read(got, m, 0); err != nil {
		t.Fatal(err)
	}
	for i, x := range got {
		want := byte(i/each + i%each)
		if i >= 5 && i < 5+len(large) {
			want = 9
		}
		if x != want {
			t.Fatalf("byte %d is %d, want %d", i, x, want)
		}
	}
}

// TestEngine: an engine on the fake driver, limited to the kernels that the fake implements.
func TestEngine(t *testing.T) {
	d, err := fake(t).Open(0)
	if err != nil {
		t.Fatal(err)
	}
	e := small(t, d)
	defer e.Close()
	ctx := context.Background()
	x, err := e.Alloc(3, 5)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Free(x)
	if err := e.Do(ctx, engine.Fill{Dst: engine.Span{Mat: x, Row: 1, Rows: 2, Lo: 1, Hi: 3}, Value: 2.5}); err != nil {
		t.Fatal(err)
	}
	p := make([]byte, x.Bytes())
	if err := e.Read(ctx, p, engine.All(x)); err != nil {
		t.Fatal(err)
	}
	if want := []float32{0, 0, 0, 0, 0, 0, 2.5, 2.5, 0, 0, 0, 2.5, 2.5, 0, 0}; !bytes.Equal(p,
		engine.AppendFloats(nil, want)) {
		t.Error(p)
	}
}

// TestFailures: an error contains the driver's name for the failure.
func TestFailures(t *testing.T) {
	driver := fake(t)
	for call, want := range map[string]string{
		"cuDeviceGetCount":         "no CUDA here: CUDA_ERROR_OUT_OF_MEMORY (2)",
		"cuDeviceTotalMem_v2":      "cuda:0: read its properties: CUDA_ERROR_OUT_OF_MEMORY (2)",
		"cuDevicePrimaryCtxRetain": "cuda:0 (Fake 100): open: CUDA_ERROR_OUT_OF_MEMORY (2)",
		"cuStreamCreate":           "cuda:0 (Fake 100): open: CUDA_ERROR_OUT_OF_MEMORY (2)",
		"cuMemHostAlloc":           "cuda:0 (Fake 100): open: CUDA_ERROR_OUT_OF_MEMORY (2)",
	} {
		fakeFail(call, 0, 2)
		d, err := driver.Open(0)
		fakeFail("", 0, 0)
		if err == nil {
			d.Close()
		}
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v", call, err)
		}
		if n := fakeLeft(); n > 0 {
			t.Errorf("%s: %d things were not given back", call, n)
		}
	}
	for call, want := range map[string]string{
		"cuModuleLoadDataEx":   "load selftest: CUDA_ERROR_INVALID_PTX (218)",
		"cuModuleGetFunction":  "kernel singles: CUDA_ERROR_INVALID_PTX (218)",
		"cuLaunchKernel":       "CUDA_ERROR_INVALID_PTX (218)",
		"cuMemAlloc_v2":        "CUDA_ERROR_INVALID_PTX (218)",
		"cuMemcpyHtoDAsync_v2": "CUDA_ERROR_INVALID_PTX (218)",
		"cuMemcpyDtoHAsync_v2": "CUDA_ERROR_INVALID_PTX (218)",
		"cuStreamSynchronize":  "CUDA_ERROR_INVALID_PTX (218)",
		"cuCtxSetCurrent":      "CUDA_ERROR_INVALID_PTX (218)",
	} {
		d, err := driver.Open(0)
		if err != nil {
			t.Fatal(err)
		}
		fakeFail(call, 0, 218)
		err = gpu.SelfTest(d)
		fakeFail("", 0, 0)
		d.Close()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", call, err)
		}
	}
}

// TestNoDriver: a machine without a driver, and a library that is not one, give an error.
func TestNoDriver(t *testing.T) {
	fake(t) // it provides the calls before and after
	defer load(os.Getenv("BROOD_CUDA"))
	if err := load("no-such-library.so", "nor-this.so"); err == nil ||
		err.Error() != "no CUDA here: no-such-library.so cannot be loaded; install NVIDIA's driver" {
		t.Error(err)
	}
	if err := load("no-such-library.so", "libm.so.6"); err == nil ||
		!strings.HasPrefix(err.Error(), "no CUDA here: libm.so.6 is not a driver of CUDA 11 or later: ") {
		t.Error(err)
	}
}

func small(t *testing.T, d gpu.Device) *gpu.Engine {
	t.Helper()
	m, err := models.Load("mlp-small")
	if err != nil {
		t.Fatal(err)
	}
	set, err := data.Glyphs(96, 32)
	if err != nil {
		t.Fatal(err)
	}
	e, err := gpu.New(d, m, set)
	if err != nil {
		t.Fatal(err)
	}
	return e
}
