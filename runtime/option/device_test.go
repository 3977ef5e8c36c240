package option

import (
	"strings"
	"testing"

	"brood/models/usererr"
)

func TestParseDevice(t *testing.T) {
	for text, want := range map[string]struct {
		driver     string
		index      int
		arithmetic string
	}{"cpu": {"cpu", 0, ""}, "gpu": {"gpu", 0, ""}, "gpu:3": {"gpu", 3, ""}, "cuda:1": {"cuda", 1, ""},
		"opencl": {"opencl", 0, ""}, "opencl:12": {"opencl", 12, ""},
		"gpu,tf32": {"gpu", 0, "tf32"}, "cuda:7,bf16": {"cuda", 7, "bf16"}, "cpu,bf16": {"cpu", 0, "bf16"},
		"cpu,amx": {"cpu", 0, "amx"}} {
		if driver, index, arithmetic, err := ParseDevice(text); err != nil || driver != want.driver || index != want.index ||
			arithmetic != want.arithmetic {
			t.Errorf("%s is %s %d %s, %v", text, driver, index, arithmetic, err)
		}
	}
	for text, want := range map[string]string{
		"cuda:0,": `"" is not an arithmetic: choose tf32 or bf16, or omit it`, "cuda,f32": `"f32" is not an arithmetic`,
		"cuda:0,bf16,":  `"bf16," is not an arithmetic`,
		"cpu,half":      `"half" is not an arithmetic of the processor: choose bf16 or amx, or omit it`,
		"cuda:0,amx":    `"amx" is not an arithmetic: choose tf32 or bf16`,
		"cpu,tf32":      "choose cuda:0,tf32, or omit it",
		"opencl:0,tf32": "CUDA computes tf32, on the tensor cores of NVIDIA's cards: choose cuda:0,tf32",
	} {
		if _, _, _, err := ParseDevice(text); !usererr.Is(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	for text, want := range map[string]bool{"": true, CPU: true, CPUBF16: true, CPUAMX: true, "gpu": false,
		"cuda:0,bf16": false} {
		if IsCPU(text) != want {
			t.Errorf("IsCPU(%q) = %v", text, !want)
		}
	}
	for _, text := range []string{"", "cpu:0", "tpu", "gpu:", "gpu:-1", "gpu:+1", "gpu:01", "gpu:64", "opencl:x",
		"opencl:1:2", " gpu", ",bf16", "tpu,bf16", "gpu:x,bf16"} {
		if _, _, _, err := ParseDevice(text); !usererr.Is(err) ||
			!strings.Contains(err.Error(), "choose cpu, gpu, or one that brood doctor lists") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
