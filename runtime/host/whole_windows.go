package host

import "os/exec"

// whole has a command end; what it began goes on.
func whole(*exec.Cmd) {}
