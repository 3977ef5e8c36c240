//go:build !nogpu && (linux || darwin || windows) && (amd64 || arm64)

package clib

import (
	"errors"
	"fmt"

	"github.com/ebitengine/purego"
)

// ErrNone means that none of the libraries can be loaded.
var ErrNone = errors.New("cannot be loaded")

// Load loads the first of some libraries that exists, for the life of the process, and sets each function that calls
// points to. It returns the name of the library that its error is about: ErrNone is about the first name; another error
// names the missing call.
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
	defer func() { // RegisterLibFunc reports errors by panics only
		if why := recover(); why != nil {
			err = fmt.Errorf("%v", why)
		}
	}()
	for call, f := range calls {
		purego.RegisterLibFunc(f, handle, call)
	}
	return name, nil
}
