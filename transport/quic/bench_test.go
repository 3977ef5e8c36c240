package quic

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	quicgo "github.com/quic-go/quic-go"
)

type rawEnd struct {
	conn *quicgo.Conn
	out  *quicgo.SendStream
	in   *quicgo.ReceiveStream
}

// rawPair returns two ends of plain quic-go with the same settings, certificates and sockets, and a long-lived stream
// in each direction.
func rawPair(b testing.TB) (here, there rawEnd) {
	b.Helper()
	ctx := bounded(b)
	open := func() *quicgo.Transport {
		c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			b.Fatal(err)
		}
		t := &quicgo.Transport{Conn: c}
		b.Cleanup(func() { _ = t.Close(); _ = c.Close() })
		return t
	}
	server, client, key := open(), open(), newKey(b)
	l, err := server.Listen(key.Server(), quicConfig())
	if err != nil {
		b.Fatal(err)
	}
	c, err := client.Dial(ctx, server.Conn.LocalAddr(), newKey(b).Client(key.Node()), quicConfig())
	if err != nil {
		b.Fatal(err)
	}
	s, err := l.Accept(ctx)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.CloseWithError(0, ""); _ = s.CloseWithError(0, "") })
	join := func(from, to *quicgo.Conn) (*quicgo.SendStream, *quicgo.ReceiveStream) {
		out, err := from.OpenUniStreamSync(ctx)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := out.Write([]byte{1}); err != nil {
			b.Fatal(err)
		}
		in, err := to.AcceptUniStream(ctx)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(in, make([]byte, 1)); err != nil {
			b.Fatal(err)
		}
		return out, in
	}
	here.conn, there.conn = c, s
	here.out, there.in = join(c, s)
	there.out, here.in = join(s, c)
	return here, there
}

const bulk = 64 << 20

// BenchmarkBulk measures 64 MiB from one worker to another, directly and through the coordinator, in turn with a stream
// of plain quic-go, so that all run under the same load. The ratios are of the medians.
func BenchmarkBulk(b *testing.B) {
	payload, buf := make([]byte, bulk), make([]byte, bulk)
	here, there := rawPair(b)
	raw := func() {
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := here.out.Write(payload); err != nil {
				b.Error(err)
			}
		})
		if _, err := io.ReadFull(there.in, buf); err != nil {
			b.Fatal(err)
		}
		wg.Wait()
	}
	sends := func(f *fleet) func() {
		seq := uint64(0)
		return func() {
			seq++
			if err := f.links[0].Send(1, 1, seq, "bulk", payload); err != nil {
				b.Fatal(err)
			}
			if s, _, p, err := f.links[1].Recv(context.Background(), 0, 1); err != nil || s != seq || len(p) != bulk {
				b.Fatal(s, len(p), err)
			}
		}
	}
	hub, direct := admitAll(b), newFleet(b, onLoopback(b), 1, 1)
	defer direct.close(b)
	far := relayedFleet(b, hub, onLoopback(b), 2, false)
	defer far.close(b)
	link, relayed := sends(direct), sends(far)
	raw()
	link() // connects
	relayed()
	var raws, links, relays []time.Duration
	took := func(f func()) time.Duration {
		began := time.Now()
		f()
		return time.Since(began)
	}
	b.ResetTimer()
	for b.Loop() {
		raws, links, relays = append(raws, took(raw)), append(links, took(link)), append(relays, took(relayed))
	}
	b.StopTimer()
	slices.Sort(raws)
	slices.Sort(links)
	slices.Sort(relays)
	rate := func(d time.Duration) float64 { return bulk / d.Seconds() / 1e6 }
	r, l := rate(raws[len(raws)/2]), rate(links[len(links)/2])
	b.ReportMetric(r, "raw-MB/s")
	b.ReportMetric(l, "link-MB/s")
	b.ReportMetric(l/r, "ratio")
	b.ReportMetric(rate(relays[len(relays)/2])/r, "relayed-ratio")
	b.ReportMetric(float64(direct.meshes[0].Pairs()[0].Lanes), "lanes")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkRoundTrip measures a small request and its answer, compared with long-lived streams of plain quic-go.
func BenchmarkRoundTrip(b *testing.B) {
	for _, size := range []int{64, 4096} {
		b.Run(fmt.Sprintf("raw/%d", size), func(b *testing.B) {
			here, there := rawPair(b)
			payload, back := make([]byte, size), make([]byte, size)
			var wg sync.WaitGroup
			wg.Go(func() {
				buf := make([]byte, size)
				for {
					if _, err := io.ReadFull(there.in, buf); err != nil {
						return
					}
					if _, err := there.out.Write(buf); err != nil {
						return
					}
				}
			})
			var all []time.Duration
			b.ResetTimer()
			for b.Loop() {
				began := time.Now()
				if _, err := here.out.Write(payload); err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadFull(here.in, back); err != nil {
					b.Fatal(err)
				}
				all = append(all, time.Since(began))
			}
			b.StopTimer()
			here.in.CancelRead(0)
			_ = here.out.Close()
			wg.Wait()
			quantiles(b, all)
		})
		b.Run(fmt.Sprintf("link/%d", size), func(b *testing.B) {
			f := newFleet(b, onLoopback(b), 1, 1)
			ctx, cancel := context.WithCancel(context.Background())
			var wg sync.WaitGroup
			wg.Go(func() {
				for {
					seq, op, p, err := f.links[1].Recv(ctx, 0, 1)
					if err != nil {
						return
					}
					if err := f.links[1].Send(0, 1, seq, op, p); err != nil {
						return
					}
				}
			})
			defer f.close(b)
			defer wg.Wait()
			defer cancel()
			seq := uint64(0)
			once := func() {
				seq++
				if err := f.links[0].Send(1, 1, seq, "op", make([]byte, size)); err != nil {
					b.Fatal(err)
				}
				if s, _, _, err := f.links[0].Recv(ctx, 1, 1); err != nil || s != seq {
					b.Fatal(s, err)
				}
			}
			once()
			var all []time.Duration
			b.ResetTimer()
			for b.Loop() {
				began := time.Now()
				once()
				all = append(all, time.Since(began))
			}
			b.StopTimer()
			quantiles(b, all)
		})
	}
}

func quantiles(b *testing.B, all []time.Duration) {
	slices.Sort(all)
	b.ReportMetric(0, "ns/op")
	at := func(q float64) float64 { return float64(all[int(q*float64(len(all)-1))].Nanoseconds()) / 1000 }
	b.ReportMetric(at(0.5), "p50-us")
	b.ReportMetric(at(0.99), "p99-us")
}

// BenchmarkHeartbeat measures the round trip of heartbeats of a control connection, idle and while bulk flows between
// two workers of the same processes.
func BenchmarkHeartbeat(b *testing.B) {
	for _, loaded := range []bool{false, true} {
		b.Run(map[bool]string{false: "idle", true: "bulk"}[loaded], func(b *testing.B) {
			f := newFleet(b, func(int) *Node {
				n, err := Listen(Config{Key: newKey(b), Address: "127.0.0.1:0", Admit: welcome})
				if err != nil {
					b.Fatal(err)
				}
				return n
			}, 1, 1)
			defer f.close(b)
			p, _ := pairUp(b, f.nodes[0], f.nodes[1])
			ctx, cancel := context.WithCancel(context.Background())
			var wg sync.WaitGroup
			defer wg.Wait()
			defer cancel()
			if loaded {
				payload := make([]byte, 16<<20)
				wg.Go(func() {
					for seq := uint64(1); ctx.Err() == nil; seq++ {
						if err := f.links[0].Send(1, 1, seq, "bulk", payload); err != nil {
							b.Error(err)
							return
						}
						if _, _, _, err := f.links[1].Recv(ctx, 0, 1); err != nil {
							return
						}
					}
				})
			}
			var all []time.Duration
			for b.Loop() {
				p.c.pulse.mu.Lock()
				p.c.pulse.rtt = 0
				p.c.pulse.mu.Unlock()
				if err := p.c.pulse.send(beatNow(p.c)); err != nil {
					b.Fatal(err)
				}
				for p.Stats().RTT == 0 {
					time.Sleep(100 * time.Microsecond)
				}
				all = append(all, p.Stats().RTT)
				time.Sleep(2 * time.Millisecond)
			}
			b.StopTimer()
			quantiles(b, all)
		})
	}
}

// BenchmarkLossyExchange measures how long two workers take to send each other a message over a line of 40 ms that loses
// packets.
func BenchmarkLossyExchange(b *testing.B) {
	for _, size := range []int{50 << 10, 1 << 20} {
		for _, loss := range []float64{0, 0.01, 0.05, 0.1} {
			b.Run(fmt.Sprintf("%dKiB-%g%%", size>>10, 100*loss), func(b *testing.B) {
				f := newFleet(b, onLoopback(b), 1, 1)
				defer f.close(b)
				for i, m := range f.meshes {
					shape := Shape{Delay: 20 * time.Millisecond, Loss: loss}
					if err := m.Shape(uint32(i), uint32(1-i), shape); err != nil {
						b.Fatal(err)
					}
				}
				var took []time.Duration
				for b.Loop() {
					began := time.Now()
					for i, l := range f.links {
						send(b, l, 1-i, 1, uint64(len(took)+1), "op", make([]byte, size))
					}
					for i, l := range f.links {
						if _, _, _, err := l.Recv(context.Background(), 1-i, 1); err != nil {
							b.Fatal(err)
						}
					}
					took = append(took, time.Since(began))
				}
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2].Microseconds())/1e3, "median-ms")
				b.ReportMetric(float64(took[len(took)*9/10].Microseconds())/1e3, "p90-ms")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
