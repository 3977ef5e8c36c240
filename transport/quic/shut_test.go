package quic

import (
	"net"
	"testing"
	"time"

	"brood/transport/wire"
)

// TestShut: the machine of a process that is gone says so at once; one whose process lives, however silent, does not,
// and the process goes on as before.
func TestShut(t *testing.T) {
	server, client := openHouse(t), newNode(t, nil)
	address := server.Address().String()
	for range 3 {
		if Shut(t.Context(), address) {
			t.Fatal("a node that listens is taken for gone")
		}
	}
	dial(t, client, server, wire.Hello{Role: wire.Worker})
	accept(t, server)
	silent, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if Shut(t.Context(), silent.LocalAddr().String()) {
		t.Error("who is silent is taken for gone")
	}
	if err := silent.Close(); err != nil {
		t.Fatal(err)
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	for _, gone := range []string{silent.LocalAddr().String(), address} {
		if began := time.Now(); !Shut(t.Context(), gone) {
			t.Errorf("nothing listens at %s, and after %s that is not known", gone, time.Since(began))
		}
	}
	for _, wrong := range []string{"127.0.0.1", "no-such-host.invalid:1"} {
		if Shut(t.Context(), wrong) {
			t.Errorf("%q is taken for a port that nobody has", wrong)
		}
	}
}
