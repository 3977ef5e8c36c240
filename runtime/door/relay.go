package door

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"

	"brood/runtime/event"
)

// Visitor is somebody who comes to a session's door by another way than its socket.
type Visitor struct {
	Name    string // for the writer's lease and the log of edits, whatever the visitor calls itself
	Command bool   // may command; others may look
}

// maxAsked bounds a request of a visitor.
const maxAsked = 1 << 20

// Relay passes a visitor's requests on to the door of a session, under the visitor's name, and the answers back, until either
// side or ctx ends. It closes both.
func Relay(ctx context.Context, visitor, session net.Conn, v Visitor) error {
	defer visitor.Close()
	defer session.Close()
	defer context.AfterFunc(ctx, func() {
		visitor.Close()
		session.Close()
	})()
	for {
		var q request
		if err := receive(visitor, maxAsked, &q); err != nil {
			return ended(err)
		}
		q.Client = v.Name
		if !v.Command && (q.Command != nil || q.Gate != nil) {
			if err := transmit(visitor, refuse(q)); err != nil {
				return err
			}
			continue
		}
		if q.Command != nil {
			q.Command.By = v.Name
		}
		if err := transmit(session, q); err != nil {
			return err
		}
		if err := pass(visitor, session); err != nil {
			return ended(err)
		}
	}
}

func refuse(q request) (a answer) {
	const reason = "a viewer may look only: ask for an operator's URL (brood invite SESSION --role operator)"
	if q.Command != nil {
		a.Receipt = event.Receipt{ID: q.Command.ID, Reason: reason}
	} else {
		a.Err = reason
	}
	return a
}

// pass hands one answer on, byte for byte.
func pass(to io.Writer, from io.Reader) error {
	var n [4]byte
	if _, err := io.ReadFull(from, n[:]); err != nil {
		return err
	}
	size := binary.LittleEndian.Uint32(n[:])
	if size > maxMessage {
		return fmt.Errorf("message of %d bytes is larger than %d", size, maxMessage)
	}
	if _, err := to.Write(n[:]); err != nil {
		return err
	}
	_, err := io.CopyN(to, from, int64(size))
	return err
}

func ended(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}
