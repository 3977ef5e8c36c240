package enginetest

import "os/exec"

// Python is a python3 that has packages, "torch, numpy" for instance, which the one that is found first need not be; ""
// for none. It starts them, which takes seconds.
func Python(packages string) string {
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(name, "-c", "import "+packages).Run() == nil {
			return name
		}
	}
	return ""
}
