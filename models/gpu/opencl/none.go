//go:build nogpu || !(linux || darwin || windows) || !(amd64 || arm64)

package opencl

import (
	"errors"

	"brood/models/gpu"
)

// Driver is OpenCL where brood was built without it.
type Driver struct{}

var errBuilt = errors.New("no OpenCL here: this brood was built without it (-tags nogpu, or for a system that it does not know)")

// Name is opencl.
func (Driver) Name() string { return "opencl" }

// Devices has none.
func (Driver) Devices() ([]gpu.Info, error) { return nil, errBuilt }

// Open fails.
func (Driver) Open(int) (gpu.Device, error) { return nil, errBuilt }
