//go:build !linux && !darwin

package machine

import "time"

// ThreadTime is not known here.
func ThreadTime() (t time.Duration, ok bool) { return 0, false }
