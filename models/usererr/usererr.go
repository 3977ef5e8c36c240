// Package usererr marks usage errors: what every machine would reject, such as an unknown name, a value out of bounds
// or a schedule that does not parse. The command line exits with status 2 on them, and with 1 on other errors.
package usererr

import (
	"errors"
	"fmt"
)

// marked is an error with a mark: whether it is a usage error.
type marked struct {
	error
	usage bool
}

func (m marked) Unwrap() error { return m.error }

// UsageError reports whether the error is marked as a usage error. [Is] calls it on errors of any package.
func (m marked) UsageError() bool { return m.usage }

// Errorf returns the error of [fmt.Errorf], marked as a usage error.
func Errorf(format string, args ...any) error { return marked{fmt.Errorf(format, args...), true} }

// Error marks err as a usage error. It returns nil for nil.
func Error(err error) error { return mark(err, true) }

// Recorded removes the mark: the value that err rejects comes from a file or from another process. It returns nil for
// nil.
func Recorded(err error) error { return mark(err, false) }

func mark(err error, usage bool) error {
	if err == nil {
		return nil
	}
	return marked{err, usage}
}

// Is reports whether err is a usage error. The outermost mark counts.
func Is(err error) bool {
	var m interface{ UsageError() bool }
	return errors.As(err, &m) && m.UsageError()
}
