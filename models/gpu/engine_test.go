package gpu_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"strings"
	"testing"

	"brood/models"
	"brood/models/data"
	"brood/models/engine"
	"brood/models/enginetest"
	"brood/models/gpu"
	"brood/models/gpu/opencl"
	"brood/models/longtest"
)

// open returns the test device: the first of OpenCL, or the one with the number $BROOD_TEST_DEVICE. It skips the test
// if there is none.
func open(t testing.TB) gpu.Device {
	t.Helper()
	at := 0
	if s := os.Getenv("BROOD_TEST_DEVICE"); s != "" {
		at = int(s[0] - '0')
	}
	if _, err := (opencl.Driver{}).Devices(); err != nil {
		t.Skip(err)
	}
	d, err := opencl.Driver{}.Open(at)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// kept is a device that successive engines share: it compiles each source only once, which takes most of the time of an
// engine for a small model.
type kept struct {
	gpu.Device
	sources map[string]bool
	kernels map[string]gpu.Kernel
}

var device *kept

// once returns the test device, opened once.
func once(t testing.TB) gpu.Device {
	t.Helper()
	if device == nil {
		device = &kept{open(t), map[string]bool{}, map[string]gpu.Kernel{}}
	}
	return device
}

func (k *kept) Load(name, source string) error {
	if k.sources[source] {
		return nil
	}
	err := k.Device.Load(name, source)
	k.sources[source] = err == nil
	return err
}

func (k *kept) Kernel(name string) (gpu.Kernel, error) {
	if f, ok := k.kernels[name]; ok {
		return f, nil
	}
	f, err := k.Device.Kernel(name)
	if err == nil {
		k.kernels[name] = f
	}
	return f, err
}

// Close leaves the device open for the next engine.
func (k *kept) Close() {}

// newEngine returns an engine that is closed with the test; it skips the test for a model without kernels.
func newEngine(t *testing.T, m *models.Model, set *data.Set) *gpu.Engine {
	t.Helper()
	e, err := gpu.New(once(t), m, set)
	if _, ok := errors.AsType[*gpu.UncoveredError](err); ok {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// TestContract runs the contract of engines; without BROOD_LONG a part of it, since TestModelsHaveTheSameBits compares
// with an engine that passes all of it.
func TestContract(t *testing.T) {
	run := enginetest.Run
	if !longtest.On(longtest.Devices) {
		run = enginetest.Part
	}
	run(t, func(t *testing.T, m *models.Model, d *data.Set, _ int) engine.Engine { return newEngine(t, m, d) })
}

// brokenDevice is a device with one fault.
type brokenDevice struct {
	gpu.Device
	spoil func(p []byte) // changes data that is read
	names map[gpu.Kernel]string
	fail  string // the kernel whose launch fails
	held  map[gpu.Memory]bool
	edit  func(source string) string // changes the source before it is loaded
}

func (c *brokenDevice) Load(name, source string) error {
	if c.edit != nil {
		source = c.edit(source)
	}
	return c.Device.Load(name, source)
}

func (c *brokenDevice) Read(p []byte, src gpu.Memory, at int) error {
	err := c.Device.Read(p, src, at)
	if c.spoil != nil {
		c.spoil(p)
	}
	return err
}

func (c *brokenDevice) Kernel(name string) (gpu.Kernel, error) {
	k, err := c.Device.Kernel(name)
	if c.names == nil {
		c.names = map[gpu.Kernel]string{}
	}
	c.names[k] = name
	return k, err
}

func (c *brokenDevice) Launch(k gpu.Kernel, groups [3]int, size int, args ...any) error {
	if c.names[k] == c.fail && c.fail != "" {
		return errors.New("lost")
	}
	return c.Device.Launch(k, groups, size, args...)
}

func (c *brokenDevice) Alloc(bytes int) (gpu.Memory, error) {
	m, err := c.Device.Alloc(bytes)
	if c.held == nil {
		c.held = map[gpu.Memory]bool{}
	}
	if err == nil {
		c.held[m] = true
	}
	return m, err
}

func (c *brokenDevice) Free(m gpu.Memory) {
	delete(c.held, m)
	c.Device.Free(m)
}

// small returns a model and a matching data set.
func small(t *testing.T) (*models.Model, *data.Set) {
	t.Helper()
	m, err := models.Load("mlp-small")
	if err != nil {
		t.Fatal(err)
	}
	set, err := data.Glyphs(96, 32)
	if err != nil {
		t.Fatal(err)
	}
	return m, set
}

// TestSelfTest: a device whose results differ in one bit, or that flushes denormals to zero, is refused with an error
// that names the device and the operation.
func TestSelfTest(t *testing.T) {
	m, set := small(t)
	for name, spoil := range map[string]func(p []byte){
		"a last bit":      func(p []byte) { p[4*100] ^= 1 },
		"the last number": func(p []byte) { p[len(p)-4] ^= 1 },
		"flushes": func(p []byte) {
			for i := 0; i < len(p); i += 4 {
				if b := binary.LittleEndian.Uint32(p[i:]); b&0x7f800000 == 0 && b != 0 {
					binary.LittleEndian.PutUint32(p[i:], b&0x80000000)
				}
			}
		},
	} {
		d := &brokenDevice{Device: open(t), spoil: spoil}
		e, err := gpu.New(d, m, set)
		if _, ok := errors.AsType[*gpu.RoundingError](err); !ok || e != nil ||
			!strings.HasPrefix(err.Error(), d.Info().Name+" computes ") {
			t.Errorf("%s: %v", name, err)
		}
		if len(d.held) > 0 {
			t.Errorf("%s: %d pieces of memory are kept", name, len(d.held))
		}
	}
	d := open(t)
	if err := gpu.SelfTest(d); err != nil {
		t.Error(err)
	}
	d.Close()
}

// TestDeviceErrorsStay: a device error is returned by that call or a later one, and by every call from then on; an
// invalid task is not a device error. Close frees everything.
func TestDeviceErrorsStay(t *testing.T) {
	m, set := small(t)
	d := &brokenDevice{Device: open(t)}
	e, err := gpu.New(d, m, set)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	x, err := e.Alloc(2, m.Layout.Params)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Do(ctx, engine.Fill{Dst: engine.All(engine.Mat{Rows: 1, Cols: 1})}); err == nil {
		t.Error("a matrix without memory was filled")
	}
	if err := e.Do(ctx, engine.Fill{Dst: engine.All(x), Value: 3}); err != nil {
		t.Fatal(err)
	}
	d.fail = "statements"
	err = e.Do(ctx, engine.Fill{Dst: engine.All(x)})
	for range 3 {
		fault, ok := errors.AsType[*engine.DeviceError](err)
		if !ok || fault.Device != d.Info().Name || fault.Op != "launch statements" || fault.Err.Error() != "lost" {
			t.Fatalf("a launch fails: %v", err)
		}
		if _, err = e.Alloc(1, 1); err == nil {
			err = e.Wait(ctx)
		}
	}
	e.Free(x)
	e.Free(x)
	e.Close()
	e.Close()
	e.Free(x)
	if len(d.held) > 0 {
		t.Errorf("%d pieces of memory are kept", len(d.held))
	}
	if err := e.Wait(ctx); err == nil {
		t.Error("a closed engine waits")
	}
}

// TestMemory: the error of a failed allocation contains sizes, freed memory is invalid, and the bytes held are known.
func TestMemory(t *testing.T) {
	m, set := small(t)
	e := newEngine(t, m, set)
	before, total := e.DeviceMemory()
	if before <= set.Bytes()/8 || total < before {
		t.Errorf("a new engine holds %d of %d bytes, with data of %d", before, total, set.Bytes())
	}
	x, err := e.Alloc(3, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if now, _ := e.DeviceMemory(); now-before != 12<<20 {
		t.Errorf("12 MiB more are %d bytes", now-before)
	}
	defer func() {
		if now, _ := e.DeviceMemory(); now-before > 4<<20 { // freed below; the rest is scratch memory
			t.Errorf("%d bytes are kept", now-before)
		}
		e.Close()
		if now, _ := e.DeviceMemory(); now != 0 {
			t.Errorf("a closed engine holds %d bytes", now)
		}
	}()
	for _, size := range [][2]int{{-1, 1}, {1 << 40, 1 << 40}, {1 << 20, 1 << 30}, {math.MaxInt, 2}} {
		if _, err := e.Alloc(size[0], size[1]); err == nil || !strings.Contains(err.Error(), "GB") && size[0] > 0 {
			t.Errorf("%v: %v", size, err)
		}
	}
	view := x.Sub(1, 1)
	e.Free(x)
	for _, y := range []engine.Mat{x, view} {
		if err := e.Do(context.Background(), engine.Fill{Dst: engine.All(y)}); err == nil {
			t.Error("freed memory was filled")
		}
		if err := e.Read(context.Background(), make([]byte, y.Bytes()), engine.All(y)); err == nil {
			t.Error("freed memory was read")
		}
	}
}

// TestMissingLayers: a model with a layer that has no kernels is refused with the layer's name. Kernels exist for every
// model of the zoo except those with integer arithmetic, one with smoothed labels after given filters and one with a
// loss at each position of a text.
func TestMissingLayers(t *testing.T) {
	m, set := small(t)
	for _, name := range models.List() {
		m, err := models.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := gpu.Covers(m); (err != nil) != (m.Int8 || m.Smoothing > 0 || m.Positions > 1) {
			t.Error(err)
		}
	}
	for want, change := range map[string]func(m *models.Model){
		"model mlp-small: a smoothing of labels has no kernels for a device yet: train it on the processor":             func(m *models.Model) { m.Smoothing = 0.1 },
		"model mlp-small: a loss at each position of a text has no kernels for a device yet: train it on the processor": func(m *models.Model) { m.Positions = 2 },
		"model mlp-small: layer 2: a layer of kind last has no kernels for a device yet: train it on the processor": func(
			m *models.Model) {
			m.Layers[1].Kind = models.Last
		},
		"model mlp-small: layer 2: a convolution of given filters has no kernels for a device yet: " +
			"train it on the processor": func(m *models.Model) {
			m.Layers[1].Kind, m.Layers[1].Filters = models.Conv, []float32{1}
		},
	} {
		other := *m
		other.Layers = append([]models.Layer(nil), m.Layers...)
		change(&other)
		if err := gpu.Covers(&other); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	strange := *m
	strange.Layers = append([]models.Layer(nil), m.Layers...)
	strange.Layers[1].Kind = "strange"
	d := &brokenDevice{Device: open(t)}
	_, err := gpu.New(d, &strange, set)
	if _, ok := errors.AsType[*gpu.UncoveredError](err); !ok ||
		err.Error() != "model mlp-small: layer 2: a layer of kind strange has no kernels for a device yet: "+
			"train it on the processor" {
		t.Error(err)
	}
	if len(d.held) > 0 {
		t.Errorf("%d pieces of memory are kept", len(d.held))
	}
}

// TestManyRows: more rows than a launch allows are refused, and the engine remains usable.
func TestManyRows(t *testing.T) {
	m, set := small(t)
	e := newEngine(t, m, set)
	x, err := e.Alloc(gpu.MostEntries+1, 2)
	if err != nil {
		t.Fatal(err)
	}
	fill := engine.Span{Mat: x, Rows: gpu.MostEntries + 1, Hi: 1}
	if err := e.Do(context.Background(), engine.Fill{Dst: fill}); err == nil ||
		!strings.Contains(err.Error(), ": 65536 rows at once are more than the 65535 of a launch: take more workers") {
		t.Error(err)
	}
	fill.Rows--
	if err := e.Do(context.Background(), engine.Fill{Dst: fill}); err != nil {
		t.Error(err)
	}
	if err := e.Wait(context.Background()); err != nil {
		t.Error(err)
	}
}
