package machine

import (
	"io/fs"
	"maps"
	"math"
	"os"
	goruntime "runtime"
	"testing"
	"time"

	"brood/runtime/event"
	"brood/runtime/testutil"
)

// files is the file system of a machine, by path.
type files map[string]string

func (f files) read(path string) ([]byte, error) {
	text, ok := f[path]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return []byte(text), nil
}

// busy is a machine of 4 processors and 8 GB, on which the process has 1000 pages.
func linux(busy string) files {
	return files{
		"/proc/self/statm": "9000 1000 30 4 0 600 0\n",
		"/proc/stat": "cpu  " + busy + " 0 0 9000 50 0 0 0 0 0\ncpu0 1 0 0 1 0 0 0 0 0 0\ncpu1 1\ncpu2 1\ncpu3 1\n" +
			"intr 5\nctxt 3\n",
		"/proc/meminfo": "MemTotal:        8000000 kB\nMemFree:          100000 kB\nMemAvailable:    6000000 kB\n",
	}
}

// TestMeasure reads the kernel files of a machine twice, half a second apart.
func TestMeasure(t *testing.T) {
	var used time.Duration
	now := time.Unix(1000, 0)
	m := &Meter{read: linux("700").read, used: func() (time.Duration, bool) { return used, true }}
	first := m.Measure(now)
	for _, rate := range []event.Measure{event.Busy, event.Load} {
		if x, ok := first[rate]; ok {
			t.Errorf("%s is %g before there was any time", rate, x)
		}
	}
	m.read, used = linux("850").read, 750*time.Millisecond
	got := m.Measure(now.Add(500 * time.Millisecond))
	for name, want := range map[event.Measure]float64{
		event.Busy: 1.5, event.Load: 3, event.AllCores: 4, event.Cores: float64(goruntime.NumCPU()),
		event.Memory: 1000 * float64(os.Getpagesize()), event.MemoryTotal: 8e6 * 1024, event.MemoryUsed: 2e6 * 1024,
	} {
		if x, ok := got[name]; !ok || math.Abs(x-want) > 1e-9*want {
			t.Errorf("%s is %g (%t), want %g", name, x, ok, want)
		}
	}
	if accepted, err := event.CheckReport(got); err != nil || len(accepted) != len(got) {
		t.Errorf("the coordinator would take %v of it: %v", accepted, err)
	}
}

// TestControlGroup: the lowest limit of the group and its parents is used, with the memory of that group.
func TestControlGroup(t *testing.T) {
	f := linux("700")
	maps.Copy(f, files{
		"/proc/self/cgroup":                     "1:name=systemd:/x\n0::/pods/one\n",
		"/sys/fs/cgroup/pods/one/cpu.max":       "150000 100000\n",
		"/sys/fs/cgroup/pods/cpu.max":           "50000 100000\n",
		"/sys/fs/cgroup/cpu.max":                "max 100000\n",
		"/sys/fs/cgroup/pods/one/memory.max":    "max\n",
		"/sys/fs/cgroup/pods/memory.max":        "1000000\n",
		"/sys/fs/cgroup/pods/memory.current":    "700000\n",
		"/sys/fs/cgroup/pods/memory.stat":       "anon 5\nfile 8\ninactive_file 200000\n",
		"/sys/fs/cgroup/memory.max":             "999999999\n",
		"/sys/fs/cgroup/memory.current":         "5\n",
		"/sys/fs/cgroup/pods/one/memory.oddity": "",
	})
	m := &Meter{read: f.read, used: func() (time.Duration, bool) { return 0, false }}
	m.Measure(time.Unix(1, 0))
	got := m.Measure(time.Unix(2, 0))
	for name, want := range map[event.Measure]float64{event.Cores: 0.5, event.MemoryTotal: 1e6, event.MemoryUsed: 5e5} {
		if got[name] != want {
			t.Errorf("%s is %g, want %g", name, got[name], want)
		}
	}
	if x, ok := got[event.Busy]; ok {
		t.Errorf("processor time that nobody tells is %g", x)
	}
}

// TestUnknown: measures with missing or invalid files are absent, not 0.
func TestUnknown(t *testing.T) {
	for name, f := range map[string]files{
		"no files": {},
		"nonsense": {"/proc/self/statm": "x y", "/proc/stat": "cpu a b c d e f g h\ncpu0 1",
			"/proc/meminfo": "MemTotal: many kB", "/proc/self/cgroup": "0::/",
			"/sys/fs/cgroup/cpu.max": "0 0", "/sys/fs/cgroup/memory.max": "1000", "/sys/fs/cgroup/memory.current": "?"},
	} {
		m := &Meter{read: f.read, used: func() (time.Duration, bool) { return 0, false }}
		m.Measure(time.Unix(1, 0))
		got := m.Measure(time.Unix(2, 0))
		for _, gone := range []event.Measure{event.Busy, event.Load, event.MemoryUsed} {
			if x, ok := got[gone]; ok {
				t.Errorf("%s: %s is %g", name, gone, x)
			}
		}
		if _, err := event.CheckReport(got); err != nil || got[event.Cores] <= 0 || got[event.Memory] <= 0 {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// TestThisMachine: a busy loop is visible, and all measures are plausible.
func TestThisMachine(t *testing.T) {
	m := New()
	last := time.Now()
	m.Measure(last)
	var x, used float64
	var got map[event.Measure]float64
	// others may have the processors meanwhile
	testutil.Eventually(t, "a tenth of a second of a processor", func() bool {
		for time.Since(last) < 100*time.Millisecond {
			x += math.Sqrt(x + 1)
		}
		now := time.Now()
		got = m.Measure(now)
		used += got[event.Busy] * now.Sub(last).Seconds()
		last = now
		return used > 0.1
	})
	if _, err := event.CheckReport(got); err != nil || got[event.Memory] < 1<<20 {
		t.Errorf("%v, %v", got, err)
	}
}

// card is the device memory of a worker.
type card struct {
	used, total int64
	absent      bool
	taken       int64
	load, heat  float64
}

func (c card) DeviceMemory() (used, total int64, ok bool) { return c.used, c.total, !c.absent }
func (c card) Sense() (taken int64, load, heat float64)   { return c.taken, c.load, c.heat }

// TestDevice: the workers of a process have separate memory on one device; measures that the driver lacks are unknown.
func TestDevice(t *testing.T) {
	for name, c := range map[string]struct {
		workers []card
		want    map[event.Measure]float64
	}{
		"none": {[]card{{absent: true, taken: 5}}, map[event.Measure]float64{}},
		"silent": {[]card{{100, 1000, false, -1, -1, -1}, {50, 1000, false, -1, -1, -1}},
			map[event.Measure]float64{event.DeviceUsed: 150, event.DeviceTotal: 1000}},
		"telling": {[]card{{100, 1000, false, 700, 0.5, 61}, {50, 1000, false, 700, 0.25, 61}},
			map[event.Measure]float64{event.DeviceUsed: 150, event.DeviceTotal: 1000, event.DeviceTaken: 700, event.DeviceLoad: 0.25, event.DeviceHeat: 61}},
		"in part": {[]card{{100, 1000, false, -1, math.NaN(), 0}},
			map[event.Measure]float64{event.DeviceUsed: 100, event.DeviceTotal: 1000, event.DeviceHeat: 0}},
	} {
		got := map[event.Measure]float64{}
		for _, w := range c.workers {
			AddDevice(got, w)
		}
		if !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		if _, err := event.CheckReport(got); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// programs is a worker with this number of restarted programs; negative: without a program.
type programs int

func (p programs) Restarts() (n int, ok bool) { return int(p), p >= 0 }

// TestPrograms: the restarts of the workers of a process are added; a process without programs reports none.
func TestPrograms(t *testing.T) {
	got := map[event.Measure]float64{}
	if AddRestarts(got, programs(-1)); len(got) != 0 {
		t.Errorf("%v without a program", got)
	}
	AddRestarts(got, programs(3))
	AddRestarts(got, programs(0))
	AddRestarts(got, programs(4))
	if accepted, err := event.CheckReport(got); err != nil || accepted[event.Restarts] != 7 {
		t.Errorf("%v, %v", accepted, err)
	}
}
