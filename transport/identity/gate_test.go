package identity

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"brood/transport/wire"
)

// clock is a clock that the test sets.
type clock struct{ t time.Time }

func (c *clock) now() time.Time { return c.t }

func newGate() (*Gate, *clock) {
	c := &clock{time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
	return NewGate(c.now), c
}

func node(i int) (n wire.NodeID) {
	n[0], n[1] = byte(i), byte(i>>8)
	return
}

func issue(t *testing.T, g *Gate, r wire.Role, uses int, ttl time.Duration) string {
	t.Helper()
	token, err := g.Issue(r, uses, ttl)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func code(err error) string {
	r, ok := Refused(err)
	switch {
	case err == nil:
		return "in"
	case !ok:
		return fmt.Sprintf("%T", err)
	}
	return r.Code
}

func TestGate(t *testing.T) {
	g, c := newGate()
	one, three, view := issue(t, g, wire.Worker, 1, 0), issue(t, g, wire.Worker, 3, time.Minute),
		issue(t, g, wire.Viewer, 2, 24*time.Hour)
	sentences := map[string]bool{}
	step := func(what string, n int, r wire.Role, token, want string) {
		t.Helper()
		err := g.Admit(node(n), r, token)
		if got := code(err); got != want {
			t.Errorf("%s: %s (%v), want %s", what, got, err, want)
		}
		if err != nil {
			sentences[want+err.Error()] = true
		}
	}
	step("no token", 1, wire.Worker, "", wire.CodeTokenMissing)
	step("a guess", 1, wire.Worker, "aaaaaaaaaaaaaaaaaaaaaaaa", wire.CodeTokenUnknown)
	step("as operator", 1, wire.Operator, one, wire.CodeRole)
	step("as worker", 1, wire.Worker, strings.ToUpper(one), "in")
	step("again by its key", 1, wire.Worker, "", "in")
	step("again with its token", 1, wire.Worker, one, "in")
	step("again with another's", 1, wire.Worker, three, "in")
	step("replayed by another", 2, wire.Worker, one, wire.CodeTokenUsed)
	step("a worker is no operator", 1, wire.Operator, "", wire.CodeTokenMissing)
	step("a worker is no viewer", 1, wire.Viewer, "", wire.CodeTokenMissing)
	for i := 3; i < 6; i++ {
		step("of three", i, wire.Worker, three, "in")
	}
	step("the fourth", 6, wire.Worker, three, wire.CodeTokenSpent)
	g.Revoke(node(3))
	step("revoked, by its key", 3, wire.Worker, "", wire.CodeRevoked)
	step("revoked, with a token", 3, wire.Viewer, view, wire.CodeRevoked)
	c.t = c.t.Add(time.Minute)
	step("expired before spent", 6, wire.Worker, three, wire.CodeTokenExpired)
	c.t = c.t.Add(time.Hour)
	step("after the default of an hour", 7, wire.Worker, one, wire.CodeTokenExpired)
	step("an old worker after that", 1, wire.Worker, "", "in")
	step("a viewer", 8, wire.Viewer, view, "in")
	kinds := map[string]string{}
	for s := range sentences {
		kind, text, _ := strings.Cut(s, "refused: ")
		if len(text) < 30 || kinds[text] != "" {
			t.Errorf("%s says %q", kind, text)
		}
		kinds[text] = kind
	}
}

// TestGateSurvivesARestart: a restored gate has the same nodes, tokens and revocations.
func TestGateSurvivesARestart(t *testing.T) {
	g, c := newGate()
	token := issue(t, g, wire.Worker, 2, 0)
	for i := range 2 {
		if err := g.Admit(node(i), wire.Worker, token); err != nil {
			t.Fatal(err)
		}
	}
	g.Revoke(node(0))
	text, err := json.Marshal(g.State())
	if err != nil || strings.Contains(string(text), token) {
		t.Fatalf("%v: %s holds the token", err, text)
	}
	var s GateState
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	h := NewGate(c.now)
	h.Restore(s)
	if got := []string{code(h.Admit(node(0), wire.Worker, token)), code(h.Admit(node(1), wire.Worker, "")),
		code(h.Admit(node(2), wire.Worker, token))}; !reflect.DeepEqual(got,
		[]string{wire.CodeRevoked, "in", wire.CodeTokenSpent}) {
		t.Error(got)
	}
	s.Known[0].Role = wire.Operator // the gate copies the state that it is given
	if code(h.Admit(node(1), wire.Worker, "")) != "in" {
		t.Error("the state is shared")
	}
}

// TestGateAtOnce: concurrent admissions do not exceed the token's uses.
func TestGateAtOnce(t *testing.T) {
	g, _ := newGate()
	token := issue(t, g, wire.Worker, 10, 0)
	var in atomic.Int32
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			if g.Admit(node(i), wire.Worker, token) == nil {
				in.Add(1)
			}
		})
	}
	wg.Wait()
	if in.Load() != 10 {
		t.Errorf("%d came in on a token for 10", in.Load())
	}
}

func TestIssueRefuses(t *testing.T) {
	g, _ := newGate()
	for _, c := range []struct {
		r    wire.Role
		uses int
		ttl  time.Duration
	}{{0, 1, 0}, {4, 1, 0}, {wire.Worker, 0, 0}, {wire.Worker, -1, 0}, {wire.Worker, 1, -time.Second}} {
		if token, err := g.Issue(c.r, c.uses, c.ttl); err == nil || token != "" {
			t.Errorf("%+v gives %q", c, token)
		}
	}
	if a, b := issue(t, g, wire.Worker, 1, 0), issue(t, g, wire.Worker, 1, 0); a == b || len(a) < 24 {
		t.Errorf("tokens %q and %q", a, b)
	}
}

func TestJoinURLs(t *testing.T) {
	n := newKey(t).Node()
	for _, j := range []Join{{"host:4433", "abc234", n}, {"10.1.2.3:1", "x", n}, {"[::1]:65535", "y", n},
		{"[fe80::1%eth0]:4433", "z", n}, {"h:4433", "", n}} {
		if got, err := ParseJoin(" " + j.String() + "\n"); err != nil || got != j {
			t.Errorf("%s: %+v, %v", j, got, err)
		}
	}
	if got, err := ParseJoin("brood://h:1#" + n.String()); err != nil || got != (Join{"h:1", "", n}) {
		t.Errorf("without a token: %+v, %v", got, err)
	}
	for _, s := range []string{"", "http://h:1/t#" + n.String(), "brood://h:1/t", "brood://h:1/t#abc",
		"brood://h/t#" + n.String(), "brood://:1/t#" + n.String(), "brood://h:0/t#" + n.String(),
		"brood://h:65536/t#" + n.String(), "brood://h:x/t#" + n.String(), "brood://::1:4/t#" + n.String(),
		"brood://h:1/a/b#" + n.String(), "brood://h:1/" + strings.Repeat("t", 200) + "#" + n.String()} {
		if j, err := ParseJoin(s); err == nil || !strings.Contains(err.Error(), "is not a join URL") {
			t.Errorf("%q: %+v, %v", s, j, err)
		}
	}
	if _, err := ParseJoin("brood://h:1/secrettoken"); strings.Contains(err.Error(), "secrettoken") {
		t.Error("a token is shown:", err)
	}
	if _, err := ParseJoin("brood://h:1/secrettoken#x\x1b[31m"); strings.ContainsAny(err.Error(), "\x1b") ||
		strings.Contains(err.Error(), "secret") {
		t.Errorf("%q", err)
	}
}

func FuzzParseJoin(f *testing.F) {
	f.Add("brood://[::1]:4433/abc#" + node(7).String())
	f.Fuzz(func(t *testing.T, s string) {
		j, err := ParseJoin(s)
		if err != nil {
			return
		}
		if again, err := ParseJoin(j.String()); err != nil || again != j {
			t.Fatalf("%q gives %+v, then %+v, %v", s, j, again, err)
		}
	})
}

// TestReturn: a returned use admits another node, up to mostBack times; a node that was known before or was kept stays
// known.
func TestReturn(t *testing.T) {
	g, _ := newGate()
	one := issue(t, g, wire.Worker, 1, 0)
	for i := range mostBack {
		if err := g.Admit(node(i), wire.Worker, one); err != nil {
			t.Fatalf("node %d: %v", i, err)
		}
		g.Return(node(i), wire.Worker)
		g.Return(node(i), wire.Worker)
		if g.Knows(node(i)) {
			t.Errorf("node %d is known still", i)
		}
	}
	last := node(mostBack)
	if err := g.Admit(last, wire.Worker, one); err != nil {
		t.Fatal(err)
	}
	g.Return(last, wire.Worker)
	if err := g.Admit(node(99), wire.Worker, one); code(err) != wire.CodeTokenUsed || !g.Knows(last) {
		t.Errorf("after %d returns: %v", mostBack, err)
	}
	two := issue(t, g, wire.Worker, 1, 0)
	if err := g.Admit(node(100), wire.Worker, two); err != nil {
		t.Fatal(err)
	}
	g.Keep(node(100))
	g.Return(node(100), wire.Worker)
	if err := g.Admit(node(101), wire.Worker, two); code(err) != wire.CodeTokenUsed || !g.Knows(node(100)) {
		t.Errorf("after it was kept: %v", err)
	}
	if err := g.Admit(node(100), wire.Worker, ""); err != nil {
		t.Error(err)
	}
	g.Return(node(100), wire.Worker) // it was admitted by its key
	if !g.Knows(node(100)) {
		t.Error("a node that was known is not any more")
	}
}

// TestExpire: after Expire no token admits anyone, and keys that one has admitted still do, also after a restart.
func TestExpire(t *testing.T) {
	g, c := newGate()
	used, two := issue(t, g, wire.Worker, 1, 0), issue(t, g, wire.Viewer, 2, 0)
	old := issue(t, g, wire.Operator, 1, time.Minute)
	c.t = c.t.Add(2 * time.Minute)
	for n, token := range map[int]string{1: used, 2: two} {
		role := wire.Worker
		if n == 2 {
			role = wire.Viewer
		}
		if err := g.Admit(node(n), role, token); err != nil {
			t.Fatal(err)
		}
	}
	if n := g.Expire(); n != 1 {
		t.Errorf("%d tokens could still admit a node, want 1", n)
	}
	again := NewGate(c.now)
	again.Restore(g.State())
	for _, g := range []*Gate{g, again} {
		for token, role := range map[string]wire.Role{two: wire.Viewer, old: wire.Operator} {
			if err := g.Admit(node(3), role, token); code(err) != wire.CodeTokenExpired {
				t.Errorf("a revoked token of a %s: %v", role, err)
			}
		}
		if err := g.Admit(node(1), wire.Worker, ""); err != nil {
			t.Errorf("a known key: %v", err)
		}
		if err := g.Admit(node(3), wire.Viewer, issue(t, g, wire.Viewer, 1, 0)); err != nil {
			t.Errorf("a new token: %v", err)
		}
	}
}
