package door

import (
	"fmt"
	"net"
	"time"

	"brood/runtime/view"
)

// leaseFor is how long an operator may write alone after a command, while the connection lasts.
const leaseFor = 10 * time.Second

// lease says who may write. It belongs to a person: all that come under one name share it.
type lease struct {
	holder, next party // next asked for it
	until        time.Time
}

// party is who holds or asks, by the connection over which that was done last: it ends with it.
type party struct {
	name string
	by   net.Conn
}

// settle lets the lease pass where it is over.
func (l *lease) settle(now time.Time) {
	if l.holder.by != nil && now.Before(l.until) {
		return
	}
	l.holder, l.next, l.until = l.next, party{}, now.Add(leaseFor)
}

// of is the lease as a client is told of it.
func (l *lease) of(client string, now time.Time) view.Lease {
	if l.settle(now); l.holder.by == nil {
		return view.Lease{}
	}
	return view.Lease{Holder: l.holder.name, Mine: l.holder.name == client, Left: l.until.Sub(now), Asks: l.next.name}
}

// command gives the lease to who commands, or says why not.
func (l *lease) command(by net.Conn, client string, take bool, now time.Time) string {
	if l.settle(now); l.holder.by != nil && l.holder.name != client && !take {
		return fmt.Sprintf("%s writes for %.0f s more: wait, ask (:take in the workbench), or take the lease (--take)", l.holder.name, l.until.Sub(now).Seconds()+1)
	}
	l.holder, l.until = party{client, by}, now.Add(leaseFor)
	if l.next.name == client {
		l.next = party{}
	}
	return ""
}

func (l *lease) ask(by net.Conn, client string, now time.Time) error {
	switch l.settle(now); {
	case l.holder.by == nil:
		l.holder, l.until = party{client, by}, now.Add(leaseFor)
	case l.holder.name == client:
	case l.next.by != nil && l.next.name != client:
		return fmt.Errorf("%s writes, and %s asked before you: ask again when %s has it", l.holder.name, l.next.name, l.next.name)
	default:
		l.next = party{client, by}
	}
	return nil
}

func (l *lease) give(client string, now time.Time) error {
	if l.settle(now); l.holder.by == nil || l.holder.name != client {
		return fmt.Errorf("you do not hold the writer's lease: there is nothing to give")
	}
	l.until = now
	l.settle(now)
	return nil
}

// gone forgets what was done over a connection.
func (l *lease) gone(c net.Conn) {
	if l.holder.by == c {
		l.holder = party{}
	}
	if l.next.by == c {
		l.next = party{}
	}
}
