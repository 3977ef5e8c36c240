package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"brood/runtime/control"
	"brood/runtime/event"
	"brood/runtime/view"
)

func TestParseCommand(t *testing.T) {
	for _, c := range []struct {
		line string
		want event.Command
	}{
		{`{"id":7,"set":{"gamma":"exp:20*0.99/round","eta":0.02},"why":"flat"}`, event.Command{ID: 7, Why: "flat",
			Set: []event.Setting{{Knob: "eta", Expr: "0.02"}, {Knob: "gamma", Expr: "exp:20*0.99/round"}}}},
		{`{"members":8,"of":"parle"}`, event.Command{Members: 8, Of: "parle"}},
		{`{"algorithm":"elastic","set":{"eta":1e-3}}`, event.Command{Algorithm: "elastic", Set: []event.Setting{{Knob: "eta", Expr: "0.001"}}}},
		{`{"action":"resume","limit":{"epochs":2.5,"target":"test_error=3"}}`, event.Command{Action: event.Resume, Limit: &event.Limit{Epochs: 2.5, Target: "test_error=3"}}},
		{`{"action":"drain","worker":3}`, event.Command{Action: event.Drain, Worker: 3}},
		{`{"action":"kill","worker":0}`, event.Command{Action: event.Kill}},
	} {
		got, err := parseCommand([]byte(c.line))
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s is %+v, %v; want %+v", c.line, got, err, c.want)
		}
		if err := commandSchema(t, c.line); err != nil {
			t.Errorf("%s is not as events.schema.json has it: %v", c.line, err)
		}
	}
	for _, c := range []struct {
		line, says string
		id         uint64
	}{
		{`{"id":4,"sett":{}}`, `unknown field "sett"`, 4},
		{`{"id":4,"set":{"eta":null}}`, "eta: null is not a value", 4},
		{`{"id":4,"set":{"eta":""}}`, `eta: "" is not a value`, 4},
		{`{"id":4,"set":{"eta":[1]}}`, "eta: [1] is not a value", 4},
		{`{"id":4,"members":2.5}`, "members is 2.5: give a whole number", 4},
		{`{"id":4,"members":"8"}`, "members is text: give a whole number", 4},
		{`{"id":4,"limit":{"rounds":-5}}`, "limit.rounds is -5: give a whole number, 0 or more", 4},
		{`{"id":4,"limit":{"epochs":[]}}`, "limit.epochs is a list: give a number", 4},
		{`{"id":4,"limit":9}`, "limit is a number: give an object", 4},
		{`{"id":4,"why":true}`, "why is true or false: give a text", 4},
		{`{"id":-1,"members":2}`, "id is -1: give a whole number, 0 or more", 0},
		{`{"id":4,"action":"kill"}`, "kill applies to one worker: give its number as worker", 4},
		{`{"id":4,"action":"cordon"}`, "cordon applies to one worker", 4},
		{`{"id":4,"action":"drain"}`, "drain applies to one worker", 4},
		{`{"id":4,"action":"uncordon"}`, "uncordon applies to one worker", 4},
		{`{"id":4,"action":"pause","worker":1}`, "worker applies to cordon, drain, uncordon and kill", 4},
		{`{"id":4,"members":3,"worker":1}`, "worker applies to cordon, drain, uncordon and kill", 4},
		{`{"id":4} {"id":5}`, "one command a line", 4},
		{`{"id":4,"members":0,"set":{"eta":0.1}}`, "members is 0: give 1 or more, or leave it out", 4},
		{`{"id":4,"members":-2}`, "members is -2: give 1 or more", 4},
		{`{"id":4,"set":[]}`, "set is a list: give an object", 4},
		{`[]`, "it is a list: give an object", 0},
		{`{"id":`, "not a JSON object", 0},
		{`eta=0.1`, "not a JSON object", 0},
	} {
		if cmd, err := parseCommand([]byte(c.line)); err == nil || !strings.Contains(err.Error(), c.says) || cmd.ID != c.id ||
			strings.ContainsAny(err.Error(), "\n") ||
			strings.Contains(err.Error(), "Go ") || strings.Contains(err.Error(), "cli.") {
			t.Errorf("%s is answered by %v (id %d), want %q (id %d)", c.line, err, cmd.ID, c.says, c.id)
		}
		// that worker belongs to some actions is not in the schema
		if commandSchema(t, c.line) == nil && !strings.Contains(c.says, "worker") {
			t.Errorf("%s is as events.schema.json has it", c.line)
		}
	}
}

// commandSchema checks a command against events.schema.json.
func commandSchema(t *testing.T, line string) error {
	t.Helper()
	all, err := schemas()
	if err != nil {
		t.Fatal(err)
	}
	var x any
	if err := json.Unmarshal([]byte(line), &x); err != nil {
		return err
	}
	return all["command"].Validate(x)
}

// slowly is a writer that takes long for a receipt.
type slowly struct {
	mu  sync.Mutex
	out strings.Builder
}

func (w *slowly) Write(p []byte) (int, error) {
	if strings.Contains(string(p), `"receipt"`) {
		time.Sleep(50 * time.Millisecond)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Write(p)
}

// controlOf serves the control socket of a run that obey simulates. The second argument of obey ends the run.
func controlOf(t *testing.T, obey func(event.Command, func()) event.Receipt) (dial func(name string) *control.Client) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var server *control.Server
	server = control.NewServer(t.TempDir(), view.New(), func(_ context.Context, c event.Command) (event.Receipt, error) {
		return obey(c, server.Over), nil
	})
	go server.Serve(l)
	t.Cleanup(server.Close)
	return func(name string) *control.Client {
		client := control.NewClient(name, false, func(ctx context.Context) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "tcp", l.Addr().String())
		})
		t.Cleanup(client.Close)
		return client
	}
}

// TestOneCommand: a client that sends one command and leaves releases the lease, even before the control socket notices
// that it has disconnected.
func TestOneCommand(t *testing.T) {
	dial := controlOf(t, func(c event.Command, _ func()) event.Receipt {
		return event.Receipt{ID: c.ID, Accepted: c.Members < 9}
	})
	for i, name := range []string{"ann", "bob", "cid"} {
		r, err := runConn{Client: dial(name)}.commandAndLeave(t.Context(), event.Command{ID: uint64(i), Members: 8 + i})
		if err != nil || r.Accepted != (i == 0) || r.Reason != "" { // the lease would be the reason
			t.Errorf("%s is answered by %+v, %v", name, r, err)
		}
	}
}

// talk sends commands to a run that obey simulates, until the run ends, and returns the output of the attachment.
func talk(t *testing.T, lines string, obey func(event.Command, func()) event.Receipt) string {
	t.Helper()
	client := controlOf(t, obey)("tuner")
	var out slowly
	in, end, err := os.Pipe() // which stays open
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { end.Close() })
	if _, err := io.WriteString(end, lines); err != nil {
		t.Fatal(err)
	}
	if err := attachProgram(t.Context(), runConn{Client: client, name: "a"}, "tuner", false,
		streams{in: in, out: &out, err: io.Discard}); err != nil {
		t.Fatal(err)
	}
	out.mu.Lock()
	defer out.mu.Unlock()
	return out.out.String()
}

// TestLastReceipt: the receipt of the command that ends the run is written before the output ends, even if it is slow.
func TestLastReceipt(t *testing.T) {
	output := talk(t, `{"id":3,"action":"stop"}`+"\n", func(c event.Command, over func()) event.Receipt {
		over()
		return event.Receipt{ID: c.ID, Accepted: true, Round: 7}
	})
	if !strings.HasSuffix(output, `{"accepted":true,"event":"receipt","id":3}`+"\n") {
		t.Errorf("a stop is answered by\n%s", output)
	}
}

// TestReceiptRounds: a receipt names a round if the command takes effect in one.
func TestReceiptRounds(t *testing.T) {
	output := talk(t, `{"id":1,"set":{"eta":0.1}}
{"id":2,"members":3}
{"id":3,"algorithm":"elastic"}
{"id":4,"action":"save"}
{"id":5,"limit":{"rounds":9}}
{"id":6,"action":"kill","worker":0}
{"id":7,"action":"stop"}
`, func(c event.Command, over func()) event.Receipt {
		if c.Action == event.Stop {
			over()
		}
		return event.Receipt{ID: c.ID, Accepted: true, Round: 7}
	})
	for id := 1; id <= 7; id++ {
		want := fmt.Sprintf(`"id":%d}`, id)
		if id <= 3 {
			want = fmt.Sprintf(`"id":%d,"round":8}`, id)
		}
		if !strings.Contains(output, want) {
			t.Errorf("no receipt ends with %s:\n%s", want, output)
		}
	}
}
