package simulate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"brood/transport/identity"
	"brood/transport/quic"
	"brood/transport/wire"
)

// Loopback measures what a real connection costs the processor: two workers of this process swap vectors over QUIC on
// the loopback interface, for about so long. PerByte is the seconds that each spends on a byte that it sends or
// receives (half of the time for both), and Hop those of an empty message's way. Both are of the fastest fifth of
// swaps: other work on this machine is none of a fleet's.
func Loopback(ctx context.Context, long time.Duration) (perByte, hop float64, err error) {
	const bulk = 1 << 20
	var small, large []float64
	err = swaps(ctx, quic.Shape{}, func(swap func(bytes int) (float64, error)) error {
		for began := time.Now(); len(large) < 8 || time.Since(began) < long; {
			a, err := swap(1)
			if err != nil {
				return err
			}
			z, err := swap(bulk)
			if err != nil {
				return err
			}
			small, large = append(small, a), append(large, z)
		}
		return nil
	})
	if err != nil {
		return 0, 0, err
	}
	small, large = small[4:], large[4:] // connections have come up
	slices.Sort(small)
	slices.Sort(large)
	hop = small[len(small)/5]
	return max(0, large[len(large)/5]-hop) / bulk / 2, hop, nil
}

// swaps gives measure two workers of this process over a link of this shape, who send each other so many bytes at the
// same time: it says how long that takes.
func swaps(ctx context.Context, shape quic.Shape,
	measure func(swap func(bytes int) (seconds float64, err error)) error) (err error) {
	var nodes []*quic.Node
	defer func() {
		for _, n := range nodes {
			err = errors.Join(err, n.Close())
		}
	}()
	var meshes []*quic.Mesh
	var roster wire.Roster
	for i := range 2 {
		key, err := identity.New()
		if err != nil {
			return err
		}
		n, err := quic.Listen(quic.Config{Key: key, Address: "127.0.0.1:0"})
		if err != nil {
			return err
		}
		nodes = append(nodes, n)
		m, err := n.Mesh(wire.RunID{1})
		if err != nil {
			return err
		}
		meshes = append(meshes, m)
		roster = append(roster, wire.Contact{
			Index:     uint32(i),
			Node:      n.ID(),
			Addresses: []string{n.Address().String()},
			Name:      fmt.Sprint("worker ", i),
		})
	}
	var ends [2]*quic.Link
	for i, m := range meshes {
		if err := m.SetRoster(roster); err != nil {
			return err
		}
		if ends[i] = m.Link(uint32(i)); shape != (quic.Shape{}) {
			if err := m.Shape(uint32(i), uint32(1-i), shape); err != nil {
				return err
			}
		}
	}
	seq := uint64(0)
	return measure(func(bytes int) (float64, error) {
		seq++
		var each [2]error
		var both sync.WaitGroup
		began := time.Now()
		for i, l := range ends {
			p := make([]byte, bytes)
			both.Go(func() {
				each[i] = l.Send(1-i, 1, seq, "loopback", p)
				if each[i] == nil {
					_, _, _, each[i] = l.Recv(ctx, 1-i, 1)
				}
			})
		}
		both.Wait()
		return time.Since(began).Seconds(), errors.Join(each[:]...)
	})
}
