package simulate

import (
	"context"
	"slices"
	"time"

	"brood/runtime/machine"
	"brood/transport/quic"
)

// Line has the measured times of frames of several sizes on a real connection, which include congestion control. On a
// link with a Line, the limits of a worker's network card and the time of a hop do not apply.
type Line struct {
	Bytes     []float64 // ascending; the first is nearly empty
	Seconds   []float64 // until the last byte has arrived, while both ends send at the same time
	Processor []float64 // processor time at each end, which sends and receives one frame, in seconds
	Shaping   []float64 // the part of Processor for shaping the link packet by packet; nil: the link is not shaped
}

// lineSizes are the sizes of the measured frames, in bytes. Each is measured lineSwaps times, after lineWarm frames
// that bring the connection up to its rate. The result is the fourth fastest, since other processes may use this
// machine. It ignores packet loss, so only links without loss are measured.
var lineSizes = []int{1, 8 << 10, 32 << 10, 128 << 10, 512 << 10, 2 << 20}

const (
	lineSwaps = 15
	lineRank  = 3 // index of the result, 0 being the fastest
	lineWarm  = 3
)

// MeasureLine measures swaps of frames over the loopback interface, shaped like l, and if l has a shape, also without
// it. If the system does not report processor time, the processor times are 0.
func MeasureLine(ctx context.Context, l Link) (Line, error) {
	shape := quic.Shape{Rate: int64(l.Rate), Delay: l.Delay, Jitter: l.Jitter, Loss: l.Loss}
	line, err := measureLine(ctx, shape)
	if err != nil || shape == (quic.Shape{}) {
		return line, err
	}
	unshaped, err := measureLine(ctx, quic.Shape{})
	if err != nil {
		return line, err
	}
	for i, s := range line.Processor {
		line.Shaping = append(line.Shaping, max(0, s-unshaped.Processor[i]))
	}
	return line, nil
}

func measureLine(ctx context.Context, shape quic.Shape) (line Line, err error) {
	err = swaps(ctx, shape, func(swap func(int) (float64, error)) error {
		for range lineWarm {
			if _, err := swap(lineSizes[len(lineSizes)-1]); err != nil {
				return err
			}
		}
		for _, bytes := range lineSizes {
			var took, used []float64
			for range lineSwaps {
				before, _ := machine.ProcessorTime()
				s, err := swap(bytes)
				if err != nil {
					return err
				}
				after, _ := machine.ProcessorTime()
				took, used = append(took, s), append(used, (after-before).Seconds()/2)
			}
			slices.Sort(took)
			slices.Sort(used)
			line.Bytes = append(line.Bytes, float64(bytes))
			line.Seconds = append(line.Seconds, took[lineRank])
			line.Processor = append(line.Processor, used[lineRank])
			select {
			case <-time.After(10 * time.Millisecond): // until the last frames are acknowledged
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	return line, err
}

// Scaled returns the line with other processor times: those of an empty frame, of its bytes, and of shaping the link
// are multiplied by these factors.
func (l *Line) Scaled(empty, bytes, shaping float64) *Line {
	x := *l
	x.Processor = slices.Clone(l.Processor)
	for i := range l.Processor {
		x.Processor[i] = empty*l.unshaped(0) + bytes*(l.unshaped(i)-l.unshaped(0)) + shaping*l.shaping(i)
	}
	return &x
}

// shaping returns the processor time for shaping the i-th frame, and unshaped the rest.
func (l *Line) shaping(i int) float64 {
	if l.Shaping == nil {
		return 0
	}
	return l.Shaping[i]
}
func (l *Line) unshaped(i int) float64 { return l.Processor[i] - l.shaping(i) }

// takes returns the seconds for which a frame occupies the line, beyond the delay of an empty frame. uses returns its
// processor time at each end, in seconds.
func (l *Line) takes(bytes float64) float64 {
	return max(0, between(l.Bytes, l.Seconds, bytes)-l.Seconds[0])
}
func (l *Line) uses(bytes float64) float64 {
	return max(0, between(l.Bytes, l.Processor, bytes)/2) // a coarse clock may report less for a larger frame
}

// between interpolates ys linearly at x, and extrapolates from the last two points beyond them.
func between(xs, ys []float64, x float64) float64 {
	i, _ := slices.BinarySearch(xs, x)
	i = min(max(i, 1), len(xs)-1)
	return ys[i-1] + (ys[i]-ys[i-1])*(x-xs[i-1])/(xs[i]-xs[i-1])
}
