package simulate

import (
	"math"
	"testing"
	"time"
)

// TestLossLimitsTheRate: where packets are lost a pair gets through what its connections do, which are eight where that
// is far or much and one where it is near; of a frame in one piece, one does.
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
		{"one of one", Link{Delay: 20 * time.Millisecond, Loss: .001}, 1 << 20, each(.04, .001)},
		{"and an empty one", Link{Delay: 20 * time.Millisecond, Loss: .001}, 0, each(.04, .001)},
		{"and slower than that", Link{Rate: 1e6, Delay: 20 * time.Millisecond, Loss: .001}, 16 << 20, 1e6},
		{"far, and little is lost", Link{Delay: 15 * time.Millisecond, Loss: .0001}, 16 << 20, 8 * each(.03, .0001)},
		{"nearer, and little is lost", Link{Delay: 5 * time.Millisecond, Loss: .0001}, 16 << 20, each(.01, .0001)},
		{"nearer, and more", Link{Delay: 5 * time.Millisecond, Loss: .001}, 16 << 20, 8 * each(.01, .001)},
		{"in the same room", Link{Delay: 400 * time.Microsecond, Loss: .01}, 16 << 20, each(.0008, .01)},
		{"without a delay", Link{Rate: 5e6, Loss: .01}, 16 << 20, 5e6},
		{"without loss", Link{Rate: 5e6, Delay: time.Second}, 16 << 20, 5e6},
	} {
		if got := c.link.rate(c.size); math.Abs(got/c.want-1) > 1e-12 {
			t.Errorf("%s: %g bytes a second, want %g", c.what, got, c.want)
		}
	}
}
