package wire

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden vectors; only for a new wire version")

const golden = "testdata/golden.txt"

func run16(b byte) (r [16]byte) {
	for i := range r {
		r[i] = b + byte(i)
	}
	return
}

func node32(b byte) (n NodeID) {
	for i := range n {
		n[i] = b + byte(i)
	}
	return
}

// samples returns a value of every message.
func samples() map[string]Body {
	roster, err := Roster{{0, node32(1), []string{"10.0.0.1:4433", "[::1]:4433"}, "left"},
		{7, node32(2), nil, ""}}.Message()
	if err != nil {
		panic(err)
	}
	return map[string]Body{
		"hello":       Hello{Version, run16(1), Worker, "node-7", "abc", node32(9), []string{"10.0.0.7:4433"}, "brood 0.1", "native/avx512/amd64", map[string]string{"mnist": "blake3:00", "a": "blake3:11"}, "", new(uint32)},
		"hello-bare":  Hello{Version: Version, Role: Viewer, Node: node32(9)},
		"welcome":     Welcome{Version, run16(1), 3, "serve", "brood 0.1", false},
		"welcome-to":  Welcome{Version: Version, Run: run16(1), Worker: 3, Series: true},
		"refused":     Refused{CodeTokenExpired, "the token has expired", Version, 0, false},
		"refused-ver": RefuseVersion(9),
		"heartbeat":   Heartbeat{1 << 60, false, make([]byte, 48)},
		"answer":      Heartbeat{5, true, make([]byte, 56)},
		"leave":       Leave{"preempted"},
		"message":     Message{FirstKind, []byte{0xa1, 1, 2}},
		"roster":      roster,
		"open":        Open{Version, run16(1), 0, 7, run16(5), 2, 41},
		"opened":      Opened{Version, 41},
		"lanes":       Lanes{4},
	}
}

func sampleFrames(t testing.TB) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for name, m := range samples() {
		f, err := Marshal(Header{Run: run16(1), Sender: NoWorker}, m)
		if err != nil {
			t.Fatal(name, err)
		}
		out[name] = f
	}
	payload := []byte{1, 2, 3, 4, 5}
	f, err := Header{
		Kind:   KindData,
		Run:    run16(1),
		Sender: 3,
		Op:     "centre",
		Epoch:  2,
		Order:  9,
		Seq:    1 << 63,
		Total:  1 << 30,
		Offset: 1 << 20,
	}.Append(nil, payload)
	if err != nil {
		t.Fatal(err)
	}
	out["data"] = append(f, payload...)
	f, err = Header{Kind: KindData}.Append(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	out["data-empty"] = f
	return out
}

// TestGolden: the bytes of every message are frozen. A change to any of them needs a new wire version.
func TestGolden(t *testing.T) {
	frames := sampleFrames(t)
	if *update {
		var b strings.Builder
		names := []string{}
		for name := range frames {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			fmt.Fprintf(&b, "%s %x\n", name, frames[name])
		}
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.Open(golden)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	seen, want := 0, samples()
	for lines := bufio.NewScanner(file); lines.Scan(); seen++ {
		name, text, _ := strings.Cut(lines.Text(), " ")
		frozen, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(frozen, frames[name]) {
			t.Errorf("%s is now\n%x\nwas\n%x", name, frames[name], frozen)
		}
		if m, ok := want[name]; ok {
			h, p, err := NewReader(bytes.NewReader(frozen)).Next()
			if err != nil {
				t.Fatal(name, err)
			}
			got, err := Unmarshal(h, p)
			if err != nil || !reflect.DeepEqual(got, m) {
				t.Errorf("%s reads as %+v, %v; want %+v", name, got, err, m)
			}
		}
	}
	if seen != len(frames) {
		t.Errorf("%d golden vectors for %d messages", seen, len(frames))
	}
}

// TestOffsets compares the offsets in docs/wire-format.md with a data frame.
func TestOffsets(t *testing.T) {
	f := sampleFrames(t)["data"]
	want := map[int]string{0: "BRWF", 4: "\x03", 5: "\x0a", 6: "\x00", 7: "\x06", 8: "\x05\x00\x00\x00",
		16: "\x01\x02\x03", 32: "\x02\x00\x00\x00", 36: "\x03\x00\x00\x00",
		40: "\x09\x00", 48: "\x00\x00\x00\x00\x00\x00\x00\x80", 56: "\x00\x00\x00\x40\x00", 64: "\x00\x00\x10\x00\x00",
		72: "centre\x01\x02\x03\x04\x05"}
	for at, s := range want {
		if got := string(f[at:min(len(f), at+len(s))]); got != s {
			t.Errorf("at %d: %x, want %x", at, got, s)
		}
	}
	if len(f) != 72+6+5 {
		t.Errorf("%d bytes", len(f))
	}
}
