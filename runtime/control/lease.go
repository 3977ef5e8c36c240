package control

import (
	"fmt"
	"net"
	"strings"
	"time"

	"brood/runtime/view"
)

// leaseFor is how long a viewer may write alone after a command. A link to another machine that breaks off meanwhile
// does not end it: the viewer that comes back by itself still writes, and who leaves says so. The end of a connection
// on this machine is that of its viewer.
const leaseFor = 10 * time.Second

// lease is the writer's lease. At most one viewer holds it, even if its user has several viewers open.
type lease struct {
	holder, next party // next asked for it
	until        time.Time
}

// party is a viewer, by the connection over which it last asked or commanded: what it asked for ends with that. The
// client drew what tells it from others of its person, which nobody else is told, so that nobody comes back in its
// place; a command that comes from no viewer, as of `brood set`, has nothing there, and is its person's.
type party struct {
	name, viewer string
	by           net.Conn
}

func (p party) nobody() bool { return p.by == nil }

// same reports whether both are the same viewer.
func (p party) same(q party) bool { return !p.nobody() && p.name == q.name && p.viewer == q.viewer }

// person says whether what q asks is asked by p, or by no viewer but by its person.
func (p party) person(q party) bool {
	return p.same(q) || !p.nobody() && p.name == q.name && q.viewer == ""
}

// linked reports whether the viewer is on another machine: only those have a name of the form NAME@KEY.
func (p party) linked() bool { return strings.Contains(p.name, "@") }

// seen is p's name as q is told it.
func (p party) seen(q party) string {
	if p.nobody() || p.name != q.name || p.person(q) {
		return p.name
	}
	return p.name + " elsewhere"
}

// settle passes an expired lease to the next viewer.
func (l *lease) settle(now time.Time) {
	if !l.holder.nobody() && now.Before(l.until) {
		return
	}
	l.grant(l.next, now)
	l.next = party{}
}

func (l *lease) grant(to party, now time.Time) {
	l.holder, l.until = to, now.Add(leaseFor)
}

// of returns the lease as reported to a client.
func (l *lease) of(client party, now time.Time) view.Lease {
	if l.settle(now); l.holder.nobody() {
		return view.Lease{}
	}
	return view.Lease{Holder: l.holder.seen(client), Mine: l.holder.person(client), Left: l.until.Sub(now), Asks: l.next.seen(client)}
}

// command gives the lease to who commands, or says why not. A person who comes as no viewer leaves it with their own.
func (l *lease) command(from party, take bool, now time.Time) string {
	l.settle(now)
	switch {
	case l.holder.nobody(), take, l.holder.same(from):
	case l.holder.person(from):
		return ""
	default:
		return fmt.Sprintf("%s writes for %.0f s more: wait, ask (:take in the workbench), or take the lease (--take)", l.holder.seen(from), l.until.Sub(now).Seconds()+1)
	}
	l.grant(from, now)
	if l.next.same(from) {
		l.next = party{}
	}
	return ""
}

func (l *lease) ask(from party, now time.Time) error {
	switch l.settle(now); {
	case l.holder.nobody():
		l.grant(from, now)
	case l.holder.same(from):
	case !l.next.nobody() && !l.next.same(from):
		return fmt.Errorf("%s writes, and %s asked before you: ask again when %s has it", l.holder.seen(from), l.next.seen(from), l.next.seen(from))
	default:
		l.next = from
	}
	return nil
}

func (l *lease) give(from party, now time.Time) error {
	if l.settle(now); !l.holder.same(from) {
		return fmt.Errorf("you do not hold the writer's lease: there is nothing to give")
	}
	l.until = now
	l.settle(now)
	return nil
}

// leave removes a viewer that has left; a request without a viewer removes all viewers of its user.
func (l *lease) leave(from party) {
	if l.holder.person(from) {
		l.holder = party{}
	}
	if l.next.person(from) {
		l.next = party{}
	}
}

// gone forgets what was asked for over a connection, and what is held by nobody who could come back to it.
func (l *lease) gone(c net.Conn) {
	if l.holder.by == c && (l.holder.viewer == "" || !l.holder.linked()) {
		l.holder = party{}
	}
	if l.next.by == c {
		l.next = party{}
	}
}
