// Package machine measures the process that it is in and the machine below it: processors and memory, as the kernel
// counts them and as a control group bounds them. What cannot be known is left out. It imports runtime/event.
//
//	m := machine.New()
//	for range time.Tick(time.Second) {
//		values := m.Measure(time.Now()) // the first has no rates yet
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

// Meter measures. Rates are of the time since it measured last. It is used by one goroutine at a time.
type Meter struct {
	read func(path string) ([]byte, error) // of the kernel's files; elsewhere there are none
	used func() (time.Duration, bool)      // processor time of this process

	at   time.Time
	last counts
}

// counts grow.
type counts struct {
	process time.Duration // processor time of this process
	machine float64       // seconds in which processors were busy, summed over them
	known   bool          // machine is
}

// New readies a meter.
func New() *Meter { return &Meter{read: os.ReadFile, used: ProcessorTime} }

// ticks a second in which Linux counts processor time for programs.
const ticks = 100

// Measure is what is known now.
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

// put keeps a value that is a number and not below 0; what comes out otherwise is not known.
func put(out map[event.Measure]float64, name event.Measure, x float64) {
	if x >= 0 && !math.IsInf(x, 0) {
		out[name] = x
	}
}

// machine is the time in which processors were busy, and how many there are.
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

// memory is what the machine has and what of it is to be had, in bytes; 0 where nobody says.
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

// group is what a control group bounds; infinite where none does.
type group struct{ cores, memory, used float64 }

// cgroups is where version 2 of control groups is mounted.
const cgroups = "/sys/fs/cgroup"

// group reads the process's control group and those above it: the least of their bounds holds. A container sees its own
// as the root.
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
				out.memory, out.used = n, m.taken(dir)
			}
		}
		if at == "/" {
			break
		}
	}
	return out
}

// taken is the memory of a control group without files that are only kept at hand.
func (m *Meter) taken(dir string) float64 {
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

// number is NaN where a text is none.
func number(text string) float64 {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return math.NaN()
	}
	return x
}

// resident is the memory that Go holds of the system, for systems that do not tell a process's own.
func resident() float64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return float64(s[0].Value.Uint64() - s[1].Value.Uint64())
}

// Holder is a worker: it knows how much of its device its engine holds, and what the device's driver tells. Bytes; a
// share; degrees Celsius. What nobody tells is below zero.
type Holder interface {
	Held() (used, total int64, ok bool)
	Sense() (taken int64, load, celsius float64)
}

// Restarter is a worker that counts how often the programs of its objective were restarted; ok is false without any.
type Restarter interface {
	Restarts() (n int, ok bool)
}

// Programs adds the restarts of the programs of a worker of this process.
func Programs(values map[event.Measure]float64, r Restarter) {
	if n, ok := r.Restarts(); ok {
		values[event.Restarts] += float64(n)
	}
}

// Device adds what a worker of this process holds of its device, and how that is. Workers of one process compute on the
// same one. It takes the time that the device's driver takes to answer.
func Device(values map[event.Measure]float64, h Holder) {
	used, total, ok := h.Held()
	if !ok {
		return
	}
	values[event.DeviceUsed] += float64(used)
	values[event.DeviceTotal] = max(values[event.DeviceTotal], float64(total))
	taken, load, celsius := h.Sense()
	put(values, event.DeviceTaken, float64(taken))
	put(values, event.DeviceLoad, load)
	put(values, event.DeviceHeat, celsius)
}
