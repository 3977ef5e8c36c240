package option

import (
	"strings"
	"testing"

	"brood/models/typed"
)

func TestParseDevice(t *testing.T) {
	for text, want := range map[string]struct {
		driver string
		index  int
	}{"cpu": {"cpu", 0}, "gpu": {"gpu", 0}, "gpu:3": {"gpu", 3}, "cuda:1": {"cuda", 1}, "opencl": {"opencl", 0}, "opencl:12": {"opencl", 12}} {
		if driver, index, err := ParseDevice(text); err != nil || driver != want.driver || index != want.index {
			t.Errorf("%s is %s %d, %v", text, driver, index, err)
		}
	}
	for _, text := range []string{"", "cpu:0", "tpu", "gpu:", "gpu:-1", "gpu:+1", "gpu:01", "gpu:64", "opencl:x", "opencl:1:2", " gpu"} {
		if _, _, err := ParseDevice(text); !typed.Is(err) || !strings.Contains(err.Error(), "choose cpu, gpu, or one that brood doctor lists") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
