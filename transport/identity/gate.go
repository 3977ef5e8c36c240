package identity

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"brood/transport/wire"
)

// TokenTTL is the default lifetime of a token.
const TokenTTL = time.Hour

// forgotten is how long an expired token is still refused as expired, not as unknown.
const forgotten = 24 * time.Hour

// Gate admits nodes by a known key or by a token. It stores hashes of tokens, not tokens. It is safe for concurrent
// use.
type Gate struct {
	now func() time.Time

	mu    sync.Mutex
	s     GateState
	fresh map[wire.NodeID][32]byte // nodes admitted by a token, with its hash, until Keep or Return
}

// GateState is the gate's state as plain data: a coordinator saves it, so that its workers can reconnect after a
// restart.
type GateState struct {
	Tokens  []Token
	Known   []Known
	Revoked []wire.NodeID
}

// Token describes an issued token.
type Token struct {
	Hash    [32]byte
	Role    wire.Role
	Uses    int // total number of admissions
	Used    int
	Back    int `json:",omitempty"` // number of uses that Return gave back
	Expires time.Time
}

// Known is a node that was admitted.
type Known struct {
	Node wire.NodeID
	Role wire.Role
}

// NewGate returns a gate without known nodes or tokens. It reads the time from now.
func NewGate(now func() time.Time) *Gate { return &Gate{now: now} }

// Restore replaces the gate's state.
func (g *Gate) Restore(s GateState) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.s = s.clone()
}

// State returns a copy of the gate's state.
func (g *Gate) State() GateState {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.s.clone()
}

func (s GateState) clone() GateState {
	return GateState{slices.Clone(s.Tokens), slices.Clone(s.Known), slices.Clone(s.Revoked)}
}

// Issue creates a token that admits uses peers of a role within ttl; 0 is TokenTTL.
func (g *Gate) Issue(role wire.Role, uses int, ttl time.Duration) (string, error) {
	if role < wire.Worker || role > wire.Operator {
		return "", fmt.Errorf("issue a token: %s is unknown", role)
	}
	if uses < 1 || ttl < 0 {
		return "", fmt.Errorf("issue a token: %d admissions within %s: both must be positive", uses, ttl)
	}
	if ttl == 0 {
		ttl = TokenTTL
	}
	secret := make([]byte, 15)
	if _, err := rand.Read(secret); err != nil {
		return "", fmt.Errorf("issue a token: %w", err)
	}
	token := strings.ToLower(base32.StdEncoding.EncodeToString(secret))
	g.mu.Lock()
	defer g.mu.Unlock()
	g.s.Tokens = slices.DeleteFunc(g.s.Tokens, func(t Token) bool { return g.now().Sub(t.Expires) > forgotten })
	g.s.Tokens = append(g.s.Tokens, Token{Hash: hash(token), Role: role, Uses: uses, Expires: g.now().Add(ttl)})
	return token, nil
}

func hash(token string) [32]byte { return sha256.Sum256([]byte(strings.ToLower(token))) }

// Admit admits a node, or returns a wire.Refused. A node admitted before in this role needs no token and uses none up.
func (g *Gate) Admit(node wire.NodeID, role wire.Role, token string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if slices.Contains(g.s.Revoked, node) {
		return revoked(node)
	}
	// A token's role must match, even if the node is known.
	if i := g.find(hash(token)); token != "" && i >= 0 && g.s.Tokens[i].Role != role {
		return refuse(wire.CodeRole, "the token is for the role %s, not for %s: ask for a join URL of that role",
			g.s.Tokens[i].Role, role)
	}
	if slices.Contains(g.s.Known, Known{node, role}) {
		return nil
	}
	if token == "" {
		return refuse(wire.CodeTokenMissing, "the key %s is unknown here: a new %s needs the join URL with its token",
			node.Short(), role)
	}
	i := g.find(hash(token))
	if i < 0 {
		return refuse(wire.CodeTokenUnknown,
			"the token is unknown: it is mistyped or of another run; copy the join URL that brood serve prints")
	}
	t := &g.s.Tokens[i]
	switch {
	case !g.now().Before(t.Expires):
		return refuse(wire.CodeTokenExpired, "the token expired at %s by the server's clock: ask for a new join URL",
			t.Expires.UTC().Format(time.DateTime+" UTC"))
	case t.Used >= t.Uses && t.Uses == 1:
		return refuse(wire.CodeTokenUsed,
			"the token admits one %s and another key has used it: ask for a new join URL, or start brood serve with --enrol N",
			role)
	case t.Used >= t.Uses:
		return refuse(wire.CodeTokenSpent,
			"the token has admitted the %d peers that it was issued for: ask for a new join URL, or start brood serve with a "+
				"larger --enrol", t.Uses)
	}
	t.Used++
	g.s.Known = append(g.s.Known, Known{node, role})
	if g.fresh == nil {
		g.fresh = map[wire.NodeID][32]byte{}
	}
	g.fresh[node] = t.Hash
	return nil
}

// mostBack is the largest number of times that uses of one token are given back: a holder could otherwise connect with
// it forever.
const mostBack = 16

// Return undoes the admission of a node by a token, unless Keep was called: the token's use is restored, and the node
// needs a token again. It does nothing for a node that was admitted by its key.
func (g *Gate) Return(node wire.NodeID, role wire.Role) {
	g.mu.Lock()
	defer g.mu.Unlock()
	h, ok := g.fresh[node]
	if delete(g.fresh, node); !ok {
		return
	}
	i := g.find(h)
	if i < 0 || g.s.Tokens[i].Role != role || g.s.Tokens[i].Back >= mostBack {
		return
	}
	g.s.Tokens[i].Used--
	g.s.Tokens[i].Back++
	g.s.Known = slices.DeleteFunc(g.s.Known, func(k Known) bool { return k == Known{node, role} })
}

// Keep makes an admission final: later calls of Return do nothing.
func (g *Gate) Keep(node wire.NodeID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.fresh, node)
}

// find compares with every token, so that its time does not depend on the tokens.
func (g *Gate) find(h [32]byte) int {
	at := -1
	for i := range g.s.Tokens {
		at = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(h[:], g.s.Tokens[i].Hash[:]), i, at)
	}
	return at
}

// Expire ends the validity of all tokens and returns how many could still have admitted a node. Known nodes stay.
func (g *Gate) Expire() (n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range g.s.Tokens {
		if t := &g.s.Tokens[i]; g.now().Before(t.Expires) {
			if t.Expires = g.now(); t.Used < t.Uses {
				n++
			}
		}
	}
	return n
}

// Knows reports whether a node was admitted before in any role and is not revoked.
func (g *Gate) Knows(node wire.NodeID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.ContainsFunc(g.s.Known, func(k Known) bool { return k.Node == node }) &&
		!slices.Contains(g.s.Revoked, node)
}

// Revoke refuses a node from now on in every role. The caller closes its connections.
func (g *Gate) Revoke(node wire.NodeID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.s.Known = slices.DeleteFunc(g.s.Known, func(k Known) bool { return k.Node == node })
	delete(g.fresh, node)
	if !slices.Contains(g.s.Revoked, node) {
		g.s.Revoked = append(g.s.Revoked, node)
	}
}

// Revoked reports whether a node was revoked.
func (g *Gate) Revoked(node wire.NodeID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Contains(g.s.Revoked, node)
}

func revoked(node wire.NodeID) error {
	return refuse(wire.CodeRevoked, "the key %s was revoked: use another key and ask for a new join URL", node.Short())
}

func refuse(code, format string, args ...any) error {
	return wire.Refused{Code: code, Reason: fmt.Sprintf(format, args...)}
}

// Refused returns err as a wire.Refused, if it is one.
func Refused(err error) (wire.Refused, bool) {
	return errors.AsType[wire.Refused](err)
}
