package simulate

import (
	"context"
	"slices"
	"time"

	"brood/runtime/machine"
	"brood/transport/quic"
)

// Line is what frames of several sizes took on a real connection: with what congestion control makes of its rate and
// its delay, which no formula here knows. On it a worker's own limit of sending and the time of a hop do not count.
type Line struct {
	Bytes     []float64 // ascending, the first all but empty
	Seconds   []float64 // until the last byte is there, where both ends send at the same time
	Processor []float64 // seconds of the processor at each end, which sends and receives as much
	Playing   []float64 // of these, what it takes to play the link's shape, packet by packet; nil: there is none
}

// Sizes of the frames by which a line is measured, how many of each, and how many before those that bring a connection
// up to its rate. The fourth fastest counts: other work on this machine is none of a fleet's. Where packets are lost it
// would be a frame without any; the links that are measured have a rate and a delay.
var lineSizes = []int{1, 8 << 10, 32 << 10, 128 << 10, 512 << 10, 2 << 20}

const (
	lineSwaps = 15
	lineRank  = 3 // from 0, the fastest
	lineWarm  = 3
)

// MeasureLine swaps frames over the loopback interface, shaped like l, and where that has a shape without it too. Where
// the clock of the processor cannot be read frames cost it nothing.
func MeasureLine(ctx context.Context, l Link) (Line, error) {
	shape := quic.Shape{Rate: int64(l.Rate), Delay: l.Delay, Jitter: l.Jitter, Loss: l.Loss}
	line, err := measureLine(ctx, shape)
	if err != nil || shape == (quic.Shape{}) {
		return line, err
	}
	bare, err := measureLine(ctx, quic.Shape{})
	if err != nil {
		return line, err
	}
	for i, s := range line.Processor {
		line.Playing = append(line.Playing, max(0, s-bare.Processor[i]))
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
			case <-time.After(10 * time.Millisecond): // what was sent last is acknowledged
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	return line, err
}

// Dearer is the line on which frames cost the processor so many times as much: an empty one, what bytes add to it, and
// what it takes to play the link's shape.
func (l *Line) Dearer(empty, bytes, playing float64) *Line {
	x := *l
	x.Processor = slices.Clone(l.Processor)
	for i := range l.Processor {
		x.Processor[i] = empty*l.bare(0) + bytes*(l.bare(i)-l.bare(0)) + playing*l.playing(i)
	}
	return &x
}

// playing is what it takes to play the shape for the i-th frame, and bare what that costs without it.
func (l *Line) playing(i int) float64 {
	if l.Playing == nil {
		return 0
	}
	return l.Playing[i]
}
func (l *Line) bare(i int) float64 { return l.Processor[i] - l.playing(i) }

// takes is how long a frame of so many bytes occupies the line, beyond what an empty one is under way, and uses what it
// costs the processor at each end.
func (l *Line) takes(bytes float64) float64 {
	return max(0, between(l.Bytes, l.Seconds, bytes)-l.Seconds[0])
}
func (l *Line) uses(bytes float64) float64 {
	return max(0, between(l.Bytes, l.Processor, bytes)/2) // a coarse clock may have more of it for less
}

// between is y at x, straight from one neighbour to the next, and beyond the last as between the last two.
func between(xs, ys []float64, x float64) float64 {
	i, _ := slices.BinarySearch(xs, x)
	i = min(max(i, 1), len(xs)-1)
	return ys[i-1] + (ys[i]-ys[i-1])*(x-xs[i-1])/(xs[i]-xs[i-1])
}
