package remote

import (
	"strings"
	"testing"

	"brood/models/engine"
	"brood/runtime/event"
	"brood/runtime/message"
)

// TestReportTooLarge: a report that does not fit into a message becomes a failure that says what to do. It does not end
// the connection.
func TestReportTooLarge(t *testing.T) {
	d := message.Done{Worker: 2, Epoch: 3, From: 4, To: 5}
	if got, ok := fitReply(d).(message.Done); !ok || got.To != 5 {
		t.Errorf("a small report becomes %+v", got)
	}
	p := event.Points{Round: 5, Series: "loss"}
	for m := range engine.Member(1 << 20) {
		p.Members, p.Values = append(p.Members, m), append(p.Values, 1/float64(m+1))
	}
	d.Points = []event.Points{p}
	f, ok := fitReply(d).(message.Failed)
	if !ok || f.Worker != 2 || f.Epoch != 3 || !strings.HasPrefix(f.Err, "its report of rounds 5 to 5 takes ") ||
		!strings.HasSuffix(f.Err, "host fewer members on each worker") {
		t.Errorf("a large report becomes %+v", f)
	}
}
