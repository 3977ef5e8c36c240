package kernel

import (
	"sync"

	"golang.org/x/sys/unix"
)

// grantAMX requests the permission to use tiles from the kernel, once per process.
var grantAMX = sync.OnceValue(func() bool {
	const requestPermission, tiles = 0x1023, 18 // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
	_, _, failed := unix.RawSyscall(unix.SYS_ARCH_PRCTL, requestPermission, tiles, 0)
	return failed == 0
})
