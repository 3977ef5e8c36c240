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

// Limits on clients that are connected at the same time: in total, and with one key.
const (
	maxClients       = 256
	maxClientsPerKey = 16
)

// maxAddresses is the maximum number of addresses that a worker may advertise.
const maxAddresses = 8

// addressProblem returns why other workers cannot use the addresses that a worker advertises; "" if they can.
func addressProblem(addresses []string) string {
	if n := len(addresses); n > maxAddresses {
		return fmt.Sprintf("this worker advertises %d addresses: give at most %d", n, maxAddresses)
	}
	for _, a := range addresses {
		if _, _, err := net.SplitHostPort(a); err != nil {
			return fmt.Sprintf("%q is no HOST:PORT where other workers could reach you: see --advertise", a)
		}
	}
	return ""
}

// admit accepts or refuses a Hello. ctx ends once the peer has acknowledged the answer.
func (s *Server) admit(ctx context.Context, q quic.Request) (wire.Welcome, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.Hello.Role != wire.Worker {
		return s.admitClient(q)
	}
	r, err := s.findRun(ctx, q)
	if err != nil {
		return wire.Welcome{}, err
	}
	if left := s.evictedFor(q.Node); left > 0 {
		left = max(left.Round(time.Second), time.Second)
		reason := fmt.Sprintf("this worker was evicted and may return in %s: retrying", left)
		return wire.Welcome{}, wire.Refused{Code: wire.CodeWait, Reason: reason, Retry: true}
	}
	h := q.Hello
	if r != nil {
		if kinds := strings.Split(h.Kernels, ","); !slices.Contains(kinds, r.config.Kernels) {
			if r.config.Program != "" {
				reason := host.ProgramMismatch(r.config.Kernels, wire.CleanText(r.config.Program), kinds)
				return wire.Welcome{}, wire.Refused{Code: wire.CodeRefused, Reason: reason}
			}
			if name := r.config.BuiltIn(); name != "" {
				reason := fmt.Sprintf("this run maximises %s, which processors compute with kernels %s: omit --device, or join "+
					"with the same version of brood", wire.CleanText(name), r.config.Kernels)
				return wire.Welcome{}, wire.Refused{Code: wire.CodeRefused, Reason: reason}
			}
			if r.config.Objective != "" {
				reason := fmt.Sprintf("this run maximises %s, which this worker does not have: "+
					"start it with brood worker --objective PROGRAM", wire.CleanText(r.config.Objective))
				return wire.Welcome{}, wire.Refused{Code: wire.CodeRefused, Reason: reason}
			}
			if why := host.TensorMismatch(r.config.Kernels, kinds); why != "" {
				return wire.Welcome{}, wire.Refused{Code: wire.CodeRefused, Reason: why}
			}
			reason := fmt.Sprintf("this run computes with kernels %s and your machine has %s: "+
				"start the run with kernels that both have (BROOD_ENGINE), by the same version of brood",
				r.config.Kernels, strings.Join(kinds, ", "))
			return wire.Welcome{}, wire.Refused{Code: wire.CodeRefused, Reason: reason}
		}
	}
	if why := addressProblem(h.Listen); why != "" {
		return wire.Welcome{}, wire.Refused{Code: wire.CodeRefused, Reason: why}
	}
	if !s.cfg.Series && h.Run != (wire.RunID{}) && h.Run != r.id {
		reason := fmt.Sprintf("run %s is over and this is run %s: ask for its join URL", h.Run, r.id)
		return wire.Welcome{}, wire.Refused{Code: wire.CodeRun, Reason: reason}
	}
	if before, ok := s.admitted[q.Node]; ok && time.Since(before.at) < arrival {
		reason := "a worker with the same key is connecting: retrying"
		return wire.Welcome{}, wire.Refused{Code: wire.CodeBusy, Reason: reason, Retry: true}
	}
	if err := s.gate.Admit(q.Node, h.Role, h.Token); err != nil {
		return wire.Welcome{}, err
	}
	if r != nil {
		if d, ok := h.Data[r.config.Data]; ok && d != r.config.Digest {
			s.gate.Return(q.Node, h.Role)
			reason := fmt.Sprintf("this run trains on %s with digest %s and yours has %s: copy the files",
				r.config.Data, r.config.Digest, d)
			return wire.Welcome{}, wire.Refused{Code: wire.CodeData, Reason: reason}
		}
	}
	if err := s.persist(); err != nil {
		s.gate.Return(q.Node, h.Role)
		return wire.Welcome{}, wire.Refused{Code: wire.CodeBusy, Reason: err.Error(), Retry: true}
	}
	if r == nil {
		s.toInform[q.Node] = time.Now()
		reason := "no run needs a worker now: waiting for the next"
		return wire.Welcome{}, wire.Refused{Code: wire.CodeWait, Reason: reason, Retry: true}
	}
	delete(s.toInform, q.Node)
	id := r.number(q)
	s.admitted[q.Node] = admission{r, id, time.Now()}
	return wire.Welcome{Run: r.id, Worker: uint32(id), Software: s.cfg.Software, Series: s.cfg.Series}, nil
}

// number returns the number for an admitted worker: the one it had, if it may hold rows of the run's state under it.
func (r *run) number(q quic.Request) int {
	if old := q.Hello.Worker; old != nil && q.Hello.Run == r.id && r.fleet.ReserveOld(int(*old), q.Node.String()) {
		return int(*old)
	}
	return r.fleet.Reserve()
}

// maxEvicted bounds the workers whose eviction a server remembers; the one that may return first is dropped.
const maxEvicted = 256

// recordEviction refuses the key of a worker for the given time. A time of 0 or less has no effect.
func (s *Server) recordEviction(n wire.NodeID, after time.Duration) {
	if after <= 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.evictedUntil, func(_ wire.NodeID, until time.Time) bool { return time.Until(until) <= 0 })
	if s.evictedUntil[n] = time.Now().Add(after); len(s.evictedUntil) > maxEvicted {
		first := n
		for k, until := range s.evictedUntil {
			if until.Before(s.evictedUntil[first]) {
				first = k
			}
		}
		delete(s.evictedUntil, first)
	}
}

// evictedFor returns how long a worker must still wait before it may return. The caller holds mu.
func (s *Server) evictedFor(n wire.NodeID) time.Duration {
	return time.Until(s.evictedUntil[n])
}

// findRun returns the run for a worker; in a series, nil if no run needs one now. In a series it prefers the run that
// the worker names, then the run that lacks the fewest workers, then the oldest. The caller holds mu.
func (s *Server) findRun(ctx context.Context, q quic.Request) (best *run, err error) {
	switch {
	case s.over:
		context.AfterFunc(ctx, func() { s.markInformed(q.Node) })
		if s.cfg.Series {
			return nil, wire.Refused{Code: wire.CodeOver, Reason: "the runs are over"}
		}
		return nil, wire.Refused{Code: wire.CodeOver, Reason: errOver.Error()}
	case s.unfinished:
		reason := "the coordinator ends before the run does: retrying"
		return nil, wire.Refused{Code: wire.CodeBusy, Reason: reason, Retry: true}
	case s.cfg.Series:
		least := math.MaxInt
		for _, r := range s.runs {
			n := r.lacks(q.Node)
			if n > 0 && r.id == q.Hello.Run {
				return r, nil
			}
			if n > 0 && n < least { // a run that lost a worker precedes runs that wait for their first workers
				best, least = r, n
			}
		}
		return best, nil
	case len(s.runs) > 0:
		return s.runs[0], nil
	case s.session != "":
		reason := "this run takes no workers, since it was not started by brood serve: it takes viewers and operators only"
		return nil, wire.Refused{Code: wire.CodeRole, Reason: reason}
	}
	return nil, wire.Refused{Code: wire.CodeBusy, Reason: "the run is being prepared: retrying", Retry: true}
}

// prepareTimeout is how long an accepted worker may prepare and still count towards the workers that its run needs.
const prepareTimeout = 2 * time.Minute

// markInformed records that a worker knows that there are no more runs.
func (s *Server) markInformed(n wire.NodeID) {
	s.mu.Lock()
	delete(s.toInform, n)
	s.mu.Unlock()
	select {
	case s.informed <- struct{}{}:
	default:
	}
}

// lacks returns how many more workers a run of a series needs. Workers that are preparing or connecting count, this
// node does not. The caller holds mu.
func (r *run) lacks(node wire.NodeID) int {
	if r.over {
		return 0
	}
	n := r.wanted
	for k, t := range r.handles {
		if k != node && (t.joined || time.Since(t.acceptedAt) < prepareTimeout) {
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

// admitClient accepts or refuses a viewer or operator. The caller holds mu.
func (s *Server) admitClient(q quic.Request) (wire.Welcome, error) {
	if s.cfg.Series {
		return wire.Welcome{}, wire.Refused{Code: wire.CodeRole, Reason: noClients}
	}
	if s.session == "" {
		reason := "the run is being prepared: try again in a moment"
		return wire.Welcome{}, wire.Refused{Code: wire.CodeBusy, Reason: reason, Retry: true}
	}
	own := 0
	for p := range s.clients {
		if p.Node().Equal(q.Node) {
			own++
		}
	}
	if len(s.clients) >= maxClients || own >= maxClientsPerKey {
		reason := fmt.Sprintf("%d clients are already connected, %d of them with this key", len(s.clients), own)
		return wire.Welcome{}, wire.Refused{Code: wire.CodeBusy, Reason: reason, Retry: true}
	}
	if err := s.gate.Admit(q.Node, q.Hello.Role, q.Hello.Token); err != nil {
		return wire.Welcome{}, err
	}
	s.gate.Keep(q.Node)
	if err := s.persist(); err != nil {
		return wire.Welcome{}, wire.Refused{Code: wire.CodeBusy, Reason: err.Error(), Retry: true}
	}
	return wire.Welcome{Run: s.id, Worker: wire.NoWorker, Software: s.cfg.Software}, nil
}

const noClients = "a series of runs takes no clients by URL: on its machine, brood attach SESSION shows one of its runs"
