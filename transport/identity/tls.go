package identity

import (
	"crypto/ed25519"
	"crypto/tls"
	"errors"
	"fmt"

	"brood/transport/wire"
)

// ALPN is the protocol that both sides must name.
const ALPN = "fleet/1"

// Server is the configuration of a side that is dialled. Every peer must show one ed25519 certificate, whosever: a Gate
// or a roster decides once it has said what it wants, so that it can be told why not.
func (k *Key) Server() *tls.Config {
	c := k.config(func(wire.NodeID) error { return nil })
	c.ClientAuth = tls.RequireAnyClientCert
	c.SessionTicketsDisabled = true
	return c
}

// Client is the configuration to dial the node that has this pin.
func (k *Key) Client(pin wire.NodeID) *tls.Config {
	c := k.config(func(n wire.NodeID) error {
		if !n.Equal(pin) {
			return fmt.Errorf("the peer's key is %s, not %s as the join URL or the roster says: another program answers there, or the server has a new key; ask for a new join URL", n.Short(), pin.Short())
		}
		return nil
	})
	c.InsecureSkipVerify = true // no authority: VerifyConnection compares the key with the pin
	return c
}

func (k *Key) config(check func(wire.NodeID) error) *tls.Config {
	return &tls.Config{
		Certificates: []tls.Certificate{k.cert},
		MinVersion:   tls.VersionTLS13,
		NextProtos:   []string{ALPN},
		// Not VerifyPeerCertificate, which resumption skips.
		VerifyConnection: func(s tls.ConnectionState) error {
			n, err := Peer(s)
			if err != nil {
				return err
			}
			return check(n)
		},
	}
}

// Peer is the node at the other side of a connection.
func Peer(s tls.ConnectionState) (wire.NodeID, error) {
	if s.NegotiatedProtocol != ALPN {
		return wire.NodeID{}, fmt.Errorf("the peer speaks %q, not %q", wire.CleanText(s.NegotiatedProtocol), ALPN)
	}
	switch n := len(s.PeerCertificates); {
	case n == 0:
		return wire.NodeID{}, errors.New("the peer shows no certificate")
	case n > 1:
		return wire.NodeID{}, fmt.Errorf("the peer shows a chain of %d certificates, not one", n)
	}
	public, ok := s.PeerCertificates[0].PublicKey.(ed25519.PublicKey)
	if !ok {
		return wire.NodeID{}, fmt.Errorf("the peer's key is %s, not ed25519", s.PeerCertificates[0].PublicKeyAlgorithm)
	}
	return NodeOf(public), nil
}
