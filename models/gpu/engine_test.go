package gpu_test

import (
	"errors"
	"os"
	"testing"

	"brood/models"
	"brood/models/data"
	"brood/models/enginetest"
	"brood/models/gpu"
	"brood/models/gpu/opencl"
)

// open is the device of the tests: the first of OpenCL, or the one that $BROOD_TEST_DEVICE numbers. Where there is none, the test is skipped.
func open(t testing.TB) gpu.Device {
	t.Helper()
	at := 0
	if s := os.Getenv("BROOD_TEST_DEVICE"); s != "" {
		at = int(s[0] - '0')
	}
	if _, err := (opencl.Driver{}).Devices(); err != nil {
		t.Skip(err)
	}
	d, err := opencl.Driver{}.Open(at)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// newEngine is closed with the test; a model without kernels skips it.
func newEngine(t *testing.T, m *models.Model, set *data.Set) *gpu.Engine {
	t.Helper()
	e, err := gpu.New(open(t), m, set)
	if _, ok := errors.AsType[*gpu.UncoveredError](err); ok {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// TestContract is the contract of engines.
func TestContract(t *testing.T) {
	enginetest.Run(t, func(t *testing.T, m *models.Model, d *data.Set, _ int) enginetest.Engine { return newEngine(t, m, d) })
}
