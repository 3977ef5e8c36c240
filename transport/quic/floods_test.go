package quic

import (
	"context"
	"errors"
	"net"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	quicgo "github.com/quic-go/quic-go"

	"brood/models/longtest"
	"brood/transport/wire"
)

// growth returns the largest growth of live heap and stacks while f runs, in bytes. Garbage is not counted: its amount
// depends on the collector's share of time.
func growth(f func()) uint64 {
	held := func() uint64 {
		s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
		metrics.Read(s)
		return s[0].Value.Uint64() + s[1].Value.Uint64()
	}
	runtime.GC()
	before, most := held(), uint64(0)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			most = max(most, held())
			select {
			case <-stop:
				return
			case <-time.After(3 * time.Millisecond):
			}
		}
	}()
	f()
	close(stop)
	<-stopped
	return most - min(most, before)
}

const maxGrowth = 64 << 20

// TestFloods: floods cost bounded memory and end, and other peers are still admitted.
func TestFloods(t *testing.T) {
	longtest.Need(t, longtest.Fleets, "floods of streams, messages and handshakes")
	s := newScenery(t)
	round := 0
	check := func(name string, f func()) {
		t.Helper()
		if n := growth(f); n > maxGrowth {
			t.Errorf("%s: memory grows by %d MiB", name, n>>20)
		}
		round++
		s.expectUndisturbed(t, round)
	}
	check("10,000 streams", func() {
		a, p := s.asWorker(t)
		opened := 0
		for range 10_000 {
			if st, err := a.conn.OpenUniStream(); err == nil {
				opened++
				_, _ = st.Write([]byte{'B'})
			}
			if _, err := a.conn.OpenStream(); err == nil {
				opened++
			}
		}
		if opened > 3+maxConversations {
			t.Errorf("%d streams were opened", opened)
		}
		p.Close("")
	})
	check("a peer that never reads", func() {
		_, p := s.asWorker(t)
		var err error
		sent := 0
		for ; err == nil && sent < 1000; sent++ {
			err = p.Send(wire.Message{Kind: commands, Body: make([]byte, 256<<10)})
		}
		if g, ok := errors.AsType[*GoneError](err); !ok || g.Cause != Broken ||
			!strings.Contains(g.Reason, "it does not read") || sent < 60 || sent > 200 {
			t.Errorf("after %d messages: %v", sent, err)
		}
	})
	check("messages that are not received", func() { // the run is busy: the peer must wait without being cut
		a, p := s.asWorker(t)
		f, _ := wire.Marshal(wire.Header{}, wire.Message{Kind: fromWorkers, Body: make([]byte, 1<<20)})
		rest, taken := f, 0
		until(t, "a full line", func() bool {
			_ = a.stream.SetWriteDeadline(time.Now().Add(time.Second))
			n, err := a.stream.Write(rest)
			if taken, rest = taken+n, rest[n:]; len(rest) == 0 {
				rest = f
			}
			// The second limit is reached first on a slow machine.
			return p.Err() != nil || taken > 100<<20 || err != nil && n == 0 && taken > 10<<20
		})
		if taken < 10<<20 || taken > 60<<20 || p.Err() != nil {
			t.Errorf("%d MiB were taken: %v", taken>>20, p.Err())
		}
		p.Close("")
	})
	check("slow-loris", func() {
		var all []*attacker
		for range 40 {
			a, err := s.attack(t, s.server, nil)
			if err != nil {
				continue
			}
			all = append(all, a.write([]byte("BRWF\x02\x01")))
		}
		_, p := s.asWorker(t) // others are still admitted
		p.Close("")
		for _, a := range all {
			if err := a.end(); err == nil {
				t.Error("it may wait for ever")
			}
		}
	})
	check("an Initial flood", func() {
		// From sockets that receive nothing, so that no handshake finishes.
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		deaf := make([]*quicgo.Transport, 8)
		for i := range deaf {
			c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
			if err != nil {
				t.Fatal(err)
			}
			deaf[i] = &quicgo.Transport{Conn: &deafSocket{PacketConn: c, closed: make(chan struct{})}}
		}
		var wg sync.WaitGroup
		for i := range 400 {
			wg.Go(func() {
				_, _ = deaf[i%len(deaf)].Dial(ctx, s.server.Address(), s.key.Client(s.server.ID()), quicConfig())
			})
		}
		until(t, "the flood", func() bool { return s.server.strangers.count() >= suspicious })
		if n := s.server.strangers.count(); n > maxStrangers {
			t.Errorf("%d strangers at once", n)
		}
		_, p := s.asWorker(t) // a client that owns its address is still admitted
		p.Close("")
		cancel()
		wg.Wait()
		for _, d := range deaf {
			_ = d.Close()
			_ = d.Conn.Close()
		}
	})
	silent := func() {
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		var begun, shut atomic.Int64
		for range 8 { // each opens a connection every 48 ms
			wg.Go(func() {
				flood := newNode(t, nil)
				tick := time.NewTicker(48 * time.Millisecond)
				defer tick.Stop()
				for ctx.Err() == nil {
					wg.Go(func() {
						conn, err := flood.transport.Dial(ctx, s.server.Address(), s.key.Client(s.server.ID()), quicConfig())
						if err != nil {
							return
						}
						begun.Add(1)
						select {
						case <-conn.Context().Done():
							shut.Add(1)
						case <-ctx.Done():
							_ = conn.CloseWithError(0, "")
						}
					})
					<-tick.C
				}
			})
		}
		until(t, "the flood", func() bool { return shut.Load() > 0 && begun.Load() > maxShare })
		for range 5 { // clients with a token, from the same address
			one, stop := context.WithTimeout(t.Context(), patience)
			p, _, err := newNode(t, nil).Dial(one, s.server.Address().String(), s.server.ID(),
				wire.Hello{Role: wire.Worker, Token: s.token})
			if err != nil {
				t.Error(err)
			} else {
				accept(t, s.server).Close("")
				p.Close("")
			}
			stop()
		}
		if n := s.server.strangers.count(); n > maxShare {
			t.Errorf("%d strangers of one address", n)
		}
		cancel()
		wg.Wait()
	}
	if longtest.On(longtest.Fleets) {
		check("10,000 silent connections a minute from one address", silent)
	}
	check("a claimed message of 8 GiB, and 2,000 begun", func() {
		a := s.asPair(t)
		stream := a.uni()
		mib := make([]byte, shard)
		_ = stream.SetWriteDeadline(time.Now().Add(time.Second))
		for i := range uint64(2000) {
			if _, err := stream.Write(frameOf(data(func(h *wire.Header) { h.Total, h.Order = 8<<30, i+1 }), mib)); err != nil {
				break
			}
		}
		if p := pairOf(s.fleet, 1, 1, 0).stats(); p.Parked > maxParked {
			t.Errorf("%+v", p)
		}
		_ = a.conn.CloseWithError(0, "")
	})
}

// deafSocket sends and receives nothing.
type deafSocket struct {
	net.PacketConn
	closed chan struct{}
	once   sync.Once
}

func (d *deafSocket) ReadFrom([]byte) (int, net.Addr, error) {
	<-d.closed
	return 0, nil, net.ErrClosed
}

func (d *deafSocket) SetReadDeadline(time.Time) error {
	d.once.Do(func() { close(d.closed) })
	return nil
}
