//go:build !nogpu && (amd64 || arm64)

package clib

import "syscall"

func open(name string) (uintptr, error) {
	h, err := syscall.LoadLibrary(name)
	return uintptr(h), err
}
