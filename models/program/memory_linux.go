package program

import (
	"os"

	"golang.org/x/sys/unix"
)

// newMemory returns a file in memory without a name, which counts against the memory of this machine and not against
// the size of /dev/shm. If the system refuses, it returns a temporary file.
func newMemory() (*os.File, error) {
	fd, err := unix.MemfdCreate("brood-program", unix.MFD_CLOEXEC)
	if err != nil {
		return unnamedFile()
	}
	return os.NewFile(uintptr(fd), "brood-program"), nil
}

// memoryPath is where a program finds the file, which it inherits as descriptor 3.
const memoryPath = "/proc/self/fd/3"
