// Package quic joins processes over QUIC: a Node owns one UDP socket, a Peer is somebody who was let in (or who let us
// in), and a Mesh is the links between workers. docs/wire-format.md says what travels, docs/security.md what is
// promised. It imports our transport/wire and transport/identity only.
//
// A coordinator:
//
//	node, err := quic.Listen(quic.Config{Key: key, Address: ":4433", Admit: admit, Allow: allow})
//	for {
//		peer, err := node.Accept(ctx)          // after Hello, admit and Welcome
//		go func() {
//			for {
//				m, err := peer.Receive(ctx)    // messages of kinds from wire.FirstKind on are the run's own
//				...
//			}
//		}()
//		err = peer.Send(wire.Message{Kind: grant, Body: cbor}) // never waits
//	}
//
// admit says who may come in, usually with an identity.Gate; an error that is a wire.Refused is told to the peer, with
// its code. allow says which kinds of messages a role may send: a peer that sends another is cut, with the reason.
//
// A worker:
//
//	node, err := quic.Listen(quic.Config{Key: key})
//	peer, welcome, err := node.Dial(ctx, join.Address, join.Server, wire.Hello{Role: wire.Worker, Token: join.Token, ...})
//	mesh, err := node.Mesh(welcome.Run)
//	link := mesh.Link(welcome.Worker)           // collective.Link: Send never waits, Recv returns in order
//	m, err := peer.Receive(ctx)
//	if m.Kind == wire.KindRoster {
//		roster, err := wire.ParseRoster(m.Body)
//		err = mesh.SetRoster(roster)            // who speaks for which index, and where
//	}
//
// The coordinator sends a roster with roster.Message(); it arrives in order with the other messages. It must be sent
// before anything that makes workers talk to each other. A worker's addresses are those of its hello.Listen (what
// --advertise says), then peer.Address(): its packets come from the socket on which it listens. An index whose node
// changes, or that is gone, loses its links; the others keep theirs. A process that speaks for several indices, such as
// a coordinator that hosts workers, asks for several links; between those, frames stay in memory.
//
// Errors. Dial returns a wire.Refused where the other side refused (its Retry says whether to try again), a *GoneError
// where it vanished, and otherwise an error that says what to do. A peer that is gone says why through Err: a
// *GoneError whose Cause the caller may switch on. A link whose connection broke returns a *CutError from Send and Recv
// for every epoch that may have lost frames; a new epoch heals it.
//
// A pair that is wanted and does not come up within 10 s fails in the same way. Not every loss of a connection is a
// death: the workers' links may break while both are still at the coordinator.
//
// Time. A heartbeat goes every 200 ms both ways, and any packet is a sign of life. Without one the peer is Suspected
// within 1 s and gone (Silent) within 2 s. A process that restarts with the same key and port is noticed at once
// (Restarted).
//
// A slow network can be felt on one machine: node.Shaper().Set(address, quic.Shape{...}), live.
package quic
