package remote

import (
	"context"
	"fmt"
	"maps"
	"math"
	"net"
	"slices"
	"strings"
	"time"

	"brood/runtime/host"
	"brood/transport/quic"
	"brood/transport/wire"
)

// maxVisitors may look at once, and so many of one key.
const (
	maxVisitors = 256
	maxOfOneKey = 16
)

// mostAddresses is how many addresses a worker may name.
const mostAddresses = 8

// unreachable says why other workers could not reach one at the addresses that it names; empty where they could.
func unreachable(addresses []string) string {
	if n := len(addresses); n > mostAddresses {
		return fmt.Sprintf("you name %d addresses where other workers could reach you: name at most %d", n, mostAddresses)
	}
	for _, a := range addresses {
		if _, _, err := net.SplitHostPort(a); err != nil {
			return fmt.Sprintf("%q is no HOST:PORT where other workers could reach you: see --advertise", a)
		}
	}
	return ""
}

// admit decides on a Hello. ctx ends once the answer was heard.
func (s *Server) admit(ctx context.Context, q quic.Request) (wire.Welcome, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.Hello.Role != wire.Worker {
		return s.admitVisitor(q)
	}
	r, err := s.place(ctx, q)
	if err != nil {
		return wire.Welcome{}, err
	}
	if left := s.stays(q.Node); left > 0 {
		left = max(left.Round(time.Second), time.Second)
		return wire.Welcome{}, wire.Refused{Code: wire.CodeWait, Reason: fmt.Sprintf("this worker was sent away and may come back in %s: it is tried again", left), Retry: true}
	}
	h := q.Hello
	if r != nil {
		if kinds := strings.Split(h.Kernels, ","); !slices.Contains(kinds, r.config.Kernels) {
			if r.config.Objective != "" {
				return wire.Welcome{}, wire.Refused{Code: wire.CodeRefused, Reason: fmt.Sprintf("this run maximises %s, and this worker was not given it: start it with brood worker --objective PROGRAM", wire.CleanText(r.config.Objective))}
			}
			if why := host.TensorWorker(r.config.Kernels, kinds); why != "" {
				return wire.Welcome{}, wire.Refused{Code: wire.CodeRefused, Reason: why}
			}
			return wire.Welcome{}, wire.Refused{Code: wire.CodeRefused, Reason: fmt.Sprintf("this run computes with kernels %s and your machine has %s: start the run with kernels that both have (BROOD_ENGINE), by the same version of brood", r.config.Kernels, strings.Join(kinds, ", "))}
		}
	}
	if why := unreachable(h.Listen); why != "" {
		return wire.Welcome{}, wire.Refused{Code: wire.CodeRefused, Reason: why}
	}
	if !s.cfg.Series && h.Run != (wire.RunID{}) && h.Run != r.id {
		return wire.Welcome{}, wire.Refused{Code: wire.CodeRun, Reason: fmt.Sprintf("run %s is over and this is run %s: ask for its join URL", h.Run, r.id)}
	}
	if before, ok := s.admitted[q.Node]; ok && time.Since(before.at) < arrival {
		return wire.Welcome{}, wire.Refused{Code: wire.CodeBusy, Reason: "the same key is coming in just now: it is tried again", Retry: true}
	}
	if err := s.gate.Admit(q.Node, h.Role, h.Token); err != nil {
		return wire.Welcome{}, err
	}
	if r != nil {
		if d, ok := h.Data[r.config.Data]; ok && d != r.config.Digest {
			s.gate.Return(q.Node, h.Role)
			return wire.Welcome{}, wire.Refused{Code: wire.CodeData, Reason: fmt.Sprintf("this run trains on %s with digest %s and yours has %s: copy the files", r.config.Data, r.config.Digest, d)}
		}
	}
	if err := s.keep(); err != nil {
		s.gate.Return(q.Node, h.Role)
		return wire.Welcome{}, wire.Refused{Code: wire.CodeBusy, Reason: err.Error(), Retry: true}
	}
	if r == nil {
		s.due[q.Node] = time.Now()
		return wire.Welcome{}, wire.Refused{Code: wire.CodeWait, Reason: "no run wants a worker now: waiting for the next", Retry: true}
	}
	delete(s.due, q.Node)
	id := r.fleet.Reserve()
	s.admitted[q.Node] = admission{r, id, time.Now()}
	return wire.Welcome{Run: r.id, Worker: uint32(id), Software: s.cfg.Software, Series: s.cfg.Series}, nil
}

// maxAway workers that were sent away are known at once.
const maxAway = 256

// sent notes that a worker was sent away for so long: until then its key is not let in.
func (s *Server) sent(n wire.NodeID, after time.Duration) {
	if after <= 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.away, func(_ wire.NodeID, until time.Time) bool { return time.Until(until) <= 0 })
	if s.away[n] = time.Now().Add(after); len(s.away) > maxAway {
		first := n
		for k, until := range s.away {
			if until.Before(s.away[first]) {
				first = k
			}
		}
		delete(s.away, first)
	}
}

// stays is how long a worker is still away. The caller holds mu.
func (s *Server) stays(n wire.NodeID) time.Duration {
	return time.Until(s.away[n])
}

// place finds the run for a worker; in a series it is nil where none wants one now. The caller holds mu.
func (s *Server) place(ctx context.Context, q quic.Request) (best *run, err error) {
	switch {
	case s.over:
		context.AfterFunc(ctx, func() { s.told(q.Node) })
		if s.cfg.Series {
			return nil, wire.Refused{Code: wire.CodeOver, Reason: "the runs are over"}
		}
		return nil, wire.Refused{Code: wire.CodeOver, Reason: errOver.Error()}
	case s.broke:
		return nil, wire.Refused{Code: wire.CodeBusy, Reason: "the coordinator ends before the run does: it is tried again", Retry: true}
	case s.cfg.Series:
		least := math.MaxInt
		for _, r := range s.runs {
			n := r.lacks(q.Node)
			if n > 0 && r.id == q.Hello.Run {
				return r, nil
			}
			if n > 0 && n < least { // a run that lost one comes before those that wait for their first
				best, least = r, n
			}
		}
		return best, nil
	case len(s.runs) > 0:
		return s.runs[0], nil
	case s.session != "":
		return nil, wire.Refused{Code: wire.CodeRole, Reason: "this run takes no workers, since it was not begun by brood serve: it lets people look only"}
	}
	return nil, wire.Refused{Code: wire.CodeBusy, Reason: "the run is being prepared: it is tried again", Retry: true}
}

// preparation is how long a worker that was let in may take to be ready, before another is let in beside it.
const preparation = 2 * time.Minute

// told notes that a worker knows that nothing is left.
func (s *Server) told(n wire.NodeID) {
	s.mu.Lock()
	delete(s.due, n)
	s.mu.Unlock()
	select {
	case s.heard <- struct{}{}:
	default:
	}
}

// lacks is how many workers a run of a series wants still, with those on their way in counted and without this node.
// The caller holds mu.
func (r *run) lacks(node wire.NodeID) int {
	if r.over {
		return 0
	}
	n := r.wants
	for k, t := range r.seats {
		if k != node && (t.seated || time.Since(t.came) < preparation) {
			n--
		}
	}
	for k, a := range r.srv.admitted {
		if k != node && a.run == r && time.Since(a.at) < arrival {
			n--
		}
	}
	return n
}

// admitVisitor decides on somebody who wants to look. The caller holds mu.
func (s *Server) admitVisitor(q quic.Request) (wire.Welcome, error) {
	if s.cfg.Series {
		return wire.Welcome{}, wire.Refused{Code: wire.CodeRole, Reason: noVisitors}
	}
	if s.session == "" {
		return wire.Welcome{}, wire.Refused{Code: wire.CodeBusy, Reason: "the run is being prepared: try again in a moment", Retry: true}
	}
	own := 0
	for p := range s.visitors {
		if p.Node().Equal(q.Node) {
			own++
		}
	}
	if len(s.visitors) >= maxVisitors || own >= maxOfOneKey {
		return wire.Welcome{}, wire.Refused{Code: wire.CodeBusy, Reason: fmt.Sprintf("%d are looking already, %d of them by this key", len(s.visitors), own), Retry: true}
	}
	if err := s.gate.Admit(q.Node, q.Hello.Role, q.Hello.Token); err != nil {
		return wire.Welcome{}, err
	}
	s.gate.Keep(q.Node)
	if err := s.keep(); err != nil {
		return wire.Welcome{}, wire.Refused{Code: wire.CodeBusy, Reason: err.Error(), Retry: true}
	}
	return wire.Welcome{Run: s.id, Worker: wire.Nobody, Software: s.cfg.Software}, nil
}

const noVisitors = "a series of runs lets nobody look by URL: on its machine, brood attach SESSION shows one of them"
