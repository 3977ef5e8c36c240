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

// open is the device of the tests: the first of OpenCL, or the one that $BROOD_TEST_DEVICE numbers. Where there is
// none, the test is skipped.
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

// kept is a device that engines use one after the other: what was compiled for one of them serves the next, which is
// most of what an engine of a small model takes.
type kept struct {
	gpu.Device
	sources map[string]bool
	kernels map[string]gpu.Kernel
}

var device *kept

// once is the device of the tests, opened once.
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

// newEngine is closed with the test; a model without kernels skips it.
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

// TestContract is the contract of engines; without BROOD_LONG a part of it, since TestModelsHaveTheSameBits compares
// with an engine that meets all of it.
func TestContract(t *testing.T) {
	run := enginetest.Run
	if !longtest.On(longtest.Devices) {
		run = enginetest.Part
	}
	run(t, func(t *testing.T, m *models.Model, d *data.Set, _ int) engine.Engine { return newEngine(t, m, d) })
}

// crooked is a device that does one thing otherwise.
type crooked struct {
	gpu.Device
	spoil func(p []byte) // what is read
	names map[gpu.Kernel]string
	fail  string // the kernel that cannot be launched
	held  map[gpu.Memory]bool
	edit  func(source string) string // what is loaded
}

func (c *crooked) Load(name, source string) error {
	if c.edit != nil {
		source = c.edit(source)
	}
	return c.Device.Load(name, source)
}

func (c *crooked) Read(p []byte, src gpu.Memory, at int) error {
	err := c.Device.Read(p, src, at)
	if c.spoil != nil {
		c.spoil(p)
	}
	return err
}

func (c *crooked) Kernel(name string) (gpu.Kernel, error) {
	k, err := c.Device.Kernel(name)
	if c.names == nil {
		c.names = map[gpu.Kernel]string{}
	}
	c.names[k] = name
	return k, err
}

func (c *crooked) Launch(k gpu.Kernel, groups [3]int, size int, args ...any) error {
	if c.names[k] == c.fail && c.fail != "" {
		return errors.New("lost")
	}
	return c.Device.Launch(k, groups, size, args...)
}

func (c *crooked) Alloc(bytes int) (gpu.Memory, error) {
	m, err := c.Device.Alloc(bytes)
	if c.held == nil {
		c.held = map[gpu.Memory]bool{}
	}
	if err == nil {
		c.held[m] = true
	}
	return m, err
}

func (c *crooked) Free(m gpu.Memory) {
	delete(c.held, m)
	c.Device.Free(m)
}

// small is a model and a set that it fits.
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

// TestSelfTest: a device whose results differ in a bit, or that takes denormals for zero, is refused in one sentence
// that names it and what it got wrong.
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
		d := &crooked{Device: open(t), spoil: spoil}
		e, err := gpu.New(d, m, set)
		if _, ok := errors.AsType[*gpu.RoundingError](err); !ok || e != nil || !strings.HasPrefix(err.Error(), d.Info().Name+" computes ") {
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

// TestDeviceErrorsStay: what a device fails at is the error of that call or a later one, and of every call from then
// on; tasks that do not fit are no such thing. Closing gives everything back.
func TestDeviceErrorsStay(t *testing.T) {
	m, set := small(t)
	d := &crooked{Device: open(t)}
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

// TestMemory: what does not fit is said with figures, memory that was freed is no matrix's, and what is held is known.
func TestMemory(t *testing.T) {
	m, set := small(t)
	e := newEngine(t, m, set)
	before, total := e.Held()
	if before <= set.Bytes()/8 || total < before {
		t.Errorf("a new engine holds %d of %d bytes, with data of %d", before, total, set.Bytes())
	}
	x, err := e.Alloc(3, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if now, _ := e.Held(); now-before != 12<<20 {
		t.Errorf("12 MiB more are %d bytes", now-before)
	}
	defer func() {
		if now, _ := e.Held(); now-before > 4<<20 { // freed below, and what tasks work in
			t.Errorf("%d bytes are kept", now-before)
		}
		e.Close()
		if now, _ := e.Held(); now != 0 {
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

// TestMissingLayers: a model with a layer that has no kernels is refused, by name. Every model of the zoo has all of
// them but those of whole numbers, and one whose labels are smoothed behind given filters.
func TestMissingLayers(t *testing.T) {
	m, set := small(t)
	for _, name := range models.List() {
		m, err := models.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := gpu.Covers(m); (err != nil) != (m.Int8 || m.Smoothing > 0) {
			t.Error(err)
		}
	}
	for want, change := range map[string]func(m *models.Model){
		"model mlp-small: a smoothing of labels has no kernels for a device yet: train it on the processor": func(m *models.Model) { m.Smoothing = 0.1 },
		"model mlp-small: layer 2: a convolution of given filters has no kernels for a device yet: train it on the processor": func(m *models.Model) {
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
	d := &crooked{Device: open(t)}
	_, err := gpu.New(d, &strange, set)
	if _, ok := errors.AsType[*gpu.UncoveredError](err); !ok || err.Error() != "model mlp-small: layer 2: a layer of kind strange has no kernels for a device yet: train it on the processor" {
		t.Error(err)
	}
	if len(d.held) > 0 {
		t.Errorf("%d pieces of memory are kept", len(d.held))
	}
}

// TestManyRows: more rows than a card takes in a launch are refused in a sentence, and the engine goes on.
func TestManyRows(t *testing.T) {
	m, set := small(t)
	e := newEngine(t, m, set)
	x, err := e.Alloc(gpu.MostEntries+1, 2)
	if err != nil {
		t.Fatal(err)
	}
	fill := engine.Span{Mat: x, Rows: gpu.MostEntries + 1, Hi: 1}
	if err := e.Do(context.Background(), engine.Fill{Dst: fill}); err == nil || !strings.Contains(err.Error(), ": 65536 rows at once are more than the 65535 of a launch: take more workers") {
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
