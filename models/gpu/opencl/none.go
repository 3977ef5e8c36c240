//go:build nogpu || !(linux || darwin || windows) || !(amd64 || arm64)

package opencl

import (
	"errors"

	"brood/models/gpu"
)

// Driver is the OpenCL driver in builds without OpenCL.
type Driver struct{}

var errBuilt = errors.New("no OpenCL here: this brood was built without it (-tags nogpu, " +
	"or for a system that it does not know)")

// Name returns opencl.
func (Driver) Name() string { return "opencl" }

// Devices fails.
func (Driver) Devices() ([]gpu.Info, error) { return nil, errBuilt }

// Open fails.
func (Driver) Open(int) (gpu.Device, error) { return nil, errBuilt }
