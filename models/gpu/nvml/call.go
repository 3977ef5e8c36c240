//go:build !nogpu && (linux || windows) && (amd64 || arm64)

package nvml

import (
	"errors"
	"os"
	"runtime"
	"sync"

	"brood/models/gpu/clib"
)

// memory and utilization are nvmlMemory_t and nvmlUtilization_t of the headers: bytes in total and in use, and the
// percentage of time in which the card was busy.
type memory struct{ total, _, used uint64 }

type utilization struct{ card, _ uint32 }

// The calls of the library. All but the first two are loaded separately, since a later library may lack one; a missing
// one is nil.
var (
	nvmlInit_v2                      func() int32
	nvmlDeviceGetHandleByPciBusId_v2 func(bus string, card *uintptr) int32
	nvmlDeviceGetMemoryInfo          func(card uintptr, m *memory) int32
	nvmlDeviceGetUtilizationRates    func(card uintptr, u *utilization) int32
	nvmlDeviceGetTemperature         func(card uintptr, sensor int32, celsius *uint32) int32
)

// libraries lists file names of the library on systems and in containers.
var libraries = map[string][]string{
	"linux": {"libnvidia-ml.so.1", "/usr/local/nvidia/lib64/libnvidia-ml.so.1", "/usr/lib/wsl/lib/libnvidia-ml.so.1",
		"/run/opengl-driver/lib/libnvidia-ml.so.1", "/usr/lib64/libnvidia-ml.so.1"},
	"windows": {"nvml.dll"},
}

// loaded loads the library once per process: $BROOD_NVML, or the system's.
var loaded = sync.OnceValue(func() error {
	if own := os.Getenv("BROOD_NVML"); own != "" {
		return load(own)
	}
	return load(libraries[runtime.GOOS]...)
})

func load(names ...string) error {
	if _, err := clib.Load(map[string]any{
		"nvmlInit_v2": &nvmlInit_v2, "nvmlDeviceGetHandleByPciBusId_v2": &nvmlDeviceGetHandleByPciBusId_v2,
	}, names...); err != nil {
		return err
	}
	nvmlDeviceGetMemoryInfo, nvmlDeviceGetUtilizationRates, nvmlDeviceGetTemperature = nil, nil, nil
	for call, f := range map[string]any{
		"nvmlDeviceGetMemoryInfo": &nvmlDeviceGetMemoryInfo, "nvmlDeviceGetUtilizationRates": &nvmlDeviceGetUtilizationRates,
		"nvmlDeviceGetTemperature": &nvmlDeviceGetTemperature,
	} {
		_, _ = clib.Load(map[string]any{call: f}, names...)
	}
	if code := nvmlInit_v2(); code != 0 {
		return errors.New("the library does not start")
	}
	return nil
}

// warmest is the highest valid temperature in degrees Celsius: some libraries return invalid values for a lost card.
const warmest = 200

// Read queries the card at a PCI bus address such as 0000:3b:00.0. It is safe for concurrent use.
func Read(bus string) Reading {
	out, card := unknown, new(uintptr)
	if loaded() != nil || nvmlDeviceGetHandleByPciBusId_v2(bus, card) != 0 {
		return out
	}
	m, u, celsius := new(memory), new(utilization), new(uint32)
	if f := nvmlDeviceGetMemoryInfo; f != nil && f(*card, m) == 0 && m.used <= m.total && m.total < 1<<60 {
		out.Taken, out.Total = int64(m.used), int64(m.total)
	}
	if f := nvmlDeviceGetUtilizationRates; f != nil && f(*card, u) == 0 && u.card <= 100 {
		out.Load = float64(u.card) / 100
	}
	if f := nvmlDeviceGetTemperature; f != nil && f(*card, 0, celsius) == 0 && *celsius <= warmest {
		out.Celsius = float64(*celsius)
	}
	return out
}
