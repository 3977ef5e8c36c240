//go:build unix

package session

import (
	"errors"
	"syscall"
)

// full reports whether an error means that the disk is full or a quota is exceeded.
func full(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
