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

// Visitor is a client that reaches a session other than through its Unix socket.
type Visitor struct {
	Name    string // for the writer's lease and the log of edits; overrides the name that the client sends
	Command bool   // the client may command; otherwise it is read-only
}

// maxAsked bounds a request of a visitor, in bytes.
const maxAsked = 1 << 20

// Relay passes a visitor's requests to the control socket of a session, under the visitor's name, and the replies back,
// until either side or ctx ends. It closes both. gate handles the requests about the listener that accepted the visitor;
// if gate is nil, the session handles them.
func Relay(ctx context.Context, visitor, session net.Conn, v Visitor, gate func(Gate) (string, error)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer visitor.Close()
	defer session.Close()
	defer context.AfterFunc(ctx, func() {
		visitor.Close()
		session.Close()
	})()
	asked := requests(ctx, cancel, visitor, maxAsked)
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
			err = answerTo(visitor, refuse(q))
		case q.Gate != nil && gate != nil:
			var a answer
			var no error
			if a.URL, no = gate(*q.Gate); no != nil {
				a.Err = no.Error()
			}
			err = answerTo(visitor, a)
		default:
			if q.Client = v.Name; q.Command != nil {
				q.Command.By = v.Name
			}
			if err = transmit(session, q); err == nil {
				err = pass(visitor, session)
			}
		}
		if err != nil {
			return ended(err)
		}
	}
}

// requests hands on what a client asks until it hangs up: then it cancels, also while an answer waits for records. Its
// goroutine ends with c.
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

func answerTo(c net.Conn, a answer) error {
	if err := c.SetWriteDeadline(time.Now().Add(readsWithin)); err != nil {
		return err
	}
	return transmit(c, a)
}

// commands reports whether a request needs the right to command.
func (q request) commands() bool {
	return q.Command != nil || q.Gate != nil || q.Said || q.Lease == view.LeaseAsk || q.Lease == view.LeaseGive
}

var errLooks = errors.New("a viewer may look only: ask for an operator's URL (brood invite SESSION --role operator)")

func refuse(q request) (a answer) {
	if q.Command != nil {
		a.Receipt = event.Receipt{ID: q.Command.ID, Reason: errLooks.Error()}
	} else {
		a.Err = errLooks.Error()
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

func ended(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}
