//go:build unix && !linux

package program

import "os"

func newMemory() (*os.File, error) { return unnamedFile() }

// memoryPath is where a program finds the file, which it inherits as descriptor 3.
const memoryPath = "/dev/fd/3"
