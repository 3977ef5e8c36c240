package control

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/fxamacker/cbor/v2"

	"brood/runtime/event"
	"brood/runtime/session"
	"brood/runtime/view"
)

// patience with a server that should have answered.
const patience = 5 * time.Second

// maxMessage bounds what either side reads: a snapshot of many series is the largest.
const maxMessage = 256 << 20

type request struct {
	Client   string         `cbor:"0,keyasint"`
	Snapshot bool           `cbor:"1,keyasint,omitempty"`
	At       uint64         `cbor:"2,keyasint,omitempty"` // of the snapshot, or after which records are wanted
	Max      int            `cbor:"3,keyasint,omitempty"`
	Command  *event.Command `cbor:"4,keyasint,omitempty"`
	Take     bool           `cbor:"5,keyasint,omitempty"` // the writer's lease
	Fleet    bool           `cbor:"6,keyasint,omitempty"`
	Gate     *Gate          `cbor:"7,keyasint,omitempty"`
	Wait     time.Duration  `cbor:"8,keyasint,omitempty"` // for records, at most; 0: for ever
	Lease    view.LeaseAct  `cbor:"9,keyasint,omitempty"` // with Fleet, which a run that knows no such requests answers
	Ahead    bool           `cbor:"10,keyasint,omitempty"`
	Viewer   string         `cbor:"11,keyasint,omitempty"` // for the lease; "": a command of no viewer
	Said     bool           `cbor:"12,keyasint,omitempty"` // with Fleet, as Lease
	Heard    *session.Heard `cbor:"13,keyasint,omitempty"` // with Said: what need not be told again
}

// maxViewer bounds what is kept of a viewer, in bytes.
const maxViewer = 32

// Gate asks the keeper of a served run to let others in, or to shut one out.
type Gate struct {
	Role   string        `cbor:"0,keyasint,omitempty"` // worker, viewer or operator: of a new join URL
	Uses   int           `cbor:"1,keyasint,omitempty"` // it is good for
	TTL    time.Duration `cbor:"2,keyasint,omitempty"` // and for so long
	Revoke string        `cbor:"3,keyasint,omitempty"` // the beginning of a key's hash
}

type answer struct {
	Err     string         `cbor:"0,keyasint,omitempty"`
	EOF     bool           `cbor:"1,keyasint,omitempty"`
	View    *view.View     `cbor:"2,keyasint,omitempty"`
	Batch   view.Batch     `cbor:"3,keyasint,omitempty"`
	Receipt event.Receipt  `cbor:"4,keyasint,omitempty"`
	Viewers int            `cbor:"5,keyasint,omitempty"`
	Writer  bool           `cbor:"6,keyasint,omitempty"`
	Fleet   *view.Fleet    `cbor:"7,keyasint,omitempty"`
	URL     string         `cbor:"8,keyasint,omitempty"`
	Lease   view.Lease     `cbor:"9,keyasint,omitempty"`
	Ahead   *Ahead         `cbor:"10,keyasint,omitempty"` // nil of a run that has begun
	Said    []session.Line `cbor:"11,keyasint,omitempty"`
	After   int            `cbor:"12,keyasint,omitempty"` // so many lines heard stand before Said; 0 of a run of before
}

func transmit(w io.Writer, v any) error {
	p, err := cbor.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(binary.LittleEndian.AppendUint32(nil, uint32(len(p))), p...))
	return err
}

// head reads the length of the message that follows.
func head(r io.Reader, most uint32) (size uint32, err error) {
	var n [4]byte
	if _, err := io.ReadFull(r, n[:]); err != nil {
		return 0, err
	}
	if size = binary.LittleEndian.Uint32(n[:]); size > most {
		return 0, fmt.Errorf("message of %d bytes is larger than %d", size, most)
	}
	return size, nil
}

func receive(r io.Reader, most uint32, v any) error {
	size, err := head(r, most)
	if err != nil {
		return err
	}
	p, err := io.ReadAll(io.LimitReader(r, int64(size)))
	if err != nil {
		return err
	}
	if len(p) < int(size) {
		return io.ErrUnexpectedEOF
	}
	return cbor.Unmarshal(p, v)
}

// Client speaks to a Server. Records and commands go over connections of their own, so a waiting viewer never holds up
// a command.
type Client struct {
	id     string
	viewer string // drawn for the writer's lease; "" once its commands are of no viewer
	dir    string // of the session on this machine, whose log is there when its process is not; "" elsewhere
	dial   func(context.Context) (net.Conn, error)
	take   bool
	looks  bool   // and asks nothing else
	most   uint32 // bytes of an answer

	watch, act line
	mu         sync.Mutex
	viewers    int
	said       []session.Line // as it was told last
	lease      view.Lease
	heard      time.Time // when it was as lease says
}

// line is one connection, used by one call at a time.
type line struct {
	mu sync.Mutex
	c  net.Conn
}

// NewClient is a viewer of the person id, who may have several: the writer's lease is one viewer's. A program that only
// reads has no name, and is not counted among the viewers. take makes its commands take the lease from others.
func NewClient(id string, take bool, dial func(context.Context) (net.Conn, error)) *Client {
	return &Client{id: id, viewer: rand.Text(), take: take, dial: dial, most: maxMessage}
}

// Bound refuses answers of more than so many bytes, before the first request.
func (c *Client) Bound(most uint32) { c.most = most }

// Stand makes the client no viewer, before its first request: its commands are obeyed too while a viewer of its person
// holds the lease, which stays that one's.
func (c *Client) Stand() { c.viewer = "" }

// Look makes the client one that may look only, before its first request: what is for those who may command it refuses
// as [Relay] does.
func (c *Client) Look() { c.looks = true }

// Dial opens the control socket of the session in dir, on this machine. Where the process that records it is gone later, the
// client tells what the log has.
func Dial(dir, id string, take bool) (*Client, error) {
	c := local(dir, id, take)
	conn, err := c.dial(context.Background())
	if err != nil {
		return nil, err
	}
	c.watch.c = conn
	return c, nil
}

func local(dir, id string, take bool) *Client {
	c := NewClient(id, take, func(ctx context.Context) (net.Conn, error) {
		socket, err := session.SocketPath(dir)
		if err != nil {
			return nil, err
		}
		d := net.Dialer{Timeout: 2 * time.Second}
		return d.DialContext(ctx, "unix", socket)
	})
	c.dir = dir
	return c
}

// Close ends the conversations. A viewer that writes says that it leaves, since it may as well have lost its link.
func (c *Client) Close() {
	if _, l := c.Watchers(); l.Mine && c.viewer != "" {
		c.leave()
	}
	for _, l := range []*line{&c.watch, &c.act} {
		l.mu.Lock()
		if l.c != nil {
			l.c.Close()
			l.c = nil
		}
		l.mu.Unlock()
	}
}

func (c *Client) ask(ctx context.Context, l *line, q request) (a answer, err error) {
	if c.looks && q.commands() {
		return refuse(q), errLooks
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.c == nil {
		if l.c, err = c.dial(ctx); err != nil {
			return a, fmt.Errorf("the run does not answer: %w", err)
		}
	}
	conn := l.c
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	q.Client, q.Viewer, q.Take = c.id, c.viewer, c.take
	if err = transmit(conn, q); err == nil {
		err = receive(conn, c.most, &a)
	}
	if !stop() || err != nil {
		conn.Close()
		l.c = nil
	}
	switch {
	case ctx.Err() != nil:
		return a, ctx.Err()
	case errors.Is(err, io.EOF): // it broke off: that is not how a run ends
		return a, fmt.Errorf("the run does not answer: %w", io.ErrUnexpectedEOF)
	case err != nil:
		return a, fmt.Errorf("the run does not answer: %w", err)
	case a.EOF:
		return a, io.EOF
	case a.Err != "":
		return a, errors.New(a.Err)
	}
	c.mu.Lock()
	c.viewers, c.lease, c.heard = a.Viewers, a.Lease, time.Now()
	c.mu.Unlock()
	return a, nil
}

// leaving is how long a client waits for a run that may be gone.
const leaving = time.Second

// leave says that the viewer will not come back, where the conversation of its commands still stands.
func (c *Client) leave() {
	c.act.mu.Lock()
	stands := c.act.c != nil
	c.act.mu.Unlock()
	if stands {
		ctx, cancel := context.WithTimeout(context.Background(), leaving)
		defer cancel()
		_, _ = c.ask(ctx, &c.act, request{Fleet: true, Lease: view.LeaseLeave}) // else the lease ends by itself
	}
}

// Snapshot is the view of the first `at` records, or of all there are.
func (c *Client) Snapshot(ctx context.Context, at view.Position) (*view.View, error) {
	a, err := c.ask(ctx, &c.watch, request{Snapshot: true, At: at})
	if err == nil && a.View == nil {
		err = errors.New("the run sent no view")
	}
	if err != nil && c.orphaned(ctx) {
		return c.remains(at)
	}
	return a.View, err
}

// Next waits for records after a position.
func (c *Client) Next(ctx context.Context, after view.Position, most int) (view.Batch, error) {
	q := request{At: after, Max: most}
	if d, ok := ctx.Deadline(); ok { // the connection outlives a wait that was in vain
		q.Wait = max(time.Until(d), time.Millisecond)
		waits := ctx
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), q.Wait+patience)
		defer cancel()
		defer context.AfterFunc(waits, func() {
			if errors.Is(waits.Err(), context.Canceled) {
				cancel()
			}
		})()
		ctx = late
	}
	a, err := c.ask(ctx, &c.watch, q)
	switch {
	case err == nil && len(a.Batch.Records) == 0:
		err = context.DeadlineExceeded
	case err != nil && !errors.Is(err, io.EOF) && c.orphaned(ctx):
		return c.rest(after, most)
	}
	return a.Batch, err
}

// Command passes a command on.
func (c *Client) Command(ctx context.Context, cmd event.Command) (event.Receipt, error) {
	a, err := c.ask(ctx, &c.act, request{Command: &cmd})
	return a.Receipt, err
}

// Fleet is what is known of the workers now.
func (c *Client) Fleet(ctx context.Context) (view.Fleet, error) {
	a, err := c.ask(ctx, &c.act, request{Fleet: true})
	if err != nil || a.Fleet == nil {
		return view.Fleet{}, err
	}
	return *a.Fleet, nil
}

// Said is what the processes of the run said to whoever started them, oldest first. It is for those who may command: a
// visitor who may look only is refused. A run of before tells nothing.
func (c *Client) Said(ctx context.Context) ([]session.Line, error) {
	if c.dir != "" && !c.looks { // also where its process is gone
		return session.Said(c.dir)
	}
	c.mu.Lock()
	said := c.said
	c.mu.Unlock()
	heard := session.Hear(said)
	a, err := c.ask(ctx, &c.act, request{Fleet: true, Said: true, Heard: &heard})
	if err != nil {
		return nil, err
	}
	if a.After < 0 || a.After > heard.Lines {
		return nil, fmt.Errorf("the run sent what was said after line %d, and %d are known", a.After, heard.Lines)
	}
	said = slices.Concat(said[:a.After], a.Said)
	c.mu.Lock()
	c.said = said
	c.mu.Unlock()
	return slices.Clone(said), nil
}

// Gate has the keeper of a served run let others in, by the URL that is returned, or shut one out.
func (c *Client) Gate(ctx context.Context, g Gate) (url string, err error) {
	a, err := c.ask(ctx, &c.act, request{Gate: &g})
	return a.URL, err
}

// Lease asks for the writer's lease, gives it away or looks who holds it.
func (c *Client) Lease(ctx context.Context, act view.LeaseAct) (view.Lease, error) {
	a, err := c.ask(ctx, &c.act, request{Fleet: true, Lease: act})
	return a.Lease, err
}

// Watchers counts the viewers and says who holds the writer's lease, as far as was heard.
func (c *Client) Watchers() (int, view.Lease) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.lease
	if l.Left -= time.Since(c.heard); l.Left <= 0 {
		l = view.Lease{}
	}
	return c.viewers, l
}
