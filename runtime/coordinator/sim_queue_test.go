package coordinator

import (
	"container/heap"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"

	"brood/runtime/event"
	"brood/runtime/message"
)

// dice draws decisions (splitmix64).
type dice struct{ s uint64 }

func (d *dice) n(n int) int {
	d.s += 0x9E3779B97F4A7C15
	return int(scramble(d.s) % uint64(n))
}

func (d *dice) one(of int) bool { return d.n(of) == 0 }

func scramble(z uint64) uint64 {
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// hash represents a state.
type hash uint64

func mix(h hash, xs ...uint64) hash {
	for _, x := range xs {
		h = hash(scramble(uint64(h)*0x9E3779B97F4A7C15 + x + 1))
	}
	return h
}

func mixText(h hash, s string) hash {
	f := fnv.New64a()
	f.Write([]byte(s))
	return mix(h, f.Sum64())
}

func (h hash) digest() (d [32]byte) {
	binary.LittleEndian.PutUint64(d[:], uint64(h))
	return
}

// happening is an action at a virtual time. Actions at equal times keep the order in which they were queued.
type happening struct {
	at     int64
	serial uint64
	do     func() error
}

type happenings []happening

func (q happenings) Len() int { return len(q) }
func (q happenings) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].serial < q[j].serial
}
func (q happenings) Swap(i, j int)     { q[i], q[j] = q[j], q[i] }
func (q *happenings) Push(x any)       { *q = append(*q, x.(happening)) }
func (q *happenings) Pop() any         { n := len(*q) - 1; x := (*q)[n]; *q = (*q)[:n]; return x }
func (q *happenings) push(h happening) { heap.Push(q, h) }

func (q *happenings) pop() (h happening, ok bool) {
	if len(*q) == 0 {
		return h, false
	}
	return heap.Pop(q).(happening), true
}

// fold adds an event or effect to the hash of a trace: its kind, and everything that could differ in another run.
func fold(h hash, x any) hash {
	switch x := x.(type) {
	case Send:
		return fold(mix(h, 1, uint64(x.Worker)), x.Msg)
	case Append:
		return foldRecord(mix(h, 2), x.Record)
	case message.Grant:
		return foldEdits(mix(h, 3, uint64(x.Epoch), x.From, x.To, x.Committed), x.Edits)
	case message.Plan:
		return foldPlan(mix(h, 4), x.Plan)
	case message.Abort:
		return mix(h, 5, uint64(x.Epoch))
	case message.Save:
		return mix(h, 6, uint64(x.Epoch), x.At)
	case message.Stop, message.Evict:
		return mix(h, 7)
	case message.Done:
		h = mix(h, 8, uint64(x.Worker), uint64(x.Epoch), x.From, x.To)
		for _, d := range x.Digests {
			h = mix(h, binary.LittleEndian.Uint64(d.Sum[:]))
		}
		return h
	case message.Ready:
		return mix(h, 9, uint64(x.Worker), uint64(x.Epoch))
	case message.Failed:
		return mixText(mix(h, 10, uint64(x.Worker), uint64(x.Epoch)), x.Err)
	case message.Saved:
		return mixText(mix(h, 11, uint64(x.Worker), x.At), x.Err)
	case Receipt:
		return mixText(mix(h, 12, x.ID, x.Round), x.Reason)
	case event.Command:
		return mixText(mix(h, 13, x.ID, uint64(x.Members)), x.Algorithm+string(x.Action)+fmt.Sprint(x.Set))
	case Exit:
		return mixText(mix(h, 14), string(x.Phase)+x.Reason)
	case Joined:
		return mix(h, 15, uint64(x.Worker))
	case Lost:
		return mix(h, 16, uint64(x.Worker))
	case Release:
		return mix(h, 17, uint64(x.Worker))
	case message.Leaving:
		return mix(h, 18, uint64(x.Worker))
	}
	return mixText(h, fmt.Sprintf("%T", x))
}

func foldRecord(h hash, r event.Record) hash {
	switch {
	case r.Plan != nil:
		return foldPlan(mix(h, 1), *r.Plan)
	case r.Edit != nil:
		return foldEdits(mix(h, 2), []event.Edit{*r.Edit})
	case r.Commit != nil:
		return mixText(mix(h, 3, uint64(r.Commit.Epoch), r.Commit.To), r.Commit.Hash)
	case r.Points != nil:
		return mix(h, 4, r.Points.Round, uint64(len(r.Points.Values)))
	case r.Alert != nil:
		return mixText(mix(h, 5, r.Alert.Round), r.Alert.Text)
	case r.Checkpoint != nil:
		return mixText(mix(h, 6, r.Checkpoint.Round, uint64(len(r.Checkpoint.Files))), r.Checkpoint.Hash)
	case r.State != nil:
		return mixText(mix(h, 7, r.State.Round), string(r.State.Phase)+r.State.Reason)
	}
	return h
}

func foldPlan(h hash, p event.Plan) hash {
	h = mixText(mix(h, uint64(p.Epoch), uint64(p.Base), p.At), string(p.From)+p.Algorithm+string(p.Cause))
	for i, m := range p.New.Members {
		h = mix(h, uint64(m), uint64(p.New.Owner[i]))
	}
	for _, m := range p.Lost {
		h = mix(h, uint64(m))
	}
	for _, m := range p.Mirrored {
		h = mix(h, uint64(m), 1)
	}
	return foldEdits(h, p.Timeline)
}

func foldEdits(h hash, edits []event.Edit) hash {
	for _, e := range edits {
		h = mixText(mix(h, e.At, e.ID, math.Float64bits(e.Epochs), e.Steps), e.Algorithm+e.Knob+e.Expr)
	}
	return h
}

// describe formats an event or effect as a line of a trace.
func describe(x any) string {
	switch x := x.(type) {
	case Send:
		return fmt.Sprintf("    -> %d  %s", x.Worker, describe(x.Msg))
	case message.Grant:
		return fmt.Sprintf("grant epoch %d [%d,%d) committed %d %s", x.Epoch, x.From, x.To, x.Committed, edits(x.Edits))
	case message.Plan:
		return describePlan(x.Plan)
	case message.Done:
		return fmt.Sprintf("%d: done epoch %d [%d,%d) ended %v", x.Worker, x.Epoch, x.From, x.To, x.Ended)
	case Append:
		r := x.Record
		switch {
		case r.Plan != nil:
			return "    LOG " + describePlan(*r.Plan)
		case r.Edit != nil:
			return "    LOG edit " + edits([]event.Edit{*r.Edit})
		case r.Commit != nil:
			return fmt.Sprintf("    LOG commit epoch %d to %d %.16s", r.Commit.Epoch, r.Commit.To, r.Commit.Hash)
		case r.Alert != nil:
			return "    LOG alert " + r.Alert.Text
		case r.State != nil:
			return fmt.Sprintf("    LOG state %s at %d: %s", r.State.Phase, r.State.Round, r.State.Reason)
		case r.Checkpoint != nil:
			return fmt.Sprintf("    LOG checkpoint of %d %.16s", r.Checkpoint.Round, r.Checkpoint.Hash)
		case r.Points != nil:
			return fmt.Sprintf("    LOG points %s at %d", r.Points.Series, r.Points.Round)
		}
	case event.Command:
		return fmt.Sprintf("command %d: set %v members %d algorithm %q action %q limit %+v", x.ID, x.Set, x.Members,
			x.Algorithm, x.Action, x.Limit)
	}
	return fmt.Sprintf("%T%+v", x, x)
}

func describePlan(p event.Plan) string {
	return fmt.Sprintf("plan epoch %d base %d at %d from %s %s -> %s members %v on %v lost %v cause %s timeline %s",
		p.Epoch, p.Base, p.At, p.From, p.OldAlg, p.Algorithm,
		p.New.Members, p.New.Owner, p.Lost, p.Cause, edits(p.Timeline))
}

func edits(es []event.Edit) string {
	s := ""
	for _, e := range es {
		s += fmt.Sprintf("[#%d %s.%s=%s @%d]", e.ID, e.Algorithm, e.Knob, e.Expr, e.At)
	}
	return s
}
