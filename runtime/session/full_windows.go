package session

import (
	"errors"

	"golang.org/x/sys/windows"
)

// full reports whether an error means that the disk is full or a quota is exceeded.
func full(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL) ||
		errors.Is(err, windows.ERROR_DISK_QUOTA_EXCEEDED)
}
