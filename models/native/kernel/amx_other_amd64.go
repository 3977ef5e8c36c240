//go:build !linux

package kernel

// grantAMX returns false: tiles are supported on Linux only.
func grantAMX() bool { return false }
