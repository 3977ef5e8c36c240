// Package quic connects processes over QUIC. A Node owns one UDP socket. A Peer is a control connection to an admitted
// process, or to the one that admitted this process. A Mesh holds the links between workers. docs/wire-format.md
// specifies the protocol, docs/security.md the guarantees. It imports transport/wire and transport/identity only.
//
// A coordinator:
//
//	node, err := quic.Listen(quic.Config{Key: key, Address: ":4433", Admit: admit, Allow: allow})
//	for {
//		peer, err := node.Accept(ctx)          // after Hello, admit and Welcome
//		go func() {
//			for {
//				m, err := peer.Receive(ctx)    // kinds from wire.FirstKind on are the run's messages
//				...
//			}
//		}()
//		err = peer.Send(wire.Message{Kind: grant, Body: cbor}) // never waits
//	}
//
// Admit decides who may connect, usually with an identity.Gate; an error that is a wire.Refused is sent to the peer
// with its code. Allow reports which kinds of messages a role may send: a peer that sends another kind is cut with that
// reason.
//
// A worker:
//
//	node, err := quic.Listen(quic.Config{Key: key})
//	hello := wire.Hello{Role: wire.Worker, Token: join.Token, ...}
//	peer, welcome, err := node.Dial(ctx, join.Address, join.Server, hello)
//	mesh, err := node.Mesh(welcome.Run)
//	link := mesh.Link(welcome.Worker)           // collective.Link: Send never waits, Recv returns in order
//	m, err := peer.Receive(ctx)
//	if m.Kind == wire.KindRoster {
//		roster, err := wire.ParseRoster(m.Body)
//		err = mesh.SetRoster(roster)            // the node and addresses of each worker index
//	}
//
// The coordinator sends a roster with roster.Message(); it arrives in order with the other messages. It must be sent
// before any message that makes workers communicate. A worker's addresses are those in hello.Listen (from --advertise),
// then peer.Address(): it dials from the socket on which it listens. SetRoster ends the links of an index that has left
// or has another node; other links stay. A process that hosts several indices, such as a coordinator that hosts
// workers, asks for several links; frames between those stay in memory. A pair connects when one of its workers first
// sends to the other, or receives from it.
//
// Errors. Dial returns a wire.Refused if the other side refused (its Retry reports whether to retry), a *GoneError if
// the connection ended, and otherwise an error that includes the remedy. Err of a peer that is gone returns a
// *GoneError; callers may switch on its Cause. A link whose connection broke returns a *CutError from Send and Recv for
// every epoch that may have lost frames; a new epoch uses a new connection.
//
// Two workers that cannot reach each other connect through the coordinator's socket: see relay.go.
//
// A pair that is in use and does not connect within 10 s fails in the same way. A lost connection does not prove a
// death: the link between two workers may break while both are still connected to the coordinator.
//
// Time. Both sides send a heartbeat every 200 ms, and any packet counts as a sign of life. Without one the peer is
// Suspected within 1 s and gone (Silent) within 2 s. A process that restarts with the same key and port is detected
// with the first packet (Restarted).
//
// To simulate a slow network on one machine: node.Shaper().Set(address, quic.Shape{...}), at any time.
package quic
