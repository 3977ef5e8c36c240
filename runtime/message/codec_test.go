package message

import (
	"bytes"
	"encoding/hex"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"brood/models/engine"
	"brood/optim/collective"
	"brood/runtime/event"
	"brood/transport/wire"
)

var update = flag.Bool("update", false, "write the golden vectors")

// samples have every field of every message set.
func samples() map[string]any {
	other := 1
	roster := collective.Roster{Members: []engine.Member{0, 1, 5}, Owner: []int{0, 0, 2}, Machines: []int{0, 0, 0}}
	edit := event.Edit{
		At:        7,
		Algorithm: "parle",
		Knob:      "eta",
		Expr:      "0.1",
		By:        "ann",
		ID:        3,
		Epochs:    1.5,
		Steps:     9,
		Obeys:     2,
		Why:       "one worker",
	}
	cp := event.Checkpoint{Round: 6, Epoch: 2, Roster: roster, Algorithm: "parle", Hash: "blake3:00",
		Files:    []event.File{{Path: "checkpoints/6/a", Digest: "blake3:11", Bytes: 12}},
		Timeline: []event.Edit{edit}, Progress: event.Progress{
			Rounds:      6,
			Steps:       60,
			Samples:     600,
			Evaluations: 1,
			Epochs:      0.25,
		}}
	frames := []collective.FrameSums{{Peer: 1, Sent: collective.Frames{Bytes: 8, Count: 2, Sum: [16]byte{3}},
		Received: collective.Frames{Bytes: 9, Count: 1, Sum: [16]byte{4}}}}
	signature := event.Signature{Key: [32]byte{7}, Sum: [64]byte{8}}
	cp.Signatures = []event.Signature{signature}
	return map[string]any{
		"grant": Grant{Epoch: 3, From: 10, To: 12, Committed: 8, Edits: []event.Edit{edit}, Limit: event.Limit{Rounds: 90, Epochs: 2, Seconds: 3, Target: "loss=1", Patience: 4}, Hold: true, Onward: true},
		"abort": Abort{Epoch: 4},
		"plan": Plan{Plan: event.Plan{Epoch: 5, At: 12, From: event.Saved, Old: roster, New: roster, Lost: []engine.Member{5},
			OldAlg: "popsgd", Algorithm: "parle", Timeline: []event.Edit{edit}, Base: 4,
			Cause: "death", Note: "worker 2 is lost", Before: []event.Edit{edit}, Obeyed: 2, Mirrored: []engine.Member{1}},
			Checkpoint: &cp, Mirror: true, Witness: true},
		"audit": Audit{Epoch: 5, From: 12, Pairs: []AuditPair{{Of: 1, By: 2, Bytes: 9, Frames: 3}}},
		"audited": Audited{Worker: 2, Epoch: 5, From: 12, Of: 1, Start: Digests{{"x/0", [32]byte{1}}},
			Digests: Digests{{"x/0", [32]byte{2}}},
			Frames:  frames, Err: "no", Bytes: 9, NonFinite: true, To: 13, Ended: true, Progress: cp.Progress, Unable: true},
		"save":   Save{Epoch: 5, At: 12, Hash: "blake3:00"},
		"stop":   Stop{},
		"evict":  Evict{Why: "it lost others", After: 5},
		"setup":  Setup{Config: event.Config{Version: 1, Model: "mlp", Data: "glyphs", Seed: 1 << 63}, Members: 3, Committed: &Committed{2, 10}},
		"stored": Stored{Path: "checkpoints/6/a", From: 1 << 20, Err: "full"},
		"ready": Ready{Worker: 2, Epoch: 5, Noise: 1.5e9, Bytes: 1e8, Machine: "m",
			Last: &Exchanged{
				OrderName{4, 9, true}, []collective.Exchange{{
					Peer:      1,
					Sent:      []collective.FrameSum{{5}},
					SentBytes: 7,
					Received:  frames[0].Received,
				}},
			},
			Held: &Held{Committed{2, 10}, Digests{{"x/0", [32]byte{1}}}, Digests{{"x/1", [32]byte{2}}}}},
		"done": Done{Worker: 2, Epoch: 5, From: 10, To: 12, Ended: true,
			Digests: Digests{{"x/0", [32]byte{1}}, {"x/1", [32]byte{2}}}, Progress: cp.Progress,
			Points: []event.Points{{
				Round:   11,
				Series:  "loss",
				Members: []engine.Member{0, engine.None},
				Values:  []float64{0.5, 2},
			}},
			Tests: []Test{{
				Round:      11,
				Centre:     "blake3:22",
				Chunks:     []Chunk{{Index: 3, Loss: 1.25, Correct: 4, Samples: 5}},
				Validation: []Chunk{{Index: 2, Loss: 2.25, Correct: 1, Samples: 3}},
			}},
			Sent: collective.Ledger{"couple": 4}, Predicted: collective.Ledger{"couple": 8},
			Evaluation: collective.Ledger{"centre": 16}, Overhead: 7, Nanos: 8, Extra: 9,
			Notes: []Note{{Kind: event.AlertVaries, Text: "it does"}}, Waited: 6, Frames: frames,
			Mirrored: Digests{{"x/1", [32]byte{5}}}},
		"failed":  Failed{Worker: 2, Epoch: 5, Err: "no", NonFinite: &NonFinite{Block: "x", Member: 5, From: 10, To: 12}, Cut: &other, Never: true, Faulty: &other, Frames: frames},
		"saved":   Saved{Worker: 2, Epoch: 5, At: 12, Files: cp.Files, Err: "full", Nanos: 7, Signature: signature},
		"get":     Get{Path: "init.safetensors", From: 9},
		"leaving": Leaving{Worker: 2},
		"telemetry": Telemetry{Worker: 2, Links: []LinkCount{{To: 1, Sent: 3, Received: 4, RTT: 5, Lost: 0.25}},
			Machine: map[event.Measure]float64{event.Busy: 1.5},
			Doing:   &Doing{Stage: "members", For: 6, Round: 7, Done: 8, Of: 9, Members: 10}},
		"shape": Shape{event.Link{From: 2, To: event.Every, Rate: 1 << 20, Delay: 5, Jitter: 6, Loss: 0.5}},
		"piece": Piece{Path: "init.safetensors", From: 9, Total: 11, Data: []byte{1, 2}, Err: "gone"},
	}
}

// TestGolden compares the encoding of every message with its stored bytes, and decodes it.
func TestGolden(t *testing.T) {
	seen := map[uint16]string{}
	for name, m := range samples() {
		kind, body, err := Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		if kind < wire.FirstKind || seen[kind] != "" {
			t.Errorf("%s has kind %d, which is %s or the transport's", name, kind, seen[kind])
		}
		seen[kind] = name
		path := filepath.Join("testdata", name+".hex")
		if *update {
			if err := os.WriteFile(path, []byte(hex.EncodeToString(body)+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := hex.EncodeToString(body); got != strings.TrimSpace(string(want)) {
			t.Errorf("%s is now %s", name, got)
		}
		back, err := Decode(kind, body)
		if err != nil || !reflect.DeepEqual(back, m) {
			t.Errorf("%s comes back as %+v, %v", name, back, err)
		}
		full(t, name, reflect.ValueOf(m))
	}
}

// full checks that a sample has no field with its zero value, since a missing encoding of it would not be noticed.
func full(t *testing.T, name string, v reflect.Value) {
	t.Helper()
	if v.Kind() != reflect.Struct || v.Type() == reflect.TypeFor[event.Config]() {
		return
	}
	for i := range v.NumField() {
		f := v.Field(i)
		if v.Type().Field(i).Tag.Get("cbor") == "-" {
			continue // not for the other side
		}
		if f.IsZero() && name != "stop" {
			t.Errorf("the sample of %s leaves %s empty", name, v.Type().Field(i).Name)
		}
		full(t, name+"."+v.Type().Field(i).Name, f)
	}
}

func TestRefusals(t *testing.T) {
	if _, _, err := Encode(struct{}{}); err == nil {
		t.Error("an unknown message was encoded")
	}
	for name, c := range map[string]struct {
		kind uint16
		body []byte
	}{
		"unknown kind":  {999, []byte{0xa0}},
		"not CBOR":      {kindGrant, []byte("hello")},
		"behind it":     {kindGrant, []byte{0xa0, 0}},
		"duplicate key": {kindSave, []byte{0xa2, 0, 1, 0, 2}},
		"indefinite":    {kindSave, []byte{0xbf, 0xff}},
		"huge array":    {kindPlan, []byte{0xa1, 8, 0x9a, 0xff, 0xff, 0xff, 0xff}},
		"wrong type":    {kindSave, []byte{0xa1, 0, 0x61, 'x'}},
		"deeply nested": {kindGet, bytes.Repeat([]byte{0x81}, 64)},
	} {
		if m, err := Decode(c.kind, c.body); err == nil {
			t.Errorf("%s: decoded as %+v", name, m)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, m := range samples() {
		kind, body, err := Encode(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(kind, body)
	}
	f.Fuzz(func(t *testing.T, kind uint16, body []byte) {
		m, err := Decode(kind, body)
		if err != nil {
			return
		}
		k, b, err := Encode(m)
		if err != nil || k != kind {
			t.Fatalf("%+v was decoded and is not encoded: %v", m, err)
		}
		again, err := Decode(k, b)
		if err != nil {
			t.Fatalf("%x of %+v is not decoded: %v", b, m, err)
		}
		_, b2, err := Encode(again)
		if err != nil || !bytes.Equal(b, b2) {
			t.Fatalf("%x, then %x: %v", b, b2, err)
		}
	})
}
