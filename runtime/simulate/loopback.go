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

// Loopback measures the costs of a real connection: two workers of this process swap vectors over QUIC on the loopback
// interface for about the duration long. perByte is the time in seconds that a worker spends on each byte that it sends
// or receives, half of the time for both; hop is the time of an empty message. Both are the 20th percentile of the
// swaps, since other processes may use this machine.
func Loopback(ctx context.Context, long time.Duration) (perByte, hop float64, err error) {
	const bulk = 1 << 20
	var small, large []float64
	err = swaps(ctx, func(swap func(bytes int) (float64, error)) error {
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
	small, large = small[4:], large[4:] // the first swaps establish the connections
	slices.Sort(small)
	slices.Sort(large)
	hop = small[len(small)/5]
	return max(0, large[len(large)/5]-hop) / bulk / 2, hop, nil
}

// swaps calls measure with a function that lets two workers of this process send each other a number of bytes at the
// same time, and returns the duration.
func swaps(ctx context.Context, measure func(swap func(bytes int) (seconds float64, err error)) error) (err error) {
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
		roster = append(roster, wire.PeerAddress{
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
		ends[i] = m.Link(uint32(i))
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
