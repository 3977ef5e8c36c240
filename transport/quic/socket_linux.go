package quic

import (
	"encoding/binary"
	"syscall"
)

const udpSegment = 103 // UDP_SEGMENT of linux/udp.h

// segments extracts the packet size of a batch from the control messages of a write and returns the other messages;
// size 0 is a single packet.
func segments(oob []byte) (size int, rest []byte) {
	messages, err := syscall.ParseSocketControlMessage(oob)
	if err != nil {
		return 0, oob
	}
	for _, m := range messages {
		n := min(syscall.CmsgSpace(len(m.Data)), len(oob))
		if m.Header.Level == syscall.IPPROTO_UDP && m.Header.Type == udpSegment && len(m.Data) >= 2 {
			size = int(binary.NativeEndian.Uint16(m.Data))
		} else {
			rest = append(rest, oob[:n]...)
		}
		oob = oob[n:]
	}
	return size, rest
}
