package quic

import (
	"encoding/binary"
	"net"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// TestBatchesStayWhole: a batch on a link without a shape, or whose shape was removed, takes one call, whatever shapes
// other links have.
func TestBatchesStayWhole(t *testing.T) {
	n := newNode(t, nil)
	u := n.conn.(*udpSocket)
	batch := make([]byte, syscall.CmsgSpace(2)) // three packets of 1,000 bytes
	h := (*syscall.Cmsghdr)(unsafe.Pointer(&batch[0]))
	h.Level, h.Type = syscall.IPPROTO_UDP, udpSegment
	h.SetLen(syscall.CmsgLen(2))
	binary.NativeEndian.PutUint16(batch[syscall.CmsgLen(0):], 1000)
	calls, write := 0, n.shaper.write
	n.shaper.write = func(b, oob []byte, to net.Addr) error {
		calls++
		return write(b, oob, to)
	}
	other, to := &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9}, n.Address().(*net.UDPAddr)
	for _, c := range []struct {
		what string
		set  func()
		want int
	}{
		{"nothing is shaped", func() {}, 1},
		{"another link is", func() { n.shaper.set(other, Shape{Rate: 1000}) }, 1},
		{"this one is", func() { n.shaper.set(to, Shape{Delay: time.Hour}) }, 0},
		{"and is not any more", func() {
			n.shaper.unset(to)
			n.shaper.lines[addrPort(to)].due = time.Time{} // its packets have arrived
		}, 1},
	} {
		c.set()
		calls = 0
		if _, _, err := u.WriteMsgUDP(make([]byte, 3000), batch, to); err != nil || calls != c.want {
			t.Errorf("%s: %d calls, %v, want %d", c.what, calls, err, c.want)
		}
	}
}
