package enginetest

import "os/exec"

// Python returns a python3 command that has packages, such as "torch, numpy", or "" if none has. It starts candidates
// to check, which takes seconds.
func Python(packages string) string {
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(name, "-c", "import "+packages).Run() == nil {
			return name
		}
	}
	return ""
}
