//go:build unix

package session

import (
	"errors"
	"syscall"
)

// full says whether an error means that space, not the disk, is missing.
func full(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
