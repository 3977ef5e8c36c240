//go:build !nogpu && (linux || darwin) && (amd64 || arm64)

package clib

import "github.com/ebitengine/purego"

func open(name string) (uintptr, error) {
	return purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
}
