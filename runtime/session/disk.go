package session

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// disk is the file system as the log uses it. Tests replace it to simulate a full disk and incomplete writes.
type disk interface {
	// open opens a file for writing and creates it if it does not exist. If empty is set, it truncates the file.
	open(path string, empty bool) (diskFile, error)
	remove(path string) error
	// syncDir makes the entries of a directory durable.
	syncDir(path string) error
}

// diskFile is a file that is open for writing. WriteAt returns an error if it writes less than requested.
type diskFile interface {
	io.WriterAt
	Truncate(size int64) error
	Sync() error
	Close() error
}

// osDisk is the file system of the operating system.
type osDisk struct{}

func (osDisk) open(path string, empty bool) (diskFile, error) {
	flag := os.O_WRONLY | os.O_CREATE
	if empty {
		flag |= os.O_TRUNC
	}
	return os.OpenFile(path, flag, 0o600)
}

func (osDisk) remove(path string) error { return os.Remove(path) }

func (osDisk) syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	// Windows and some network file systems cannot sync a directory, and do not need to.
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, os.ErrPermission) || errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}
