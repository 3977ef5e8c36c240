// Package machine measures this process and its machine: processors and memory, as the kernel counts them and as a
// control group limits them. Unknown quantities are omitted. It imports runtime/event.
//
//	m := machine.New()
//	for range time.Tick(time.Second) {
//		values := m.Measure(time.Now()) // the first one has no rates
//	}
package machine

import (
	"bufio"
	"bytes"
	"math"
	"os"
	"path"
	goruntime "runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"

	"brood/runtime/event"
)

// Meter measures this process and its machine. Rates are over the time since the previous measurement. It is not safe
// for concurrent use.
type Meter struct {
	read func(path string) ([]byte, error) // reads files of Linux; it fails on other systems
	used func() (time.Duration, bool)      // processor time of this process

	at   time.Time
	last counts
}

// counts holds counters that only increase.
type counts struct {
	process time.Duration // processor time of this process
	machine float64       // busy seconds, summed over processors
	known   bool          // whether machine is known
}

// New returns a meter.
func New() *Meter { return &Meter{read: os.ReadFile, used: ProcessorTime} }

// ticks is the number of ticks per second in which Linux reports processor time.
const ticks = 100

// Measure returns the known measures at the time now.
func (m *Meter) Measure(now time.Time) map[event.Measure]float64 {
	out := map[event.Measure]float64{event.Memory: resident()}
	if pages := m.fields("/proc/self/statm"); len(pages) > 1 {
		put(out, event.Memory, number(pages[1])*float64(os.Getpagesize()))
	}
	cores := float64(goruntime.NumCPU())
	var next counts
	next.machine, out[event.AllCores], next.known = m.machine()
	if !next.known {
		out[event.AllCores] = cores
	}
	group := m.group()
	put(out, event.Cores, min(cores, group.cores))
	total, free := m.memory()
	if group.memory < total {
		put(out, event.MemoryTotal, group.memory)
		put(out, event.MemoryUsed, group.used)
	} else if total > 0 {
		put(out, event.MemoryTotal, total)
		put(out, event.MemoryUsed, total-free)
	}
	dt, known := now.Sub(m.at).Seconds(), false
	next.process, known = m.used()
	if !m.at.IsZero() && dt > 0 {
		if known {
			put(out, event.Busy, (next.process-m.last.process).Seconds()/dt)
		}
		if next.known && m.last.known {
			put(out, event.Load, (next.machine-m.last.machine)/dt)
		}
	}
	m.at, m.last = now, next
	return out
}

// put sets a measure unless x is NaN, infinite or negative, which mean that it is unknown.
func put(out map[event.Measure]float64, name event.Measure, x float64) {
	if x >= 0 && !math.IsInf(x, 0) {
		out[name] = x
	}
}

// machine returns the busy seconds summed over processors, and the number of processors.
func (m *Meter) machine() (busy, cores float64, ok bool) {
	text, err := m.read("/proc/stat")
	if err != nil {
		return 0, 0, false
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		switch {
		case len(f) > 7 && f[0] == "cpu": // user nice system idle iowait irq softirq steal
			for i, x := range f[1:min(len(f), 9)] {
				if i != 3 && i != 4 {
					busy += number(x) / ticks
				}
			}
			ok = busy == busy
		case len(f) > 0 && strings.HasPrefix(f[0], "cpu"):
			cores++
		}
	}
	return busy, cores, ok && cores > 0
}

// memory returns the total and the available memory of the machine in bytes; 0 if unknown.
func (m *Meter) memory() (total, free float64) {
	text, err := m.read("/proc/meminfo")
	if err != nil {
		return 0, 0
	}
	for line := range strings.Lines(string(text)) {
		name, rest, _ := strings.Cut(line, ":")
		f := strings.Fields(rest)
		if len(f) == 0 {
			continue
		}
		switch name {
		case "MemTotal":
			total = 1024 * number(f[0])
		case "MemAvailable":
			free = 1024 * number(f[0])
		}
	}
	return total, free
}

// group holds the limits of a control group, infinite without a limit, and the memory that it uses in bytes.
type group struct{ cores, memory, used float64 }

// cgroups is the mount point of control groups, version 2.
const cgroups = "/sys/fs/cgroup"

// group returns the smallest limits of the process's control group and its ancestors. In a container the root is the
// control group of the container.
func (m *Meter) group() group {
	out := group{math.Inf(1), math.Inf(1), 0}
	text, err := m.read("/proc/self/cgroup")
	if err != nil {
		return out
	}
	at := ""
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			at = path.Clean("/" + rest)
		}
	}
	for ; at != ""; at = path.Dir(at) {
		dir := path.Join(cgroups, at)
		if f := m.fields(dir + "/cpu.max"); len(f) == 2 && f[0] != "max" {
			if n := number(f[0]) / number(f[1]); n > 0 {
				out.cores = min(out.cores, n)
			}
		}
		if f := m.fields(dir + "/memory.max"); len(f) == 1 && f[0] != "max" {
			if n := number(f[0]); n > 0 && n < out.memory {
				out.memory, out.used = n, m.groupMemory(dir)
			}
		}
		if at == "/" {
			break
		}
	}
	return out
}

// groupMemory returns the memory in use by a control group in bytes, without inactive file caches; NaN if unknown.
func (m *Meter) groupMemory(dir string) float64 {
	f := m.fields(dir + "/memory.current")
	if len(f) != 1 {
		return math.NaN()
	}
	used := number(f[0])
	text, err := m.read(dir + "/memory.stat")
	if err != nil {
		return used
	}
	for s := bufio.NewScanner(bytes.NewReader(text)); s.Scan(); {
		if rest, ok := strings.CutPrefix(s.Text(), "inactive_file "); ok {
			return max(0, used-number(rest))
		}
	}
	return used
}

func (m *Meter) fields(path string) []string {
	text, err := m.read(path)
	if err != nil {
		return nil
	}
	return strings.Fields(string(text))
}

// number parses a number; NaN if the text is not one.
func number(text string) float64 {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return math.NaN()
	}
	return x
}

// resident returns the memory that the Go runtime has from the system in bytes, for systems without /proc/self/statm.
func resident() float64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return float64(s[0].Value.Uint64() - s[1].Value.Uint64())
}

// DeviceMonitor is implemented by workers. DeviceMemory returns the device memory that the engine uses, and the memory
// of the device, in bytes; ok is false without a device. Sense returns measurements of the driver: the memory in use by
// all processes in bytes, the load as a share, and the temperature in degrees Celsius; negative values are unknown.
type DeviceMonitor interface {
	DeviceMemory() (used, total int64, ok bool)
	Sense() (taken int64, load, celsius float64)
}

// Restarter is implemented by workers that count the restarts of the programs of their objective; ok is false without
// programs.
type Restarter interface {
	Restarts() (n int, ok bool)
}

// AddRestarts adds the restarts of the programs of a worker of this process to values.
func AddRestarts(values map[event.Measure]float64, r Restarter) {
	if n, ok := r.Restarts(); ok {
		values[event.Restarts] += float64(n)
	}
}

// AddDevice adds the device measures of a worker of this process to values. All workers of a process use the same
// device. It blocks until the driver of the device answers.
func AddDevice(values map[event.Measure]float64, d DeviceMonitor) {
	used, total, ok := d.DeviceMemory()
	if !ok {
		return
	}
	values[event.DeviceUsed] += float64(used)
	values[event.DeviceTotal] = max(values[event.DeviceTotal], float64(total))
	taken, load, celsius := d.Sense()
	put(values, event.DeviceTaken, float64(taken))
	put(values, event.DeviceLoad, load)
	put(values, event.DeviceHeat, celsius)
}
