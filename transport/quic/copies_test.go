package quic

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestTimesFor: as many copies as leave a share of 0.3 %, at most three.
func TestTimesFor(t *testing.T) {
	for _, c := range []struct {
		lossy       float64
		times, want int
	}{{0.001, 1, 1}, {0.01, 1, 2}, {0.05, 1, 2}, {0.06, 1, 3}, {0.1, 1, 3}, {0.5, 1, 3}, {0.01, 2, 3}, {0.002, 2, 2}} {
		if n := timesFor(c.lossy, c.times); n != c.want {
			t.Errorf("%g lost with %d: %d, want %d", c.lossy, c.times, n, c.want)
		}
	}
}

// judged simulates a policy on a line, in half seconds of 300 packets, and returns how many times packets were written.
func judged(seconds int, p *copyPolicy, now *time.Time, rtt time.Duration, lost func(times int) uint64) []int {
	var out []int
	times := max(1, p.times)
	for range 2 * seconds {
		*now = now.Add(adaptEvery)
		times = p.judge(*now, lost(times), 300, rtt, 40*time.Millisecond)
		out = append(out, times)
	}
	return out
}

// TestCopyPolicy: copies follow random losses, end some time after these, and are neither begun on a line whose packets
// queue nor kept where they do not help.
func TestCopyPolicy(t *testing.T) {
	now := time.Unix(0, 0)
	p := &copyPolicy{}
	random := func(times int) uint64 { return []uint64{0, 30, 3, 0}[times] } // 10 %
	none := func(int) uint64 { return 0 }
	if got := judged(20, p, &now, 41*time.Millisecond, random); got[0] != 3 || slices.Min(got[2:15]) != 3 {
		t.Errorf("with 10 %% of random losses: %v", got)
	}
	if got := judged(120, p, &now, 41*time.Millisecond, none); got[len(got)-1] != 1 || got[5] == 1 {
		t.Errorf("after the losses have ended: %v", got)
	}
	if got := judged(5, &copyPolicy{}, &now, 80*time.Millisecond, random); slices.Max(got) != 1 {
		t.Errorf("while packets queue: %v", got)
	}
	full := func(int) uint64 { return 15 }
	if got := judged(60, &copyPolicy{}, &now, 41*time.Millisecond, full); got[0] != 2 || slices.Max(got[8:]) != 1 {
		t.Errorf("on a line that loses as much with copies: %v", got)
	}
	if got := judged(5, &copyPolicy{}, &now, 41*time.Millisecond, none); slices.Max(got) != 1 {
		t.Errorf("without losses: %v", got)
	}
}

// TestCopies: on a line of 40 ms that loses a tenth of the packets, an exchange takes at most four times as long as
// without losses, through the relay at most six times, and the bytes of copies are counted.
func TestCopies(t *testing.T) {
	for _, relayed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			up := relayed
			net := walled(8, func() bool { return up })
			open := net.open(t)
			hub := open(0)
			f := relayedFleet(t, hub, open, 2, !relayed)
			seq := uint64(0)
			median := func(n int) time.Duration {
				var all []time.Duration
				for range n {
					seq++
					began := time.Now()
					for i, l := range f.links {
						send(t, l, 1-i, 1, seq, "op", payloadOf(int(seq), 50<<10))
					}
					for i, l := range f.links {
						recv(t, l, 1-i, 1, seq, payloadOf(int(seq), 50<<10))
					}
					all = append(all, time.Since(began))
				}
				all = all[n/2:] // the first half of the time it adapts
				slices.Sort(all)
				return all[len(all)/2]
			}
			median(1)
			net.set(func() { net.delay = 20 * time.Millisecond })
			clean := median(40)
			net.set(func() { net.loss = 0.1 })
			lossy := median(120)
			if lossy > map[bool]time.Duration{false: 4, true: 6}[relayed]*clean { // a relayed packet passes two such lines
				t.Errorf("relayed %v: an exchange takes %s without losses and %s with a tenth lost", relayed, clean, lossy)
			}
			if s := connected(t, pairOf(f, 0, 0, 1)); s.copied.Load() == 0 || f.meshes[0].Totals().Sent <= s.copied.Load() {
				t.Errorf("relayed %v: %d bytes of copies, of %d sent", relayed, s.copied.Load(), f.meshes[0].Totals().Sent)
			}
			t.Logf("relayed %v: %s, with losses %s", relayed, clean, lossy)
			f.close(t)
			if err := hub.Close(); err != nil {
				t.Error(err)
			}
			net.close(t)
		})
	}
}
