package session

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// disk is the few calls that writing a log needs, so that tests can fill it up and tear its writes.
type disk interface {
	// open opens a file for writing and creates it when absent; empty also drops what it holds.
	open(path string, empty bool) (diskFile, error)
	remove(path string) error
	// syncDir makes the entries of a directory durable.
	syncDir(path string) error
}

// diskFile is a file being written. WriteAt may write less than asked only together with an error.
type diskFile interface {
	io.WriterAt
	Truncate(size int64) error
	Sync() error
	Close() error
}

// osDisk is the real one.
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
	// Windows, and some network file systems, cannot sync a directory; they need not.
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, os.ErrPermission) && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}
