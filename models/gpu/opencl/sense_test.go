//go:build !nogpu && linux && (amd64 || arm64)

package opencl

import (
	"os/exec"
	"path/filepath"
	"testing"

	"brood/models/gpu"
)

// TestSense: the management library reports the state of NVIDIA cards, found by their bus addresses from either
// extension that has them; other makers' devices and devices without an address are Unknown.
func TestSense(t *testing.T) {
	dir := t.TempDir()
	for name, source := range map[string]string{"libOpenCL.so.1": "testdata/fake.c",
		"libnvidia-ml.so.1": "../nvml/testdata/fake.c"} {
		if out, err := exec.Command("cc", "-O1", "-shared", "-fPIC", "-o", filepath.Join(dir, name),
			source).CombinedOutput(); err != nil {
			t.Skipf("no C compiler: %v: %s", err, out)
		}
	}
	t.Setenv("BROOD_OPENCL", filepath.Join(dir, "libOpenCL.so.1"))
	t.Setenv("BROOD_NVML", filepath.Join(dir, "libnvidia-ml.so.1"))
	list, err := Driver{}.Devices()
	if err != nil || len(list) != 4 || list[1].Name != "opencl:1 (Fake)" {
		t.Fatalf("%+v, %v", list, err)
	}
	card := gpu.Sense{Taken: 324 << 20, Load: 0.87, Celsius: 61}
	for i, want := range []gpu.Sense{card, card, gpu.Unknown, gpu.Unknown, gpu.Unknown} {
		if got := (Driver{}).Sense(i); got != want {
			t.Errorf("device %d is %+v, want %+v", i, got, want)
		}
	}
	all, err := devices()
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"0000:3b:00.0", "0000:5e:00.0"} {
		if got, ok := bus(all[i]); !ok || got != want {
			t.Errorf("device %d is at %q", i, got)
		}
		d := &device{id: all[i]}
		if d.Sense() != card {
			t.Errorf("device %d, open, is %+v", i, d.Sense())
		}
	}
}
