package kernel

import (
	"sync"

	"golang.org/x/sys/unix"
)

// grantAMX asks the kernel, once, for the state of tiles, which it gives no process that did not ask.
var grantAMX = sync.OnceValue(func() bool {
	const requestPermission, tiles = 0x1023, 18 // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
	_, _, failed := unix.RawSyscall(unix.SYS_ARCH_PRCTL, requestPermission, tiles, 0)
	return failed == 0
})
