//go:build !linux && !darwin

package machine

import "time"

// ThreadTime is unknown on this system.
func ThreadTime() (t time.Duration, ok bool) { return 0, false }
