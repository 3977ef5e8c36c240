// Package metrics serves Prometheus metrics of a run: the newest values of its series, its progress, its faults, its
// traffic and its workers. Each scrape reads them through the control socket of the run. It imports runtime/view.
package metrics

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/net/netutil"

	"brood/models/usererr"
	"brood/runtime/event"
	"brood/runtime/view"
)

// Source is implemented by control.Client.
type Source interface {
	Snapshot(ctx context.Context, at view.Position) (*view.View, error)
	Fleet(ctx context.Context) (view.Fleet, error)
}

// maxScrapers is the maximum number of concurrent connections.
const maxScrapers = 32

// patience is the timeout of requests to the run.
const patience = 5 * time.Second

var (
	up      = desc("up", "1 while the run answers")
	info    = desc("info", "1, with labels that describe the run", "session", "algorithm", "model", "data", "kernels")
	phase   = desc("phase", "1 for the phase that the run is in", "phase")
	round   = desc("round", "newest committed round; a rollback lowers it")
	rounds  = desc("rounds_total", "rounds committed, with the repeated ones")
	steps   = desc("steps_total", "gradient steps of the whole population")
	samples = desc("samples_total", "samples seen by the whole population")
	evals   = desc("evaluations_total", "candidates evaluated")
	epochs  = desc("epochs", "passes over the data; a rollback lowers it")
	members = desc("members", "size of the population")
	series  = desc("value", "newest value of a series that is still measured; member is empty for the whole population",
		"series", "member")
	sent     = desc("sent_bytes_total", "payload sent by all workers, of committed rounds", "op")
	expected = desc("predicted_bytes_total", "payload as the algorithm's formula predicts it", "op")
	overhead = desc("overhead_bytes_total", "bytes on the wire beyond payload")
	aborted  = desc("aborted_bytes_total", "payload of discarded rounds")
	events   = desc("events_total", "entries of the event list")

	repeated  = desc("repeated_rounds_total", "rounds committed again after a rollback")
	rollbacks = desc("rollbacks_total", "returns to a round before the last commit")
	lost      = desc("lost_workers_total", "losses of workers")
	mirrored  = desc("mirrored_members_total", "members of lost workers that continued from a mirror")
	audits    = desc("audits_total", "parts of committed rounds that a second worker executed with equal results")
	saved     = desc("checkpoint_age_seconds", "time since the newest checkpoint was saved; if there is none, since "+
		"the log began")
	durations = desc("round_duration_seconds", "wall time of rounds, as the mean over each commit")

	workerMembers = desc("worker_members", "members that a worker hosts", "worker", "name", "state")
	workerRTT     = desc("worker_round_trip_seconds", "round-trip time of the last heartbeat between coordinator and "+
		"worker", "worker")
	workerSilent = desc("worker_silent_seconds", "time since the last message of a worker", "worker")
	linkSent     = desc("link_sent_bytes_total", "bytes sent between two workers", "from", "to")
	linkRTT      = desc("link_round_trip_seconds", "round-trip time between two workers", "from", "to")
	linkLost     = desc("link_lost_ratio", "share of lost packets", "from", "to")
)

// machines has a metric for each measure that processes report about their machines.
var machines = func() map[event.Measure]*prometheus.Desc {
	out := map[event.Measure]*prometheus.Desc{}
	for _, m := range event.Measures {
		if m.Reported {
			out[m.Measure] = desc("process_"+string(m.Measure), m.Unit+": "+m.Doc, "worker")
		}
	}
	return out
}()

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("brood_"+name, help, labels, nil)
}

// collector reads the state of the run for each scrape.
type collector struct {
	session string
	src     Source
}

// Describe sends no descriptions, since the series depend on the algorithm.
func (collector) Describe(chan<- *prometheus.Desc) {}

func (c collector) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, x float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, x, labels...)
	}
	counter := func(d *prometheus.Desc, x float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, x, labels...)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	v, err := c.src.Snapshot(ctx, math.MaxUint64)
	if err != nil {
		gauge(up, 0)
		return
	}
	gauge(up, 1)
	if v.Config != nil {
		gauge(info, 1, c.session, v.Algorithm(), v.Config.ModelName(), v.Config.Data, v.Config.Kernels)
	}
	for _, p := range []event.Phase{event.Waiting, event.Training, event.Paused, event.Finished, event.Stopped,
		event.Failed} {
		is := 0.0
		if p == v.State.Phase {
			is = 1
		}
		gauge(phase, is, string(p))
	}
	gauge(round, float64(v.Progress.Rounds))
	gauge(epochs, v.Progress.Epochs)
	t := &v.Tally
	counter(rounds, float64(t.Done.Rounds))
	counter(steps, float64(t.Done.Steps))
	counter(samples, float64(t.Done.Samples))
	counter(evals, float64(t.Done.Evaluations))
	counter(repeated, float64(t.Repeated))
	counter(rollbacks, float64(t.Rollbacks))
	counter(lost, float64(t.Lost))
	counter(mirrored, float64(t.Mirrored))
	counter(audits, float64(t.Audits))
	if since := max(t.SavedAt, v.First); since > 0 {
		gauge(saved, max(0, time.Since(time.Unix(0, since)).Seconds()))
	}
	out <- histogram(t)
	gauge(members, float64(len(v.Members().Members)))
	for i := range v.Series {
		s := &v.Series[i]
		if v.Dropped(s) { // the series of a previous algorithm
			continue
		}
		if x, ok := s.Last(view.Whole); ok && len(s.Members) == 0 {
			gauge(series, x, s.Name, "")
		}
		for _, x := range s.Latest(v.Members()) {
			gauge(series, x.X, s.Name, strconv.FormatUint(uint64(x.Member), 10))
		}
	}
	for _, b := range v.Ledger.Ops {
		counter(sent, float64(b.Sent), string(b.Op))
		counter(expected, float64(b.Predicted), string(b.Op))
	}
	counter(overhead, float64(v.Ledger.Overhead))
	counter(aborted, float64(v.Ledger.Aborted))
	counter(events, float64(v.Events))
	f, err := c.src.Fleet(ctx)
	if err != nil {
		return
	}
	for _, w := range f.Workers {
		id := strconv.Itoa(w.ID)
		gauge(workerMembers, float64(len(w.Members)), id, w.Name, string(w.State))
		if w.Address != "" {
			gauge(workerRTT, w.RTT.Seconds(), id)
			gauge(workerSilent, w.Silent.Seconds(), id)
		}
	}
	for _, m := range f.Machines {
		worker := "" // the coordinator's process
		if m.Worker != event.Here {
			worker = strconv.Itoa(m.Worker)
		}
		for name, d := range machines {
			if x, ok := m.Values[name]; ok {
				gauge(d, x, worker)
			}
		}
	}
	for _, l := range f.Links {
		from, to := strconv.Itoa(l.From), strconv.Itoa(l.To)
		counter(linkSent, float64(l.Bytes), from, to)
		gauge(linkRTT, l.RTT.Seconds(), from, to)
		gauge(linkLost, l.Lost, from, to)
	}
}

// histogram returns the durations of rounds. Its buckets are cumulative.
func histogram(t *view.Tally) prometheus.Metric {
	var count uint64
	buckets := map[float64]uint64{}
	for i, bound := range view.RoundBounds {
		count += t.Durations[i]
		buckets[time.Duration(bound).Seconds()] = count
	}
	count += t.Durations[len(view.RoundBounds)]
	return prometheus.MustNewConstHistogram(durations, count, time.Duration(t.Nanos).Seconds(), buckets)
}

// Server answers at /metrics, without content until Attach, and at /healthz, with status 200 while the process answers:
// a coordinator that waits for workers, and a worker, are healthy.
type Server struct {
	listen net.Listener
	reg    *prometheus.Registry
	done   chan struct{} // closed when no request is answered any more
}

// Listen binds an address and answers until Close. :PORT means the loopback address, since every client that can
// connect may read. flag names the address in errors.
func Listen(flag, address string) (*Server, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, usererr.Errorf("%s %q: give HOST:PORT, such as :9464 (this machine only) or 0.0.0.0:9464",
			flag, address)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w; choose an address of this machine and a free port", flag, address, err)
	}
	s := &Server{
		listen: netutil.LimitListener(l, maxScrapers),
		reg:    prometheus.NewRegistry(),
		done:   make(chan struct{}),
	}
	go s.serve()
	return s, nil
}

// Address returns the address of the listener.
func (s *Server) Address() net.Addr { return s.listen.Addr() }

// Attach adds the metrics of a run. Call it once. Close does not close src.
func (s *Server) Attach(session string, src Source) { s.reg.MustRegister(collector{session, src}) }

func (s *Server) serve() {
	defer close(s.done)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.reg, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	srv := &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: patience,
		ReadTimeout:       patience,
		WriteTimeout:      2 * patience,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    1 << 14,
	}
	_ = srv.Serve(s.listen) // returns after Close
	_ = srv.Close()
}

// Close closes the listener and its connections, and returns when both are closed.
func (s *Server) Close() error {
	err := s.listen.Close()
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	<-s.done
	return err
}
