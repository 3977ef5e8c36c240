package event

import (
	"fmt"
	"math"
	"strings"
)

// Machines holds measurements of the processes of a run and of their machines. No decision of the run depends on them,
// no digest includes them and verify ignores them: two runs with identical results have different measurements.
type Machines struct {
	Round uint64    `cbor:"0,keyasint"` // last committed round at the time of the measurement
	Of    []Machine `cbor:"1,keyasint"` // in ascending order of workers
}

// Machine holds the measurements of one process.
type Machine struct {
	Worker int                 `cbor:"0,keyasint"` // id of the worker, or [Here]
	Values map[Measure]float64 `cbor:"1,keyasint"` // without the measures that are unknown

	// To is the rate at which the worker sends to each other worker, in bytes per second. It is nil if the rates were
	// not measured, and if the worker has more than [MostLinks] links.
	To map[int]float64 `cbor:"2,keyasint,omitempty"`
}

// MostLinks is the maximum number of links of a worker that are recorded one by one. If a worker has more, only their
// total is recorded, since the number of links grows with the square of the number of workers.
const MostLinks = 16

// Here stands for the process of the coordinator, with all workers that it hosts.
const Here = -1

// Measure is the name of a measured quantity of a machine, in logs, in JSON and in Prometheus metrics.
type Measure string

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

// MeasureInfo describes a measure.
type MeasureInfo struct {
	Measure
	Unit string
	Doc  string
	Most float64 // largest plausible value; larger reports are rejected

	Reported bool // the process reports it about itself; otherwise the coordinator measures it
}

const (
	mostCores   = 1 << 16
	mostBytes   = 1 << 60
	mostSeconds = 1 << 20
	mostCount   = 1 << 53
)

// Measures lists all measures. To add one, add a constant, a line here and the code that measures it.
var Measures = []MeasureInfo{
	{Busy, "cores", "processors that the process keeps busy", mostCores, true},
	{Cores, "cores", "processors that the process may use, by its affinity and its control group", mostCores, true},
	{Load, "cores", "busy processors of the machine, by all processes", mostCores, true},
	{AllCores, "cores", "processors of the machine", mostCores, true},
	{Memory, "bytes", "resident memory of the process", mostBytes, true},
	{MemoryUsed, "bytes", "memory in use on the machine, or by the control group", mostBytes, true},
	{MemoryTotal, "bytes", "memory of the machine, or the limit of its control group", mostBytes, true},
	{DeviceUsed, "bytes", "memory of the device that the engine uses", mostBytes, true},
	{DeviceTotal, "bytes", "memory of the device", mostBytes, true},
	{DeviceTaken, "bytes", "memory of the device in use by all processes, if its driver reports it", mostBytes, true},
	{DeviceLoad, "share", "of the time in which the device was busy, from 0 to 1, if its driver reports it", 1, true},
	{DeviceHeat, "degrees Celsius", "temperature of the device, if its driver reports it", 1000, true},
	{RoundTrip, "seconds", "to the coordinator and back, of the last heartbeat", mostSeconds, false},
	{Sent, "bytes a second", "to the other workers", mostBytes, false},
	{Received, "bytes a second", "from the other workers", mostBytes, false},
	{Restarts, "restarts", "of the programs of an objective since the process began", mostCount, true},
}

// mostMeasures is the maximum number of measures in a report: more than there are, since later versions may add some.
const mostMeasures = 64

// CheckReport validates the measures that a process reports about itself. It returns them rounded, without those that
// this version does not know; nil if none remain. It returns an error if there are too many, if a value is out of range
// or not a number, if a name is invalid, or if the coordinator has to measure the quantity.
func CheckReport(values map[Measure]float64) (map[Measure]float64, error) {
	if len(values) > mostMeasures {
		return nil, fmt.Errorf("its report has %d measures of its machine, but only %d exist", len(values),
			len(Measures))
	}
	left := len(values)
	var out map[Measure]float64
	for _, m := range Measures {
		x, ok := values[m.Measure]
		switch {
		case !ok:
			continue
		case !m.Reported:
			return nil, fmt.Errorf("its report has %s, which the coordinator measures", m.Measure)
		case !(x >= 0 && x <= m.Most):
			return nil, fmt.Errorf("its report has an implausible %s of %g %s", m.Measure, x, m.Unit)
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
		invalid := func(r rune) bool { return (r < 'a' || r > 'z') && r != '_' }
		if len(name) == 0 || len(name) > 40 || strings.ContainsFunc(string(name), invalid) {
			return nil, fmt.Errorf("its report has a measure with the invalid name %.40q", string(name))
		}
	}
	return out, nil
}

// Short returns x rounded to float32, which takes less space in a log; x itself if it is out of the range of float32.
func Short(x float64) float64 {
	if short := float64(float32(x)); !math.IsInf(short, 0) {
		return short
	}
	return x
}
