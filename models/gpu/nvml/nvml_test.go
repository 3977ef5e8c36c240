//go:build !nogpu && linux && (amd64 || arm64)

package nvml

import (
	"os/exec"
	"path/filepath"
	"testing"

	"brood/models/gpu/clib"
)

// TestRead: every value comes from the library; unsupported or invalid values are unknown.
func TestRead(t *testing.T) {
	name := filepath.Join(t.TempDir(), "libnvidia-ml.so.1")
	if out, err := exec.Command("cc", "-O1", "-shared", "-fPIC", "-o", name,
		"testdata/fake.c").CombinedOutput(); err != nil {
		t.Skipf("no C compiler: %v: %s", err, out)
	}
	t.Setenv("BROOD_NVML", name)
	if err := load(name); err != nil { // even if this process has loaded another before
		t.Fatal(err)
	}
	var fakeCard func(code, odd int32)
	if _, err := clib.Load(map[string]any{"fakeCard": &fakeCard}, name); err != nil {
		t.Fatal(err)
	}
	const good, other = "0000:3b:00.0", "0000:5e:00.0"
	whole := Reading{324 << 20, 1 << 30, 0.87, 61}
	for _, c := range []struct {
		bus       string
		code, odd int32
		want      Reading
	}{
		{good, 0, 0, whole}, {other, 0, 0, whole}, {"0000:00:00.0", 0, 0, unknown}, {"", 0, 0, unknown},
		{other, 3, 0, unknown},  // not supported
		{other, 15, 0, unknown}, // lost
		{other, 0, 1, unknown},
	} {
		fakeCard(c.code, c.odd)
		if got := Read(c.bus); got != c.want {
			t.Errorf("%q (%d, %d) is %+v, want %+v", c.bus, c.code, c.odd, got, c.want)
		}
	}
	fakeCard(0, 0)
	gone := nvmlDeviceGetTemperature
	nvmlDeviceGetTemperature = nil // as for a library without it
	want := whole
	if want.Celsius = -1; Read(good) != want {
		t.Errorf("without temperatures: %+v", Read(good))
	}
	nvmlDeviceGetTemperature = gone
}

// TestNoLibrary: without a library, or with a different one, all values are unknown.
func TestNoLibrary(t *testing.T) {
	for _, name := range []string{"no-such-library.so", "libm.so.6"} {
		if load(name) == nil {
			t.Errorf("%s is taken for the library", name)
		}
	}
}
