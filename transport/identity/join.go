package identity

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"brood/transport/wire"
)

// Join is the content of a join URL: an address, a token and the server's node id.
type Join struct {
	Address string // host:port
	Token   string
	Server  wire.NodeID
}

const scheme = "brood://"

// String returns brood://HOST:PORT/TOKEN#KEYHASH.
func (j Join) String() string { return scheme + j.Address + "/" + j.Token + "#" + j.Server.String() }

// ParseJoin parses a join URL. The token may be missing: a worker that was admitted before needs none.
func ParseJoin(s string) (Join, error) {
	bad := func(what string) (Join, error) {
		return Join{}, fmt.Errorf("%q is not a join URL: %s; it looks like %sHOST:PORT/TOKEN#KEYHASH and brood serve "+
			"prints it (quote it in a shell)", redact(s), what, scheme)
	}
	rest, ok := strings.CutPrefix(strings.TrimSpace(s), scheme)
	if !ok {
		return bad("it does not begin with " + scheme)
	}
	rest, hash, ok := strings.Cut(rest, "#")
	if !ok {
		return bad("the hash of the server's key is missing")
	}
	server, err := wire.ParseNodeID(hash)
	if err != nil {
		return bad("the hash of the server's key must have 52 letters and digits")
	}
	address, token, _ := strings.Cut(rest, "/")
	if strings.ContainsAny(token, "/?& ") || len(token) > 128 {
		return bad("its token is malformed")
	}
	host, port, err := net.SplitHostPort(address)
	if n, e := strconv.Atoi(port); err != nil || host == "" || e != nil || n < 1 || n > 65535 {
		return bad("it has no HOST:PORT")
	}
	return Join{net.JoinHostPort(host, port), token, server}, nil
}

// redact removes the token of a mistyped URL, for messages and logs.
func redact(s string) string {
	s = wire.CleanText(s)
	body, ok := strings.CutPrefix(s, scheme)
	if !ok {
		return s[:min(len(s), 20)]
	}
	address, _, found := strings.Cut(body, "/")
	if found {
		address += "/..."
	}
	return scheme + address
}
