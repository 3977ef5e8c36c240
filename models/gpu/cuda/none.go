//go:build nogpu || !(linux || windows) || !(amd64 || arm64)

package cuda

import (
	"errors"

	"brood/models/gpu"
)

// Driver is CUDA where brood was built without it.
type Driver struct{}

var errBuilt = errors.New("no CUDA here: this brood was built without it (-tags nogpu, or for a system that has none)")

// Name is cuda.
func (Driver) Name() string { return "cuda" }

// Devices has none.
func (Driver) Devices() ([]gpu.Info, error) { return nil, errBuilt }

// Open fails.
func (Driver) Open(int) (gpu.Device, error) { return nil, errBuilt }
