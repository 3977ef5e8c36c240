package quic

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"brood/transport/wire"
)

// pair joins one worker of this process and another worker. It outlives its connections.
type pair struct {
	mesh        *Mesh
	self, other uint32
	node        wire.NodeID // of the other
	local       bool        // the other worker is in this process too

	mu          sync.Mutex
	change      sync.Cond // signals every change that the association's goroutines wait for
	addresses   []string
	relayed     time.Time     // when the last connection was made, if it goes through the coordinator; zero if not
	moved       chan struct{} // holds a token when addresses changed
	needed      chan struct{} // holds a token when the pair needs a connection
	in          inbox
	out         outbox
	association *association // nil without a connection
	shape       *Shape       // nil is no shape
	shaped      net.Addr     // address that shape is applied to; nil is none

	// Epochs below cut may have lost frames: Send and Recv fail in them. Frames were sent or received in epochs below
	// used; Recv was called in epochs below asked.
	cut, used, asked uint64
	why              error     // reason of the cut, or of the last failed dial
	met              bool      // there was a connection at some time
	wanted           time.Time // when Send or Recv first needed a missing connection; zero if none does
	connecting       bool      // keepConnected runs

	refuses    time.Time          // until when the lower side refuses the other side's dial, since it dials itself
	cancelDial context.CancelFunc // ends the dial
	ended      error              // why the pair is over; nil while it is not
}

// CutError reports that the connection to a worker broke in an epoch: frames may be lost, so Send and Recv fail in it.
type CutError struct {
	Worker uint32
	Epoch  uint32
	Err    error
	Never  bool // there never was a connection: one worker cannot reach the other
}

// Lost returns the worker whose connection broke, and whether there ever was one.
func (e *CutError) Lost() (worker int, met bool) { return int(e.Worker), !e.Never }

func (e *CutError) Error() string {
	if e.Never {
		return fmt.Sprintf("there was no connection with worker %d up to membership epoch %d: %v", e.Worker, e.Epoch, e.Err)
	}
	return fmt.Sprintf("the connection with worker %d was cut in membership epoch %d or before (%v): "+
		"the run continues in the next", e.Worker, e.Epoch, e.Err)
}

func (e *CutError) Unwrap() error { return e.Err }

func newPair(m *Mesh, self uint32, s wire.PeerAddress) *pair {
	p := &pair{
		mesh:      m,
		self:      self,
		other:     s.Index,
		node:      s.Node,
		local:     s.Node.Equal(m.node.ID()),
		addresses: s.Addresses,
		moved:     make(chan struct{}, 1),
		needed:    make(chan struct{}, 1),
	}
	p.change.L = &p.mu
	p.in.reset()
	p.in.wake = make(chan struct{}, 1)
	return p
}

// setAddresses sets the other worker's addresses.
func (p *pair) setAddresses(addresses []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Equal(p.addresses, addresses) {
		p.addresses, p.relayed = addresses, time.Time{}
		signal(p.moved)
	}
}

func (p *pair) send(m message) error {
	if p.local {
		return p.deliverLocal(m)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended != nil {
		return p.ended
	}
	if uint64(m.epoch) < p.cut {
		return p.cutError(m.epoch)
	}
	p.want(m.epoch)
	p.used = max(p.used, uint64(m.epoch)+1)
	if most := p.mesh.node.cfg.MaxBacklog; p.out.bytes > 0 && p.out.bytes+m.cost() > most {
		err := broken("it does not read: %d MiB wait for it", most>>20)
		if p.association != nil {
			p.association.lossy = true // it loses this message
		}
		p.endAssociation(p.association, err)
		return p.cutError(m.epoch)
	}
	m.order = p.out.next
	if err := m.header(p).Check(len(m.p)); err != nil {
		return err
	}
	p.out.next++
	if len(m.p) > smallest {
		p.out.bulk = append(p.out.bulk, &outgoing{message: m})
		p.out.bytes += len(m.p)
		if p.association != nil {
			p.association.requestLanes(1)
		}
	} else if p.association == nil || !p.association.trySend(m) {
		p.out.small = append(p.out.small, m)
		p.out.bytes += m.cost()
	}
	p.change.Broadcast()
	return nil
}

// deliverLocal delivers a message to another worker of this process.
func (p *pair) deliverLocal(m message) error {
	other := p.mesh.find(p.other, p.self)
	if other == nil {
		return fmt.Errorf("worker %d left the roster", p.other)
	}
	p.mesh.charge(m.op, len(m.p), true)
	other.mu.Lock()
	defer other.mu.Unlock()
	other.in.bytes += m.cost()
	other.in.ready = append(other.in.ready, m)
	signal(other.in.wake)
	return nil
}

// recv waits for the next message of an epoch.
func (p *pair) recv(ctx context.Context, epoch uint32) (message, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		if err := ctx.Err(); err != nil {
			return message{}, err
		}
		m, ok, freed := p.in.take(epoch)
		if freed {
			p.change.Broadcast()
		}
		switch {
		case ok:
			return m, nil
		case p.ended != nil:
			return m, p.ended
		case uint64(epoch) < p.cut:
			return m, p.cutError(epoch)
		}
		p.want(epoch)
		p.asked = max(p.asked, uint64(epoch)+1)
		p.mu.Unlock()
		select {
		case <-p.in.wake:
		case <-ctx.Done():
		}
		p.mu.Lock()
	}
}

// want makes the pair connect for an epoch if it is not connected.
func (p *pair) want(epoch uint32) {
	if p.association != nil || p.local {
		return
	}
	if p.wanted.IsZero() || uint64(epoch) >= max(p.used, p.asked) { // a newer epoch waits as long as the first one
		p.wanted = time.Now()
	}
	if !p.connecting {
		p.connecting = true
		p.mesh.wg.Go(p.keepConnected)
	}
	signal(p.needed)
}

func (p *pair) cutError(epoch uint32) error { return &CutError{p.other, epoch, p.why, !p.met} }

// endAssociation ends association s if it is the pair's current one, and cuts every epoch in which it may have lost
// frames. One that carried no frame has lost none.
func (p *pair) endAssociation(s *association, why error) {
	if s != p.association {
		return
	}
	p.association, p.why = nil, why
	if s == nil || s.lossy {
		p.cut = max(p.cut, p.used)
		p.out = outbox{}
		p.in.reset()
	} else if p.ended == nil {
		if time.Since(s.born) < pairTimeout {
			p.wanted = s.wanted // a peer that accepts and then ends connections counts as one that cannot be reached
		}
		if p.out.bytes > 0 && p.wanted.IsZero() {
			p.wanted = time.Now()
		}
		signal(p.needed)
	}
	signal(p.in.wake)
	p.change.Broadcast()
	if s != nil {
		s.fail(why) // awaitEnd waits for its goroutines
	}
}

// expire cuts the epochs in use if no connection was made within pairTimeout.
func (p *pair) expire(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.association != nil || p.wanted.IsZero() || now.Sub(p.wanted) < pairTimeout {
		return
	}
	p.wanted = time.Time{}
	last := p.why
	if last == nil {
		last = errors.New("no address answers")
	}
	why := fmt.Errorf("worker %d could not be reached for %s: %w; check that its advertised address can be reached "+
		"(--advertise)", p.other, pairTimeout, last)
	p.used = max(p.used, p.asked)
	p.endAssociation(nil, why)
}

// end closes the pair for good.
func (p *pair) end(why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = why
	if p.shaped != nil {
		p.mesh.node.shaperOf(p.shaped).unset(p.shaped)
	}
	p.endAssociation(p.association, &GoneError{Closed, why.Error()})
	signal(p.moved)
	signal(p.needed)
}

// install makes s the pair's association, with the higher of both sides' cuts. sentCut is the cut that the dialling
// side sent in Open: if it has changed since, install fails and the pair must dial again. The other side answers
// Opened.
func (p *pair) install(s *association, theirs, sentCut uint64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended != nil {
		return refuseRoster(p.ended.Error())
	}
	switch {
	case s.dialler && p.association != nil:
		return refuseRoster("the other side opened the pair meanwhile")
	case s.dialler && sentCut != p.cut:
		return refuseRoster("the pair was cut meanwhile")
	case !s.dialler && p.self < p.other && (p.dials() || p.association != nil && p.association.dialler):
		return refuseRoster("both sides open the pair")
	case p.association != nil:
		p.endAssociation(p.association, &GoneError{Restarted, "it opened the pair again"})
	}
	if theirs > p.cut {
		p.cut, p.why = theirs, &GoneError{Ended, "the other side lost the connection"}
		signal(p.in.wake)
	}
	if !s.dialler {
		frame, err := wire.Marshal(wire.Header{Run: p.mesh.run, Sender: p.self}, wire.Opened{Cut: p.cut})
		if err != nil {
			return err
		}
		if err := s.post(frame); err != nil {
			return err
		}
	}
	if !s.dialler && p.cancelDial != nil {
		p.cancelDial()
	}
	s.wanted = p.wanted
	p.association, p.wanted, p.met, p.relayed = s, time.Time{}, true, time.Time{}
	if s.relayed() {
		p.relayed = time.Now()
	}
	p.applyShape()
	p.mesh.wg.Go(s.awaitEnd)
	s.start()
	if len(p.out.bulk) > 0 {
		s.requestLanes(1)
	}
	p.change.Broadcast()
	return nil
}

// applyShape applies the pair's shape to the address of the other worker. Without a connection it uses the last
// address, which the next dial uses too.
func (p *pair) applyShape() {
	if p.shape == nil {
		return
	}
	if p.association != nil {
		p.shaped = p.association.conn.RemoteAddr()
	}
	if p.shaped != nil {
		p.mesh.node.shaperOf(p.shaped).set(p.shaped, *p.shape)
	}
}

// ownDial is how long the lower side's own dial of an address refuses the other side's, or half of the dial's timeout
// if that is less. A longer one may not reach the other side at all, while the other side reaches this one.
const ownDial = time.Second

// dials reports whether the other side's dial is refused now.
func (p *pair) dials() bool { return time.Now().Before(p.refuses) }

// keepConnected connects the pair whenever it is needed, until it is over. Both sides may dial; if they do at the same
// time, the lower one's connection is used.
func (p *pair) keepConnected() {
	const soonest, latest = 50 * time.Millisecond, time.Second
	wait, dialled := soonest, time.Time{}
	for {
		p.mu.Lock()
		if p.ended != nil {
			p.mu.Unlock()
			return
		}
		needed := p.association == nil && !p.wanted.IsZero()
		p.mu.Unlock()
		switch {
		case !needed:
			select {
			case <-p.needed:
			case <-p.mesh.ctx.Done():
				return
			}
			continue
		case time.Since(dialled) >= latest:
			wait = soonest
		default:
			select {
			case <-time.After(wait):
				wait = min(2*wait, latest)
			case <-p.moved:
			case <-p.mesh.ctx.Done():
				return
			}
		}
		dialled = time.Now()
		p.dial()
	}
}

// dial tries every address once, then the relay, until the pair is connected or the other side asks for another try.
func (p *pair) dial() {
	ctx, cancel := context.WithCancel(p.mesh.ctx)
	defer cancel()
	p.mu.Lock()
	addresses, sentCut := p.addresses, p.cut
	if p.association != nil || p.ended != nil {
		p.mu.Unlock()
		return
	}
	if p.mesh.node.relays(p.node) {
		addresses = append(slices.Clone(addresses), relayAddress)
		if time.Since(p.relayed) < relayFirst {
			addresses = append([]string{relayAddress}, p.addresses...)
		}
	}
	p.cancelDial = cancel
	if len(addresses) == 0 {
		p.why = fmt.Errorf("worker %d has no address in the roster", p.other)
	}
	p.mu.Unlock()
	timeout := pairTimeout / time.Duration(max(3, len(addresses)+1))
	var direct, relayed error
	for _, a := range addresses {
		p.mu.Lock()
		p.refuses = time.Now().Add(min(ownDial, timeout/2))
		p.mu.Unlock()
		err := p.dialAddress(ctx, a, sentCut, timeout)
		if a == relayAddress {
			relayed = err
		} else {
			direct = err
		}
		p.mu.Lock()
		connected := p.association != nil
		if err != nil && !connected {
			p.why = errors.Join(direct, relayed)
			if direct != nil && relayed != nil {
				p.why = fmt.Errorf("%w, nor through the coordinator", direct)
			}
		}
		p.mu.Unlock()
		if r, ok := errors.AsType[wire.Refused](err); connected || ok && r.Retry {
			break
		}
	}
	p.mu.Lock()
	p.refuses, p.cancelDial = time.Time{}, nil
	p.mu.Unlock()
}

// dialAddress opens the pair at an address and installs the association.
func (p *pair) dialAddress(ctx context.Context, address string, sentCut uint64, timeout time.Duration) error {
	open := wire.Open{Run: p.mesh.run, From: p.self, To: p.other, Cut: sentCut}
	if _, err := rand.Read(open.Association[:]); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	o, err := p.mesh.node.begin(ctx, address, p.node, open)
	if err != nil {
		return err
	}
	answer, ok := o.body.(wire.Opened)
	if !ok {
		err = broken("expected Opened in answer to Open")
	} else {
		s := newAssociation(p, o, open.Association, true)
		s.address = address
		err = p.install(s, answer.Cut, sentCut)
	}
	if err != nil {
		_ = o.conn.CloseWithError(codeDone, err.Error())
	}
	return err
}
