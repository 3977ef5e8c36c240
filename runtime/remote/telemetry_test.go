package remote

import (
	"testing"
	"time"

	"brood/runtime/message"
)

// TestLinkRates: delayed telemetry that arrives together does not distort the rates, and no byte is lost or counted
// twice.
func TestLinkRates(t *testing.T) {
	var r linkRates
	start := time.Now()
	report := func(after time.Duration, sent int64) {
		r.update(message.Telemetry{Worker: 0, Links: []message.LinkCount{{To: 1, Sent: sent, Received: sent}}},
			start.Add(after))
	}
	report(0, 100) // bytes before the first telemetry have no known time
	report(time.Second, 1100)
	if r.sent != 1000 || r.recv != 1000 {
		t.Errorf("%g and %g bytes per second, want 1000", r.sent, r.recv)
	}
	report(4*time.Second, 4100)
	report(4*time.Second+time.Millisecond, 5100)
	if r.sent != 1000 {
		t.Errorf("after reports that arrived together: %g bytes per second, want 1000", r.sent)
	}
	report(6*time.Second, 6100)
	if r.sent != 1000 || r.rates[0].Bytes != 6000 {
		t.Errorf("%g bytes per second, %d bytes; want 1000 and 6000", r.sent, r.rates[0].Bytes)
	}
	report(7*time.Second, 500) // a new connection
	if r.sent != 0 || r.rates[0].Bytes != 6000 {
		t.Errorf("after a new connection: %g bytes per second, %d bytes", r.sent, r.rates[0].Bytes)
	}
	report(8*time.Second, 1500)
	if r.sent != 1000 || r.rates[0].Bytes != 7000 {
		t.Errorf("after it: %g bytes per second, %d bytes", r.sent, r.rates[0].Bytes)
	}
}
