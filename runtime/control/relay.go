package control

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"time"

	"brood/runtime/event"
	"brood/runtime/view"
)

// RelayedClient describes a remote client, which does not use the Unix socket of the session.
type RelayedClient struct {
	Name    string // for the writer's lease and the log of edits; overrides the name that the client sends
	Command bool   // the client may command; otherwise it is read-only
}

// maxAsked bounds a request of a remote client, in bytes.
const maxAsked = 1 << 20

// Relay forwards the requests of a remote client to the control socket of a session, under the name v.Name, and the
// replies back, until either side or ctx ends. It closes both connections. gate handles requests about the listener
// that accepted the client; if gate is nil, the session handles them.
func Relay(ctx context.Context, client, session net.Conn, v RelayedClient, gate func(Gate) (string, error)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer client.Close()
	defer session.Close()
	defer context.AfterFunc(ctx, func() {
		client.Close()
		session.Close()
	})()
	asked := requests(ctx, cancel, client, maxAsked)
	for {
		var q request
		select {
		case q = <-asked:
		case <-ctx.Done():
			return nil
		}
		var err error
		switch {
		case !v.Command && q.commands():
			err = answerTo(client, refuse(q))
		case q.Gate != nil && gate != nil:
			var a answer
			var refused error
			if a.URL, refused = gate(*q.Gate); refused != nil {
				a.Err = refused.Error()
			}
			err = answerTo(client, a)
		default:
			if q.Client = v.Name; q.Command != nil {
				q.Command.By = v.Name
			}
			if err = transmit(session, q); err == nil {
				err = pass(client, session)
			}
		}
		if err != nil {
			return ended(err)
		}
	}
}

// requests returns a channel of the requests that arrive on c. When c is closed or fails it calls cancel, which also
// interrupts an answer that waits for records. Its goroutine ends then.
func requests(ctx context.Context, cancel context.CancelFunc, c net.Conn, most uint32) <-chan request {
	asked := make(chan request)
	go func() {
		defer cancel()
		for {
			var q request
			if err := receive(c, most, &q); err != nil {
				return
			}
			select {
			case asked <- q:
			case <-ctx.Done():
				return
			}
		}
	}()
	return asked
}

// readsWithin is the write timeout of an answer: a client that does not read is disconnected.
const readsWithin = 30 * time.Second

// answerTo sends an answer with the write timeout readsWithin.
func answerTo(c net.Conn, a answer) error {
	if err := c.SetWriteDeadline(time.Now().Add(readsWithin)); err != nil {
		return err
	}
	return transmit(c, a)
}

// commands reports whether a request needs the right to command.
func (q request) commands() bool {
	return q.Command != nil || q.Gate != nil || q.ProcessLog || q.Lease == view.LeaseAsk || q.Lease == view.LeaseGive
}

var errReadOnly = errors.New("a viewer may look only: ask for an operator's URL (brood invite SESSION --role operator)")

// refuse returns the answer to a request that a read-only client may not send.
func refuse(q request) (a answer) {
	if q.Command != nil {
		a.Receipt = event.Receipt{ID: q.Command.ID, Reason: errReadOnly.Error()}
	} else {
		a.Err = errReadOnly.Error()
	}
	return a
}

// pass copies one answer unchanged.
func pass(to net.Conn, from io.Reader) error {
	size, err := head(from, maxMessage)
	if err != nil {
		return err
	}
	if err := to.SetWriteDeadline(time.Now().Add(readsWithin)); err != nil {
		return err
	}
	if _, err := to.Write(binary.LittleEndian.AppendUint32(nil, size)); err != nil {
		return err
	}
	_, err = io.CopyN(to, from, int64(size))
	return err
}

// ended returns nil for io.EOF, and err otherwise.
func ended(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}
