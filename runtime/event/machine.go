package event

import (
	"fmt"
	"math"
	"strings"
)

// Machines is what was measured of the processes of a run around a round, and of the machines that they are on. Nothing
// decides by it, no digest holds it, and verify does not look at it: two runs with the same bits have others.
type Machines struct {
	Round uint64    `cbor:"0,keyasint"` // committed by then
	Of    []Machine `cbor:"1,keyasint"` // workers ascend
}

// Machine is what was measured of one process.
type Machine struct {
	Worker int                 `cbor:"0,keyasint"` // that it is, or [Here]
	Values map[Measure]float64 `cbor:"1,keyasint"` // what is not known is not there

	// To is what the worker sends to each other worker, in bytes a second; nil where nobody measured it, where it has
	// links to more than [MostLinks], and in logs of before
	To map[int]float64 `cbor:"2,keyasint,omitempty"`
}

// MostLinks is how many links of a worker are recorded: of one with more only what it sends over all of them, since
// links grow as the square of the workers.
const MostLinks = 16

// Here is the coordinator's own process, with all workers that it hosts.
const Here = -1

// Measure is a quantity of a machine, by its name in logs, in JSON and in what Prometheus reads.
type Measure string

// What is measured.
const (
	Busy        Measure = "cpu"
	Cores       Measure = "cores"
	Load        Measure = "load"
	AllCores    Measure = "machine_cores"
	Memory      Measure = "memory"
	MemoryUsed  Measure = "machine_memory_used"
	MemoryTotal Measure = "machine_memory"
	DeviceUsed  Measure = "device_memory_used"
	DeviceTotal Measure = "device_memory"
	DeviceTaken Measure = "device_memory_taken"
	DeviceLoad  Measure = "device_load"
	DeviceHeat  Measure = "device_celsius"
	RoundTrip   Measure = "round_trip"
	Sent        Measure = "sent"
	Received    Measure = "received"
	Restarts    Measure = "restarts"
)

// MeasureInfo says what a measure is.
type MeasureInfo struct {
	Measure
	Unit string
	Doc  string
	Most float64 // beyond it a value is nonsense
	Told bool    // the process tells it of itself; else the coordinator measures it
}

const (
	mostCores   = 1 << 16
	mostBytes   = 1 << 60
	mostSeconds = 1 << 20
	mostCount   = 1 << 53
)

// Measures are all of them. A further one is a constant, a line here, and whoever measures it.
var Measures = []MeasureInfo{
	{Busy, "cores", "processors that the process keeps busy", mostCores, true},
	{Cores, "cores", "processors that the process may use, by its affinity and its control group", mostCores, true},
	{Load, "cores", "processors of the machine that are busy, with whatever runs there", mostCores, true},
	{AllCores, "cores", "processors of the machine", mostCores, true},
	{Memory, "bytes", "resident memory of the process", mostBytes, true},
	{MemoryUsed, "bytes", "memory of the machine, or of the control group, that is taken", mostBytes, true},
	{MemoryTotal, "bytes", "memory of the machine, or what its control group may have", mostBytes, true},
	{DeviceUsed, "bytes", "memory of the device that the engine holds", mostBytes, true},
	{DeviceTotal, "bytes", "memory of the device", mostBytes, true},
	{DeviceTaken, "bytes", "memory of the device that is taken, by whomever, where its driver tells", mostBytes, true},
	{DeviceLoad, "share", "of the time in which the device was busy, from 0 to 1, where its driver tells", 1, true},
	{DeviceHeat, "degrees Celsius", "temperature of the device, where its driver tells", 1000, true},
	{RoundTrip, "seconds", "to the coordinator and back, of the last heartbeat", mostSeconds, false},
	{Sent, "bytes a second", "to the other workers", mostBytes, false},
	{Received, "bytes a second", "from the other workers", mostBytes, false},
	{Restarts, "restarts", "of the programs of an objective that ended, since the process began", mostCount, true},
}

// mostMeasures is how many a worker may tell: all, and what later versions know besides.
const mostMeasures = 64

// Told is what a process says of itself, without what this version does not know; or an error that says what of it
// cannot be.
func Told(values map[Measure]float64) (map[Measure]float64, error) {
	if len(values) > mostMeasures {
		return nil, fmt.Errorf("it tells %d measures of its machine, and there are %d", len(values), len(Measures))
	}
	left := len(values)
	var out map[Measure]float64
	for _, m := range Measures {
		x, ok := values[m.Measure]
		switch {
		case !ok:
			continue
		case !m.Told:
			return nil, fmt.Errorf("it tells its %s, which is for the coordinator to measure", m.Measure)
		case !(x >= 0 && x <= m.Most):
			return nil, fmt.Errorf("it measures its %s as %g %s", m.Measure, x, m.Unit)
		}
		if out == nil {
			out = map[Measure]float64{}
		}
		out[m.Measure] = Short(x)
		left--
	}
	for name := range values {
		if left == 0 {
			break
		}
		if len(name) == 0 || len(name) > 40 || strings.ContainsFunc(string(name), func(r rune) bool { return (r < 'a' || r > 'z') && r != '_' }) {
			return nil, fmt.Errorf("it measures %.40q of its machine, which is no name", string(name))
		}
	}
	return out, nil
}

// Short is x with the digits that are worth keeping.
func Short(x float64) float64 {
	if short := float64(float32(x)); !math.IsInf(short, 0) {
		return short
	}
	return x
}
