package simulate

import (
	"math"
	"testing"
	"time"
)

// TestLossLimitsTheRate: packet loss limits each connection of a pair. A pair has eight connections if the delay or the
// loss is large, otherwise one, and a frame in one piece uses one.
func TestLossLimitsTheRate(t *testing.T) {
	each := func(rtt, loss float64) float64 { return math.Sqrt(1.5/loss) * packetBytes / rtt }
	for _, c := range []struct {
		what string
		link Link
		size float64
		want float64
	}{
		{"far and lossy", Link{Delay: 20 * time.Millisecond, Loss: .001}, 16 << 20, 8 * each(.04, .001)},
		{"a frame of three pieces", Link{Delay: 20 * time.Millisecond, Loss: .001}, 2<<20 + 1, 3 * each(.04, .001)},
		{"a frame of one piece", Link{Delay: 20 * time.Millisecond, Loss: .001}, 1 << 20, each(.04, .001)},
		{"an empty frame", Link{Delay: 20 * time.Millisecond, Loss: .001}, 0, each(.04, .001)},
		{"a lower rate", Link{Rate: 1e6, Delay: 20 * time.Millisecond, Loss: .001}, 16 << 20, 1e6},
		{"far, little loss", Link{Delay: 15 * time.Millisecond, Loss: .0001}, 16 << 20, 8 * each(.03, .0001)},
		{"nearer, little loss", Link{Delay: 5 * time.Millisecond, Loss: .0001}, 16 << 20, each(.01, .0001)},
		{"nearer, more loss", Link{Delay: 5 * time.Millisecond, Loss: .001}, 16 << 20, 8 * each(.01, .001)},
		{"in the same room", Link{Delay: 400 * time.Microsecond, Loss: .01}, 16 << 20, each(.0008, .01)},
		{"without a delay", Link{Rate: 5e6, Loss: .01}, 16 << 20, 5e6},
		{"without loss", Link{Rate: 5e6, Delay: time.Second}, 16 << 20, 5e6},
	} {
		if got := c.link.rate(c.size); math.Abs(got/c.want-1) > 1e-12 {
			t.Errorf("%s: %g bytes per second, want %g", c.what, got, c.want)
		}
	}
}
