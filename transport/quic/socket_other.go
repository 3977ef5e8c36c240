//go:build !linux

package quic

// segments returns size 0: only Linux sends batches.
func segments(oob []byte) (size int, rest []byte) { return 0, oob }
