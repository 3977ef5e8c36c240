package cli

import (
	"reflect"
	"strings"
	"testing"

	"brood/runtime/event"
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
	} {
		got, err := parseCommand([]byte(c.line))
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s is %+v, %v; want %+v", c.line, got, err, c.want)
		}
	}
	for _, c := range []struct {
		line, says string
		id         uint64
	}{
		{`{"id":4,"sett":{}}`, `unknown field "sett"`, 4},
		{`{"id":4,"set":{"eta":null}}`, "eta: null is no value", 4},
		{`{"id":4,"set":{"eta":""}}`, `eta: "" is no value`, 4},
		{`{"id":4,"set":{"eta":[1]}}`, "eta: [1] is no value", 4},
		{`{"id":4,"members":2.5}`, "members", 4},
		{`{"id":-1,"members":2}`, "id", 0},
		{`{"id":4} {"id":5}`, "one command a line", 4},
		{`{"id":4}`, "asks for nothing", 4},
		{`[]`, "it is no command", 0},
		{`null`, "asks for nothing", 0},
		{`{"id":`, "it is no JSON object", 0},
		{`eta=0.1`, "it is no JSON object", 0},
	} {
		if cmd, err := parseCommand([]byte(c.line)); err == nil || !strings.Contains(err.Error(), c.says) || cmd.ID != c.id || strings.ContainsAny(err.Error(), "\n") {
			t.Errorf("%s is answered by %v (id %d), want %q (id %d)", c.line, err, cmd.ID, c.says, c.id)
		}
	}
}
