// Package typed marks errors of what a person typed: what any machine would refuse, such as an unknown name, a value
// out of its bounds or a schedule that does not parse. The command line ends with another status for them than for what
// failed here.
package typed

import (
	"errors"
	"fmt"
)

// marked says of the error that it holds whether it was typed.
type marked struct {
	error
	typed bool
}

func (m marked) Unwrap() error { return m.error }

// Typed is what [Is] asks errors of any package for.
func (m marked) Typed() bool { return m.typed }

// Errorf is [fmt.Errorf], marked.
func Errorf(format string, args ...any) error { return marked{fmt.Errorf(format, args...), true} }

// Error marks err; nil stays nil.
func Error(err error) error { return mark(err, true) }

// Recorded takes the mark off err, which came of what a file or another process holds and nobody typed here; nil stays
// nil.
func Recorded(err error) error { return mark(err, false) }

func mark(err error, typed bool) error {
	if err == nil {
		return nil
	}
	return marked{err, typed}
}

// Is says whether err is of what was typed: the outermost mark counts.
func Is(err error) bool {
	var m interface{ Typed() bool }
	return errors.As(err, &m) && m.Typed()
}
