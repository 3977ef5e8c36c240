package kernel

import (
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// guarded returns n floats that end at an inaccessible page; the page before the first one is inaccessible too.
func guarded(t testing.TB, n int) []float32 {
	t.Helper()
	const page = 4096
	size := (n*4 + page - 1) &^ (page - 1)
	m, err := unix.Mmap(-1, 0, size+2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatalf("map %d bytes: %v", size, err)
	}
	t.Cleanup(func() { unix.Munmap(m) })
	for _, p := range [][]byte{m[:page], m[page+size:]} {
		if err := unix.Mprotect(p, unix.PROT_NONE); err != nil {
			t.Fatalf("protect a page: %v", err)
		}
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(m[page+size-4*n:]))), n)
}
