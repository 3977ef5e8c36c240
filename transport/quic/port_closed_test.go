package quic

import (
	"net"
	"testing"
	"time"

	"brood/transport/wire"
)

// TestPortClosed: the port of an ended process is reported as closed at once; the port of a live process, even a silent
// one, is not, and the process is unaffected.
func TestPortClosed(t *testing.T) {
	server, client := admitAll(t), newNode(t, nil)
	address := server.Address().String()
	for range 3 {
		if PortClosed(t.Context(), address) {
			t.Fatal("a node that listens is taken for gone")
		}
	}
	dial(t, client, server, wire.Hello{Role: wire.Worker})
	accept(t, server)
	silent, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if PortClosed(t.Context(), silent.LocalAddr().String()) {
		t.Error("who is silent is taken for gone")
	}
	if err := silent.Close(); err != nil {
		t.Fatal(err)
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	for _, gone := range []string{silent.LocalAddr().String(), address} {
		if began := time.Now(); !PortClosed(t.Context(), gone) {
			t.Errorf("nothing listens at %s, but PortClosed reports false after %s", gone, time.Since(began))
		}
	}
	for _, wrong := range []string{"127.0.0.1", "no-such-host.invalid:1"} {
		if PortClosed(t.Context(), wrong) {
			t.Errorf("%q is reported as a closed port", wrong)
		}
	}
}
