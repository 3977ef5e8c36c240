package control

import (
	"fmt"
	"net"
	"strings"
	"time"

	"brood/runtime/view"
)

// leaseFor is the time after a command for which a viewer holds the lease. If the connection of a remote viewer breaks
// during this time, the lease continues: the viewer may reconnect, and one that exits releases the lease explicitly. A
// local viewer loses the lease when its connection ends.
const leaseFor = 10 * time.Second

// lease is the writer's lease. At most one viewer holds it, even if its user has several viewers open.
type lease struct {
	holder, next viewerID // next has requested the lease; both may be zero
	until        time.Time
}

// viewerID identifies a viewer. The zero viewerID is none.
type viewerID struct {
	name string // of the user
	// viewer is a random identifier that the client drew. It is secret, so that no other client can take the viewer's
	// place. It is "" for commands that come from no viewer, as those of `brood set`.
	viewer string
	by     net.Conn // connection of its last request or command; its request for the lease ends with the connection
}

func (p viewerID) isZero() bool { return p.by == nil }

// same reports whether both are the same viewer.
func (p viewerID) same(q viewerID) bool {
	return !p.isZero() && p.name == q.name && p.viewer == q.viewer
}

// actsFor reports whether q is the same viewer as p, or no viewer but the same user.
func (p viewerID) actsFor(q viewerID) bool {
	return p.same(q) || !p.isZero() && p.name == q.name && q.viewer == ""
}

// linked reports whether the viewer is on another machine: only those have a name of the form NAME@KEY.
func (p viewerID) linked() bool { return strings.Contains(p.name, "@") }

// nameFor returns the name of p as shown to q. It marks another viewer of q's user.
func (p viewerID) nameFor(q viewerID) string {
	if p.isZero() || p.name != q.name || p.actsFor(q) {
		return p.name
	}
	return p.name + " elsewhere"
}

// settle passes an expired lease to the next viewer.
func (l *lease) settle(now time.Time) {
	if !l.holder.isZero() && now.Before(l.until) {
		return
	}
	l.grant(l.next, now)
	l.next = viewerID{}
}

func (l *lease) grant(to viewerID, now time.Time) {
	l.holder, l.until = to, now.Add(leaseFor)
}

// of returns the lease as reported to a client.
func (l *lease) of(client viewerID, now time.Time) view.Lease {
	if l.settle(now); l.holder.isZero() {
		return view.Lease{}
	}
	return view.Lease{
		Holder: l.holder.nameFor(client),
		Mine:   l.holder.actsFor(client),
		Left:   l.until.Sub(now),
		Asks:   l.next.nameFor(client),
	}
}

// command checks whether a command is allowed. It grants the lease to the viewer that commands and returns "". If
// another viewer holds the lease and take is not set, it returns the reason for the rejection. A command of the
// holder's user that comes from no viewer is allowed and does not change the lease.
func (l *lease) command(from viewerID, take bool, now time.Time) string {
	l.settle(now)
	switch {
	case l.holder.isZero(), take, l.holder.same(from):
	case l.holder.actsFor(from):
		return ""
	default:
		return fmt.Sprintf("%s writes for %.0f s more: wait, ask (:take in the workbench), or take the lease (--take)",
			l.holder.nameFor(from), l.until.Sub(now).Seconds()+1)
	}
	l.grant(from, now)
	if l.next.same(from) {
		l.next = viewerID{}
	}
	return ""
}

// ask grants a free lease, or queues the viewer as the next holder. It returns an error if another viewer is queued.
func (l *lease) ask(from viewerID, now time.Time) error {
	switch l.settle(now); {
	case l.holder.isZero():
		l.grant(from, now)
	case l.holder.same(from):
	case !l.next.isZero() && !l.next.same(from):
		next := l.next.nameFor(from)
		return fmt.Errorf("%s writes, and %s asked before you: ask again when %s has it", l.holder.nameFor(from), next, next)
	default:
		l.next = from
	}
	return nil
}

// give passes the lease to the next viewer, or frees it. It returns an error if from does not hold it.
func (l *lease) give(from viewerID, now time.Time) error {
	if l.settle(now); !l.holder.same(from) {
		return fmt.Errorf("you do not hold the writer's lease: only its holder can give it")
	}
	l.until = now
	l.settle(now)
	return nil
}

// leave removes a viewer that has left; a request without a viewer removes all viewers of its user.
func (l *lease) leave(from viewerID) {
	if l.holder.actsFor(from) {
		l.holder = viewerID{}
	}
	if l.next.actsFor(from) {
		l.next = viewerID{}
	}
}

// disconnected removes the request that came over connection c. It also frees the lease if its holder used c and cannot
// reconnect: it is local, or it is no viewer.
func (l *lease) disconnected(c net.Conn) {
	if l.holder.by == c && (l.holder.viewer == "" || !l.holder.linked()) {
		l.holder = viewerID{}
	}
	if l.next.by == c {
		l.next = viewerID{}
	}
}
