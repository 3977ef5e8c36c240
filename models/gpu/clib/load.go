//go:build !nogpu && (linux || darwin || windows) && (amd64 || arm64)

package clib

import (
	"errors"
	"fmt"

	"github.com/ebitengine/purego"
)

// ErrNone means that none of the libraries can be opened here.
var ErrNone = errors.New("cannot be loaded")

// Load opens the first of some libraries that there is, for as long as the process lives, and points each function that
// calls names at the library's. It returns the name of the library that its error is about: ErrNone is about the first,
// and any other says which call the library lacks.
func Load(calls map[string]any, names ...string) (name string, err error) {
	var handle uintptr
	for _, name = range names {
		if handle, err = open(name); err == nil {
			break
		}
	}
	if err != nil {
		return names[0], ErrNone
	}
	defer func() { // RegisterLibFunc has no other way to say it
		if why := recover(); why != nil {
			err = fmt.Errorf("%v", why)
		}
	}()
	for call, f := range calls {
		purego.RegisterLibFunc(f, handle, call)
	}
	return name, nil
}
