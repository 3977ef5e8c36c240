package quic

import (
	"math"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Copies. quic-go's congestion control takes every loss for congestion: at a round trip of 40 ms and 1 % of random
// losses a connection has a hundredth of the rate of the line. The packets of a pair on such a line are therefore
// written several times, so that few of them are lost altogether; QUIC drops the copies that arrive too. Copies help
// against random losses only, and an association stops them if they do not help or if packets queue on the line.

const (
	mostCopies   = 3                // times that a packet is written, at most
	worthCopies  = 0.003            // share of lost packets above which another copy is written
	keepCopies   = 10 * time.Second // first time that copies are kept without a loss, before one fewer is tried
	longestKeep  = 10 * time.Minute
	noCopies     = time.Minute // time without copies after they did not help
	enoughCopies = 256         // packets sent for a judgement
	leastOf      = 20          // calls over which the least round trip is taken: ten seconds
)

// copies holds, by address, how many times packets are written. The zero value writes each once. Its methods are safe
// for concurrent use.
type copies struct {
	now   atomic.Pointer[map[netip.AddrPort]wish] // a new map for each change; nil: each packet once
	mu    sync.Mutex
	wants map[netip.AddrPort]map[*association]int // times that packets are to be written
}

// wish is the largest wish for an address.
type wish struct {
	more int          // copies in addition to the packet
	by   *association // which counts their bytes
}

// more returns how many more times a write of some bytes to an address is to be repeated, and counts the bytes.
func (c *copies) more(to net.Addr, bytes int) int {
	all := c.now.Load()
	if all == nil {
		return 0
	}
	w, ok := (*all)[addrPort(to)]
	if ok {
		w.by.copied.Add(int64(w.more * bytes))
	}
	return w.more
}

// set states how many times an association wants the packets to an address to be written; 1 ends its wish.
func (c *copies) set(to net.Addr, s *association, times int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := addrPort(to)
	if c.wants == nil {
		c.wants = map[netip.AddrPort]map[*association]int{}
	}
	if c.wants[key] == nil {
		c.wants[key] = map[*association]int{}
	}
	c.wants[key][s] = times
	if times <= 1 {
		delete(c.wants[key], s)
	}
	if len(c.wants[key]) == 0 {
		delete(c.wants, key)
	}
	if len(c.wants) == 0 {
		c.now.Store(nil)
		return
	}
	next := map[netip.AddrPort]wish{}
	for address, wants := range c.wants {
		for by, times := range wants {
			if times-1 > next[address].more {
				next[address] = wish{times - 1, by}
			}
		}
	}
	c.now.Store(&next)
}

// copyPolicy decides how many times the packets of an association are written.
type copyPolicy struct {
	times      int             // now; 0 is 1
	latest     []time.Duration // of the last leastOf calls
	lost, sent uint64          // since the last judgement
	once       float64         // share lost when packets were last written once
	settling   bool            // times was increased, and losses from before may still be reported
	raised     bool            // the next judgement tells whether the increase helped
	calm       time.Time       // since when no judgement saw a share above worthCopies
	keep       time.Duration   // calm time after which one copy fewer is tried
	until      time.Time       // no copies before this time
}

// judge takes the packets lost and sent since the last call, the smoothed and the latest round trip, and returns how
// many times packets are to be written from now on.
func (p *copyPolicy) judge(now time.Time, lost, sent uint64, rtt, latest time.Duration) int {
	p.times = max(1, p.times)
	p.lost, p.sent = p.lost+lost, p.sent+sent
	p.latest = append(p.latest, latest)
	p.latest = p.latest[max(0, len(p.latest)-leastOf):]
	least := slices.Min(p.latest)
	queued := rtt > least+least/8+4*time.Millisecond
	if p.sent < enoughCopies && !(queued && p.times > 1) {
		return p.times
	}
	lossy := share(p.lost, p.sent)
	p.lost, p.sent = 0, 0
	raised := p.raised && !p.settling
	p.raised = p.settling
	switch {
	case p.settling:
		p.settling = false
	case p.times > 1 && queued, p.times == mostCopies && raised && lossy > p.once/2:
		p.times, p.until = 1, now.Add(noCopies) // the line is full: copies make it worse
	case queued:
	case now.Before(p.until):
	case lossy > worthCopies && least > time.Millisecond:
		if wanted := timesFor(lossy, p.times); wanted > p.times {
			if p.times == 1 {
				p.once = lossy
			}
			p.times, p.raised, p.settling = wanted, true, true
		}
		p.keep = max(p.keep, keepCopies)
		p.calm = now
	case p.times > 1 && now.Sub(p.calm) > p.keep:
		p.times, p.calm = p.times-1, now
		p.keep = min(2*p.keep, longestKeep) // if this is in vain, the next attempt comes later
	}
	return p.times
}

// timesFor returns how many times to write packets so that a share of at most worthCopies is lost altogether, if with
// the given times a share of lossy is.
func timesFor(lossy float64, times int) int {
	once := math.Pow(lossy, 1/float64(times))
	for n := times; n < mostCopies; n++ {
		if math.Pow(once, float64(n)) <= worthCopies {
			return n
		}
	}
	return mostCopies
}
