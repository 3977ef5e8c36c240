package option

import (
	"slices"
	"strconv"
	"strings"

	"brood/models/usererr"
)

// CPU is the device text of the processor. CPUBF16 and CPUAMX compute candidates in bfloat16 on it; they differ in the
// order of the sums.
const (
	CPU     = "cpu"
	CPUBF16 = CPU + ",bf16"
	CPUAMX  = CPU + ",amx"
)

// IsCPU returns whether a device text selects the processor. The zero value "" does.
func IsCPU(text string) bool {
	return text == "" || text == CPU || text == CPUBF16 || text == CPUAMX
}

// Drivers are the interfaces to the devices; the text gpu tries them in this order.
var Drivers = []string{"cuda", "opencl"}

// Arithmetics are the arithmetics of products other than f32, on the tensor cores of NVIDIA's cards.
var Arithmetics = []string{"tf32", "bf16"}

// ParseDevice parses a device text: cpu, a driver of [Drivers], or gpu for the first driver that has a device; then
// optionally a colon and the number of the device, such as opencl:1; then optionally a comma and an arithmetic of
// [Arithmetics], such as cuda:0,bf16.
func ParseDevice(text string) (driver string, index int, arithmetic string, err error) {
	at, arithmetic, named := strings.Cut(text, ",")
	driver, number, numbered := strings.Cut(at, ":")
	known := driver == "gpu" || slices.Contains(Drivers, driver)
	if numbered {
		if index, err = strconv.Atoi(number); err != nil || index < 0 || index >= 64 || strconv.Itoa(index) != number {
			known = false
		}
	}
	switch {
	case at != CPU && !known:
		return "", 0, "", usererr.Errorf("device %q: choose cpu, gpu, or one that brood doctor lists, such as opencl:0", text)
	case text == CPUBF16 || text == CPUAMX:
	case named && at == CPU && !slices.Contains(Arithmetics, arithmetic):
		return "", 0, "", usererr.Errorf("device %q: %q is not an arithmetic of the processor: choose bf16 or amx, or "+
			"omit it", text, arithmetic)
	case named && !slices.Contains(Arithmetics, arithmetic):
		return "", 0, "", usererr.Errorf("device %q: %q is not an arithmetic: choose %s, or omit it", text, arithmetic,
			strings.Join(Arithmetics, " or "))
	case named && driver != "gpu" && driver != "cuda":
		return "", 0, "", usererr.Errorf("device %q: CUDA computes %s, on the tensor cores of NVIDIA's cards: choose "+
			"cuda:0,%s, or omit it",
			text, arithmetic, arithmetic)
	}
	return driver, index, arithmetic, nil
}

func devices() []string {
	return []string{CPU, CPUBF16, CPUAMX, "gpu", "cuda:0", "cuda:0,tf32", "cuda:0,bf16", "opencl:0"}
}

func checkDevice(text string) error {
	_, _, _, err := ParseDevice(text)
	return err
}
