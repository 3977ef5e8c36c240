//go:build nogpu || !(linux || windows) || !(amd64 || arm64)

package cuda

import (
	"errors"

	"brood/models/gpu"
)

// Driver is the CUDA driver in builds without CUDA.
type Driver struct{}

var errBuilt = errors.New("no CUDA here: this brood was built without it (-tags nogpu, or for a system that has none)")

// Name returns cuda.
func (Driver) Name() string { return "cuda" }

// Devices fails.
func (Driver) Devices() ([]gpu.Info, error) { return nil, errBuilt }

// Open fails.
func (Driver) Open(int) (gpu.Device, error) { return nil, errBuilt }
