package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"brood/models/engine"
	"brood/optim/catalog"
	"brood/runtime/event"
	"brood/runtime/view"
	"brood/tui/textfmt"
)

// jsonAttachment is the interface of a run to programs: it writes events and receipts and reads commands, each as one
// line of JSON.
type jsonAttachment struct {
	run      runConn
	name     string // author of its commands in the log
	readOnly bool   // commands are rejected
	*jsonPrinter
	busy sync.Mutex // held while a command is executed and its receipt is written
}

// maxCommandLine is the longest command line of a program, in bytes.
const maxCommandLine = 1 << 20

// attachProgram writes a snapshot and then every record until the run ends. It reads commands from s.in and writes a
// receipt for each; with readOnly it rejects them. The end of s.in does not end the output.
func attachProgram(ctx context.Context, run runConn, name string, readOnly bool, s streams) error {
	ctx, stop := writing(ctx)
	defer stop()
	v, err := run.Snapshot(ctx, 1<<62)
	if err != nil {
		return err
	}
	p := &jsonAttachment{run: run, name: name, readOnly: readOnly, jsonPrinter: newJSONPrinter(s)}
	p.put(snapshotObject(v, cmp.Or(run.dir, run.name)))
	go p.readCommands(ctx, s.in)
	for at := v.Position; ; {
		b, err := run.Next(ctx, at, 1024)
		if err != nil {
			// Never unlocked: the receipt of the command that ended the run comes before the end, and none after it.
			p.busy.Lock()
			return ignoreEnd(err)
		}
		for _, r := range b.Records {
			p.record(r)
			if r.Commit != nil {
				p.put(commitObject(r.Commit))
			}
		}
		at = b.Next
	}
}

// readCommands executes one command a line until in ends. It stops at a line longer than maxCommandLine.
func (p *jsonAttachment) readCommands(ctx context.Context, in io.Reader) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxCommandLine)
	n := 0
	for ; lines.Scan(); n++ {
		if line := bytes.TrimSpace(lines.Bytes()); len(line) > 0 {
			p.busy.Lock()
			p.put(p.command(ctx, line, n+1))
			p.busy.Unlock()
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		p.put(refusal(0, fmt.Sprintf("line %d is longer than %s: it and the lines after it are ignored", n+1,
			textfmt.Size(maxCommandLine))))
	}
}

func (p *jsonAttachment) command(ctx context.Context, line []byte, n int) map[string]any {
	asked, err := parseCommand(line)
	if err != nil {
		return refusal(asked.ID, fmt.Sprintf("line %d: %v", n, err))
	}
	if p.readOnly {
		return refusal(asked.ID, "attached with --read-only: attach without it to send commands")
	}
	asked.By = p.name
	r, err := p.run.Command(ctx, asked)
	if err != nil {
		return refusal(asked.ID, err.Error())
	}
	if !r.Accepted {
		return refusal(asked.ID, r.Reason)
	}
	receipt := map[string]any{"event": "receipt", "id": asked.ID, "accepted": true}
	// other commands take effect at once, independent of rounds
	if len(asked.Set) > 0 || asked.Members != 0 || asked.Algorithm != "" {
		receipt["round"] = r.Round + 1
	}
	return receipt
}

func refusal(id uint64, reason string) map[string]any {
	return map[string]any{"event": "receipt", "id": id, "accepted": false, "reason": reason}
}

// commandLine is a command in JSON. All keys are optional.
type commandLine struct {
	ID        uint64                     `json:"id"`
	Set       map[string]json.RawMessage `json:"set"`
	Members   *int                       `json:"members"`
	Algorithm string                     `json:"algorithm"`
	Of        string                     `json:"of"`
	Action    string                     `json:"action"`
	Worker    *int                       `json:"worker"`
	Limit     *limitLine                 `json:"limit"`
	Why       string                     `json:"why"`
}

type limitLine struct {
	Rounds  uint64  `json:"rounds,omitempty"`
	Epochs  float64 `json:"epochs,omitempty"`
	Seconds float64 `json:"seconds,omitempty"`
	Target  string  `json:"target,omitempty"`
	// Patience is the number of evaluations without a new lowest validation loss.
	Patience int `json:"patience,omitempty"`
}

// parseCommand parses a line. The returned id is valid even if the rest is rejected.
func parseCommand(line []byte) (cmd event.Command, err error) {
	var asked commandLine
	if err := decodeObject(line, &asked); err != nil {
		var id struct{ ID uint64 }
		_ = json.Unmarshal(line, &id)
		return event.Command{ID: cmp.Or(asked.ID, id.ID)}, err
	}
	cmd = event.Command{
		ID:        asked.ID,
		Algorithm: asked.Algorithm,
		Of:        asked.Of,
		Action:    event.Action(asked.Action),
		Why:       asked.Why,
	}
	if n := asked.Members; n != nil {
		if cmd.Members = *n; *n < 1 {
			return cmd, fmt.Errorf("members is %d: give 1 or more, or leave it out", *n)
		}
	}
	if cmd.Set, err = settingsOf(asked.Set); err != nil {
		return cmd, err
	}
	if l := asked.Limit; l != nil {
		cmd.Limit = (*event.Limit)(l)
	}
	switch cmd.Action {
	case event.Cordon, event.Drain, event.Uncordon, event.Kill:
		if asked.Worker == nil {
			return cmd, fmt.Errorf("%s applies to one worker: give its number as worker", cmd.Action)
		}
		cmd.Worker = *asked.Worker
	default:
		if asked.Worker != nil {
			return cmd, errors.New("worker applies to cordon, drain, uncordon and kill: leave it out")
		}
	}
	return cmd, nil
}

// decodeObject decodes a JSON object from another program into a struct. The error for a key that the struct does not
// have, for a value of the wrong type and for a text that is no object is a sentence.
func decodeObject(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		if _, syntax := errors.AsType[*json.SyntaxError](err); syntax || errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("not a JSON object: %w", err)
		}
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return errors.New(typeError(wrong))
		}
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("something follows the JSON object: write one command a line")
	}
	return nil
}

// settingsOf converts knobs with JSON values to settings, in the order of the names.
func settingsOf(set map[string]json.RawMessage) (out []event.Setting, err error) {
	for _, knob := range slices.Sorted(maps.Keys(set)) {
		expr, err := settingText(set[knob])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", knob, err)
		}
		out = append(out, event.Setting{Knob: knob, Expr: expr})
	}
	return out, nil
}

// jsonKinds are the JSON types in words for errors, and goKinds what a Go type takes.
var (
	jsonKinds = map[string]string{"string": "text", "array": "a list", "bool": "true or false", "object": "an object",
		"number": "a number"}
	goKinds = map[reflect.Kind]string{reflect.Int: "a whole number", reflect.Uint64: "a whole number, 0 or more",
		reflect.Float64: "a number", reflect.String: "a text", reflect.Bool: "true or false", reflect.Slice: "a list"}
)

// typeError returns an error text for a key with a value of the wrong JSON type: the type that it has and the type
// that it takes.
func typeError(wrong *json.UnmarshalTypeError) string {
	is := strings.TrimPrefix(wrong.Value, "number ")
	return fmt.Sprintf("%s is %s: give %s", cmp.Or(wrong.Field, "it"), cmp.Or(jsonKinds[is], is),
		cmp.Or(goKinds[wrong.Type.Kind()], "an object"))
}

// settingText converts a JSON value to a knob expression: a number, a choice or a schedule.
func settingText(raw json.RawMessage) (string, error) {
	var x float64
	if json.Unmarshal(raw, &x) == nil && string(raw) != "null" {
		return strconv.FormatFloat(x, 'g', -1, 64), nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil && text != "" {
		return text, nil
	}
	return "", fmt.Errorf("%s is not a value of a knob: give a number, or a choice or a schedule as text", raw)
}

// snapshotObject returns the state of the run of a session as a JSON object.
func snapshotObject(v *view.View, session string) map[string]any {
	line := map[string]any{"event": "snapshot", "session": session, "phase": v.State.Phase, "reason": v.State.Reason,
		"algorithm": v.Algorithm(),
		"members":   len(v.Members().Members), "round": v.Progress.Rounds, "steps": v.Progress.Steps,
		"samples": v.Progress.Samples, "epochs": v.Progress.Epochs,
		"seconds": v.Elapsed().Seconds(), "params_hash": v.Hash,
		"limit": limitLine(v.Limit)}
	if c := v.Config; c != nil {
		line["model"], line["data"], line["seed"] = c.ModelName(), c.Data, c.Seed
		if c.Parent != "" {
			line["parent"], line["parent_round"] = c.Parent, c.ParentAt
		}
	}
	if e := v.Evaluation; e != nil {
		line["test_round"] = e.Round
		scoresInto(line, v.Config, e)
	}
	series := map[string]any{}
	for i := range v.Series {
		s := &v.Series[i]
		var last []float64
		for _, x := range s.Latest(v.Members()) {
			if !math.IsNaN(x.X) && !math.IsInf(x.X, 0) {
				last = append(last, x.X)
			}
		}
		if x, ok := s.Last(engine.None); ok && len(s.Members) == 0 {
			last = append(last, x)
		}
		series[s.Name] = finite(view.Median(last))
	}
	line["series"] = series // newest value; for series by member the median
	alg, err := catalog.Lookup(v.Algorithm())
	if err != nil {
		return line
	}
	knobs, values := []any{}, v.Resolve(alg)
	for _, k := range alg.Knobs {
		x := knobObject(k)
		if x["value"] = finite(values.Value(k)); len(k.Choices) > 0 {
			x["value"] = k.Format(values.Value(k))
		}
		if expr, moving := values.Expr(k.Name); moving {
			x["schedule"] = expr
		}
		knobs = append(knobs, x)
	}
	line["knobs"] = knobs
	return line
}

// commitObject returns the progress of the run after a commit as a JSON object.
func commitObject(c *event.Commit) map[string]any {
	var sent int64
	for _, n := range c.Sent {
		sent += n
	}
	m := map[string]any{"event": "commit", "round": c.To, "rounds": c.Rounds, "steps": c.Progress.Steps,
		"samples": c.Progress.Samples, "epochs": c.Progress.Epochs,
		"seconds": float64(c.Nanos) / 1e9, "seconds_waited": float64(c.Waited) / 1e9, "bytes_sent": sent,
		"params_hash": c.Hash}
	if len(c.Audited) > 0 {
		audits := [][2]int{}
		for _, a := range c.Audited {
			audits = append(audits, [2]int{a.Of, a.By})
		}
		m["audits"] = audits
	}
	return m
}
