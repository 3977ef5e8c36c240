package option

import (
	"slices"
	"strconv"
	"strings"

	"brood/models/usererr"
)

// CPU is the processor, as a device; CPUBF16 and CPUAMX are it with candidates in bfloat16, in two orders of sums.
const (
	CPU     = "cpu"
	CPUBF16 = CPU + ",bf16"
	CPUAMX  = CPU + ",amx"
)

// Processor says whether a text, which may be that of nobody's choice, "", has the processor compute.
func Processor(text string) bool {
	return text == "" || text == CPU || text == CPUBF16 || text == CPUAMX
}

// Drivers are the interfaces by which devices are reached; gpu stands for all of them, in this order.
var Drivers = []string{"cuda", "opencl"}

// Arithmetics are what products may be computed in besides f32/1, by the tensor cores of NVIDIA's cards.
var Arithmetics = []string{"tf32", "bf16"}

// ParseDevice reads what computes: cpu, a driver, or gpu for the first that has one; with a colon the number of the
// device, opencl:1; with a comma an arithmetic of [Arithmetics], cuda:0,bf16, "" where none is named.
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
		return "", 0, "", usererr.Errorf("device %q: %q is no arithmetic of the processor: choose bf16 or amx, or leave it out", text, arithmetic)
	case named && !slices.Contains(Arithmetics, arithmetic):
		return "", 0, "", usererr.Errorf("device %q: %q is no arithmetic: choose %s, or leave it out", text, arithmetic,
			strings.Join(Arithmetics, " or "))
	case named && driver != "gpu" && driver != "cuda":
		return "", 0, "", usererr.Errorf("device %q: %s is computed by the tensor cores of NVIDIA's cards, by CUDA: choose cuda:0,%s, or leave it out", text, arithmetic, arithmetic)
	}
	return driver, index, arithmetic, nil
}

func devices() []string {
	return []string{CPU, CPUBF16, CPUAMX, "gpu", "cuda:0", "cuda:0,tf32", "cuda:0,bf16", "opencl:0"}
}

func computes(text string) error {
	_, _, _, err := ParseDevice(text)
	return err
}
