package worker

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"brood/models/engine"
	"brood/optim/collective"
	"brood/runtime/event"
	"brood/runtime/message"
)

// OpAudit names the frames that carry the rows and the received frames of one worker to another, which executes its
// rounds again.
const OpAudit collective.Op = "audit"

// maxOpName bounds the bytes of the name of an operation in a transcript.
const maxOpName = 64

// transcriptError reports that a worker's transcript, or its rounds executed again, cannot be what happened.
type transcriptError struct{ err error }

func (e *transcriptError) Error() string { return e.err.Error() }
func (e *transcriptError) Unwrap() error { return e.err }

// transcript is what a worker needs to let another one execute a grant in its place, in addition to a snapshot.
type transcript struct {
	grant  message.Grant
	frames map[int][]collective.Frame // received, by peer
}

// audit sends the transcript of a grant to the auditor of this worker, and executes the grant of the worker that this
// one audits; nil if it audits none.
func (w *Worker) audit(ctx context.Context, m message.Audit) (message.Report, error) {
	s := w.now
	snap, ok := s.snaps[m.From]
	t, kept := s.transcripts[m.From]
	if !ok || !kept {
		return nil, fmt.Errorf("worker %d has no transcript of the rounds after %d", w.cfg.ID, m.From)
	}
	s.env.Comm.Ledger = collective.Ledger{}
	for _, p := range m.Pairs {
		if p.Of == w.cfg.ID {
			if err := s.sendTranscript(ctx, p.By, snap, t); err != nil {
				return nil, fmt.Errorf("worker %d, audit of the rounds after %d: %w", w.cfg.ID, m.From, err)
			}
		}
	}
	for _, p := range m.Pairs {
		if p.By == w.cfg.ID {
			r := message.Audited{Worker: w.cfg.ID, Epoch: m.Epoch, From: m.From, Of: p.Of}
			err := w.repeat(ctx, &r, snap, t.grant, p)
			var lost interface{ Lost() (int, bool) }
			if errors.Is(err, context.Canceled) || errors.As(err, &lost) {
				return nil, err
			}
			if err != nil {
				w.noteDeviceError(err)
				wrong, ok := errors.AsType[*transcriptError](err)
				if r.Err, r.Unable = err.Error(), !ok; ok {
					r.Err = wrong.Error()
				}
			}
			return r, nil
		}
	}
	return nil, nil
}

// sendTranscript sends the rows of this worker's members at the start of a grant, the number of received frames, and
// each frame after its peer and the length of its operation.
func (s *epochState) sendTranscript(ctx context.Context, to int, snap snapshot, t transcript) error {
	comm := s.env.Comm
	for _, r := range snap.rows(s.env.Mine, s.shared()) {
		if r.member == engine.None {
			continue // the auditor has it
		}
		p := make([]byte, r.cols*r.dtype().Size())
		if r.mat.Rows == 0 {
			p = engine.AppendRows(p[:0], r.record, 0, 1)
		} else if err := s.env.Engine.Read(ctx, p, engine.All(r.mat)); err != nil {
			return err
		}
		if err := comm.Send(to, OpAudit, p); err != nil {
			return err
		}
	}
	n := 0
	for _, frames := range t.frames {
		n += len(frames)
	}
	if err := comm.Send(to, OpAudit, binary.LittleEndian.AppendUint32(nil, uint32(n))); err != nil {
		return err
	}
	for peer, frames := range t.frames {
		for _, f := range frames {
			p := make([]byte, 0, 8+len(f.Op)+len(f.Payload))
			p = binary.LittleEndian.AppendUint32(p, uint32(peer))
			p = binary.LittleEndian.AppendUint32(p, uint32(len(f.Op)))
			p = append(append(p, f.Op...), f.Payload...)
			if err := comm.Send(to, OpAudit, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// receiveFrames receives the frames of a transcript: those that the audited worker reported, in number and bytes.
func receiveFrames(receive func() ([]byte, error), of message.AuditPair) (map[int][]collective.Frame, error) {
	p, err := receive()
	if err != nil {
		return nil, err
	}
	if len(p) != 4 || int(binary.LittleEndian.Uint32(p)) != of.Frames {
		return nil, &transcriptError{errors.New("its transcript has another number of frames than it received")}
	}
	most := of.Bytes
	frames := map[int][]collective.Frame{}
	for range binary.LittleEndian.Uint32(p) {
		p, err := receive()
		if err != nil {
			return nil, err
		}
		if len(p) < 8 || binary.LittleEndian.Uint32(p[4:]) > uint32(min(len(p)-8, maxOpName)) {
			return nil, &transcriptError{errors.New("a frame of its transcript is too short, or its operation too long")}
		}
		peer, op := int(binary.LittleEndian.Uint32(p)), p[8:][:binary.LittleEndian.Uint32(p[4:])]
		f := collective.Frame{Op: string(op), Payload: p[8+len(op):]}
		if most -= int64(len(f.Payload)); most < 0 {
			return nil, &transcriptError{errors.New("its transcript has more bytes than it received")}
		}
		frames[peer] = append(frames[peer], f)
	}
	return frames, nil
}

// repeat receives the transcript of a worker and executes a grant in its place. It fills in r what the worker should
// have reported.
func (w *Worker) repeat(
	ctx context.Context, r *message.Audited, snap snapshot, g message.Grant, of message.AuditPair,
) error {
	s := w.now
	cfg, link := w.cfg, &collective.Replay{}
	cfg.ID, cfg.Overhead, cfg.Measure = r.Of, nil, false
	other := New(cfg)
	other.link.Link = link
	next, err := other.begin(message.Plan{
		Plan: event.Plan{
			Epoch:     s.epoch,
			At:        g.From,
			New:       s.env.Roster,
			Algorithm: s.alg.Name,
			Timeline:  s.time.Edits()[:snap.edits],
		},
		Witness: true,
	})
	if err != nil {
		return err
	}
	defer next.free()
	receive := func() ([]byte, error) {
		p, err := s.env.Comm.Receive(ctx, r.Of, OpAudit)
		r.Bytes += int64(len(p))
		if _, ok := errors.AsType[*collective.ProtocolError](err); ok {
			err = &transcriptError{err}
		}
		return p, err
	}
	own := map[string]row{}
	for _, x := range snap.rows(s.env.Mine, s.shared()) {
		own[x.name()] = x
	}
	for _, x := range stateOf(next.env).rows(next.env.Mine, next.shared()) {
		p := make([]byte, x.cols*x.dtype().Size())
		switch from := own[x.name()]; {
		case x.member != engine.None:
			if p, err = receive(); err == nil && len(p) != x.cols*x.dtype().Size() {
				err = &transcriptError{fmt.Errorf("its row %s has %d bytes", x.name(), len(p))}
			}
		case from.mat.Rows == 0:
			p = engine.AppendRows(p[:0], from.record, 0, 1)
		default:
			err = s.env.Engine.Read(ctx, p, engine.All(from.mat))
		}
		if err == nil {
			err = x.write(ctx, s.env.Engine, p)
		}
		if err != nil {
			return err
		}
	}
	if link.Received, err = receiveFrames(receive, of); err != nil {
		return err
	}
	if r.Start, _, err = next.digests(ctx); err != nil {
		return err
	}
	other.now, g.Onward = next, true
	d, err := other.grant(ctx, g)
	r.Digests, r.Frames, r.To, r.Ended, r.Progress = d.Digests, d.Frames, d.To, d.Ended, d.Progress
	switch {
	case err == nil, next.env.Fault() != nil: // no memory
		return err
	}
	if _, ok := errors.AsType[*NonFiniteError](err); ok {
		r.NonFinite = true
		return nil
	}
	if _, ok := errors.AsType[*engine.DeviceError](err); ok || ctx.Err() != nil {
		return err
	}
	return &transcriptError{err}
}

// observe digests the frames of an order and stores them in w.last, until the returned function or Witness.End is
// called.
func (w *Worker) observe(order message.OrderName) (end func()) {
	w.last = &message.Exchanged{Order: order}
	w.link.Begin()
	return func() {
		if all := w.link.End(); all != nil { // the order was interrupted
			w.last.With = all
		}
	}
}

// mostSums bounds the sums of frames in a Ready.
const mostSums = 1 << 14

// shortened returns what to report of the last order: nothing if that has too many frames.
func shortened(last *message.Exchanged) *message.Exchanged {
	if last == nil {
		return nil
	}
	n := 0
	for _, x := range last.With {
		n += len(x.Sent)
	}
	if n > mostSums {
		return nil
	}
	return last
}
