package quic

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"brood/models/longtest"
)

const faults = "^TestFaults$"

// mutants are faults to insert into source lines, each with the test that must fail.
var mutants = []struct {
	name     string
	file     string // relative to transport
	old, new string
	pkg, run string
}{
	{"a cut is forgotten", "quic/pair.go", "\t\tp.cut = max(p.cut, p.used)\n", "", "quic", faults},
	{"the other side does not learn of a cut", "quic/pair.go", "if theirs > p.cut {", "if theirs > p.cut+1000 {", "quic", "^TestCutReachesOtherSide$"},
	{"what was received does not count as used", "quic/association.go", "p.used = max(p.used, uint64(h.Epoch)+1)", "_ = h.Epoch", "quic", "^TestDeathReleasesReceivers$"},
	{"half of a message survives its association", "quic/pair.go", "\t\tp.in.reset()\n", "", "quic", faults},
	{"what waits to be sent survives its association", "quic/pair.go", "p.out = outbox{}", "p.out.next = 0", "quic", "^TestUnreachable$"},
	{"an unused connection cuts", "quic/pair.go", "if s == nil || s.lossy {", "if true {", "quic", "^TestUnusedConnection$"},
	{"crossing connections end each other", "quic/pair.go", "(p.dials() || p.association != nil && p.association.dialler)",
		"p.ended != nil", "quic", "^TestLink$"},
	{"a lane may end alone", "quic/lanes.go", "\t\t\treturn err\n\t\t}\n\t\treturn s.receive(wire.NewReader(stream))", "\t\t\treturn nil\n\t\t}\n\t\t_ = s.receive(wire.NewReader(stream))\n\t\treturn nil", "quic", "^TestLaneEnds$"},
	{"arrival is order", "quic/inbox.go", "\tq.entire = true\n", "\tq.entire = true\n\tin.parts[in.next], in.parts[q.order], q.order = q, in.parts[in.next], in.next\n", "quic", "^TestLink$|" + faults},
	{"older epochs are delivered", "quic/inbox.go", "if m.epoch == epoch {", "if m.epoch <= epoch {", "quic", "^TestLink$"},
	{"newer epochs are delivered", "quic/inbox.go", "if m.epoch > epoch {", "if m.epoch > epoch+1 {", "quic", "^TestLink$"},
	{"parking has no bound", "quic/inbox.go", "return h.Order <= in.next && len(in.ready) == 0 ||", "return true ||", "quic", "^TestParkedIsBounded$"},
	{"the message that comes next has no room either", "quic/inbox.go", "return h.Order <= in.next && len(in.ready) == 0 ||", "return", "quic", "^TestParkedIsBounded$"},
	{"a claim allocates", "quic/inbox.go", "if q.whole == nil && q.got > 0 && 16*q.got >= q.total {", "if q.whole == nil {", "quic", "^TestFloods$"},
	{"a piece is taken twice", "quic/inbox.go", "if q.taken == nil || q.taken[h.Offset] {", "if q.taken == nil {", "quic", "^TestHostileWorkers$"},
	{"anybody may be the sender", "quic/association.go", "case h.Sender != p.other:", "case false:", "quic", "^TestHostileWorkers$"},
	{"any run's frames are taken", "quic/association.go", "case h.Run != p.mesh.run:", "case false:", "quic", "^TestHostileWorkers$"},
	{"anybody may open a pair", "quic/mesh.go", "p == nil || !p.node.Equal(o.node) ||", "p == nil ||", "quic", "^TestHostileWorkers$"},
	{"any association's lanes are taken", "quic/lanes.go", "s != nil && s.id == open.Association &&", "s != nil &&", "quic", "^TestHostileWorkers$"},
	{"roles may send anything", "quic/peer.go", "!p.allow(p.hello.Role, m.Kind)", "p.hello.Role == 99", "quic", "^TestHostilePeers$"},
	{"a node may call itself anything", "quic/greet.go", "if !h.Node.Equal(o.node) {", "if false {", "quic", "^TestHostileStrangers$"},
	{"a peer that does not read is not cut", "quic/control.go", "if c.queued+len(frame) > c.most && c.queued > 0 {", "if false {", "quic", "^TestFloods$"},
	{"the silent live for ever", "quic/beat.go", "quiet >= c.silence()", "false", "quic", "^TestDeathIsNoticed$"},
	{"restarts are not noticed", "quic/node.go", "StatelessResetKey: &reset, ", "StatelessResetKey: map[bool]*quicgo.StatelessResetKey{true: &reset}[false], ", "quic", "^TestRestartIsNoticed"},
	{"strangers are not counted", "quic/strangers.go", "if here >= maxShare || len(s.all) >= maxStrangers {", "if here < 0 {", "quic", "^TestStrangers$"},
	{"an address may have all places", "quic/strangers.go", "if here >= maxShare || len(s.all)", "if len(s.all)", "quic", "^TestStrangers$"},
	{"bytes are not charged", "quic/association.go", "s.pair.mesh.charge(h.Op, len(b), false)", "", "quic", "^TestLedger$"},
	{"packets overtake in the shaper", "quic/shaper.go", "l.due = later(l.due, s.began", "l.due = later(time.Time{}, s.began", "quic", "^TestShapes$"},
	{"the pin is not compared", "identity/tls.go", "if !n.Equal(pin) {", "if false {", "identity", "^TestHandshake$"},
	{"any key is a key", "identity/tls.go", "if !ok {\n\t\treturn wire.NodeID{}, fmt.Errorf(\"the peer's key", "if !ok && public != nil {\n\t\treturn wire.NodeID{}, fmt.Errorf(\"the peer's key", "identity", "^TestHostileCertificates$"},
	{"chains are taken", "identity/tls.go", "case n > 1:", "case n > 9:", "identity", "^TestHostileCertificates$"},
	{"tokens last", "identity/gate.go", "\tt.Used++\n", "", "identity", "^TestGate$"},
	{"tokens do not expire", "identity/gate.go", "case !g.now().Before(t.Expires):", "case false:", "identity", "^TestGate$"},
	{"tokens fit any role", "identity/gate.go", "i >= 0 && g.s.Tokens[i].Role != role", "i >= 0 && g.s.Tokens[i].Role != role && false", "identity", "^TestGate$"},
	{"keys may be read by the group", "identity/identity.go", "m&0o077 != 0", "m&0o007 != 0", "identity", "^TestLoad$"},
	{"the CRC is not compared", "wire/frame.go", "if sum != h.crc {", "if sum != h.crc && false {", "wire", "^TestEveryByteIsChecked$"},
	{"lengths allocate", "wire/frame.go", "min(n, max(firstPiece, 2*len(p)))", "n", "wire", "^TestLengthsAllocateNothing$"},
}

// TestMutants builds each mutant with an overlay and runs the test that must fail; a test that hangs counts as failed.
// Each takes a build: set BROOD_LONG=fleets to run it.
func TestMutants(t *testing.T) {
	longtest.Need(t, longtest.Fleets, "35 builds and test runs")
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			path, dir := filepath.Join(root, filepath.FromSlash(m.file)), t.TempDir()
			src, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(src), m.old); n != 1 {
				t.Fatalf("%s holds %q %d times, want once: the mutant has to follow the code", m.file, m.old, n)
			}
			wrong, overlay := filepath.Join(dir, "wrong.go"), filepath.Join(dir, "overlay.json")
			spec, err := json.Marshal(map[string]any{"Replace": map[string]string{path: wrong}})
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(wrong, []byte(strings.Replace(string(src), m.old, m.new, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(overlay, spec, 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "go", "test", "-v", "-vet=off", "-count=1", "-timeout=60s",
				"-overlay="+overlay, "-run="+m.run, "./"+m.pkg)
			cmd.Dir = root
			cmd.Env = append(slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "BROOD_") }),
				"BROOD_NET_RUNS=40", "BROOD_LONG=fleets")
			out, err := cmd.CombinedOutput()
			if strings.Contains(string(out), "[build failed]") || strings.Contains(string(out), "[setup failed]") {
				t.Fatalf("the mutant does not build:\n%s", out)
			}
			switch {
			case err == nil && strings.Contains(string(out), "--- SKIP"):
				t.Errorf("%s is skipped, so that it cannot detect the mutant", m.run)
			case err == nil:
				t.Errorf("%s: %q is not detected: %s passes", m.file, m.new, m.run)
			}
		})
	}
}

// TestMutantsFollow checks that each mutant still matches exactly one place and that its tests exist.
func TestMutantsFollow(t *testing.T) {
	for _, m := range mutants {
		src, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(m.file)))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(src), m.old); n != 1 {
			t.Errorf("%s has %q %d times, want once: update the mutant", m.file, m.old, n)
		}
		if err := longtest.CheckTests(filepath.Join("..", m.pkg), m.run); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
	}
}
