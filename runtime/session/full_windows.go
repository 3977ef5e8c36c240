package session

import (
	"errors"

	"golang.org/x/sys/windows"
)

// full says whether an error means that space, not the disk, is missing.
func full(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL) ||
		errors.Is(err, windows.ERROR_DISK_QUOTA_EXCEEDED)
}
