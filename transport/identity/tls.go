package identity

import (
	"crypto/ed25519"
	"crypto/tls"
	"errors"
	"fmt"

	"brood/transport/wire"
)

// ALPN is the application protocol that both sides must offer.
const ALPN = "fleet/1"

// Server returns the configuration of the dialled side. It accepts every single ed25519 certificate: a Gate or a roster
// decides after the first message, so that the reason for a refusal can be sent.
func (k *Key) Server() *tls.Config {
	c := k.config(func(wire.NodeID) error { return nil })
	c.ClientAuth = tls.RequireAnyClientCert
	c.SessionTicketsDisabled = true
	return c
}

// Client returns the configuration to dial the node with the id pin.
func (k *Key) Client(pin wire.NodeID) *tls.Config {
	c := k.config(func(n wire.NodeID) error {
		if !n.Equal(pin) {
			return fmt.Errorf("the peer's key is %s, not %s as in the join URL or the roster: another program answers there, "+
				"or the server has a new key; ask for a new join URL", n.Short(), pin.Short())
		}
		return nil
	})
	c.InsecureSkipVerify = true // there is no certificate authority: VerifyConnection compares the key with the pin
	return c
}

func (k *Key) config(check func(wire.NodeID) error) *tls.Config {
	return &tls.Config{
		Certificates: []tls.Certificate{k.cert},
		MinVersion:   tls.VersionTLS13,
		NextProtos:   []string{ALPN},
		// VerifyPeerCertificate would be skipped on resumption.
		VerifyConnection: func(s tls.ConnectionState) error {
			n, err := Peer(s)
			if err != nil {
				return err
			}
			return check(n)
		},
	}
}

// Peer returns the node id of the other side of a connection.
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
