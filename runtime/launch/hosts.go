package launch

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
)

// Host is a machine that ssh connects to.
type Host struct {
	User  string // "": the default of ssh
	Name  string
	Port  int // 0: the default of ssh
	Slots int // workers to start there, 1 or more
}

// String returns [USER@]HOST[:PORT].
func (h Host) String() string {
	s := h.Name
	if h.Port != 0 {
		s = net.JoinHostPort(h.Name, strconv.Itoa(h.Port))
	}
	if h.User != "" {
		s = h.User + "@" + s
	}
	return s
}

// Slots returns the number of workers to start on the hosts.
func Slots(hosts []Host) (n int) {
	for _, h := range hosts {
		n += h.Slots
	}
	return n
}

// ParseHosts parses [USER@]HOST[:PORT],... A host that is listed several times has as many slots.
func ParseHosts(list string) (out []Host, err error) {
	for word := range strings.SplitSeq(list, ",") {
		h := Host{Slots: 1}
		rest := strings.TrimSpace(word)
		if user, after, ok := strings.Cut(rest, "@"); ok {
			h.User, rest = user, after
			if !name(user) {
				return nil, fmt.Errorf("%q is not a host: write [USER@]HOST[:PORT], with commas between hosts", word)
			}
		}
		h.Name = strings.TrimSuffix(strings.TrimPrefix(rest, "["), "]")
		if host, port, err := net.SplitHostPort(rest); err == nil {
			n, err := strconv.Atoi(port)
			if err != nil || n < 1 || n > 65535 {
				return nil, fmt.Errorf("%q: %q is not a port", word, port)
			}
			h.Name, h.Port = host, n
		}
		if !name(h.Name) && net.ParseIP(h.Name) == nil {
			return nil, fmt.Errorf("%q is not a host: write [USER@]HOST[:PORT], with commas between hosts", word)
		}
		out = add(out, h)
	}
	return within(out)
}

// ParseHostfile parses a hostfile of Open MPI ("[USER@]HOST [slots=N] [max_slots=N]"), of MPICH's hydra ("HOST[:N]") or
// of PBS (a line for each slot). # starts a comment. The slots of a host that is listed several times are added.
//
// Sources: "The hostfile option" of Open MPI's prte-map(1); "Using Hydra" of the MPICH wiki.
func ParseHostfile(r io.Reader) (out []Host, err error) {
	lines := bufio.NewScanner(r)
	for at := 1; lines.Scan(); at++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		h, err := parseLine(words)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", at, err)
		}
		out = add(out, h)
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("the file names no host: write one in each line, as HOST slots=N or HOST:N")
	}
	return within(out)
}

func parseLine(words []string) (Host, error) {
	h := Host{Slots: 1}
	rest := words[0]
	if user, after, ok := strings.Cut(rest, "@"); ok {
		if h.User, rest = user, after; !name(user) {
			return h, fmt.Errorf("%q is not a user name", user)
		}
	}
	slots := ""
	if h.Name = rest; net.ParseIP(rest) == nil { // an IPv6 address contains colons
		h.Name, slots, _ = strings.Cut(rest, ":")
		if !name(h.Name) {
			return h, fmt.Errorf("%q is not a host", rest)
		}
		if strings.HasSuffix(rest, ":") {
			return h, fmt.Errorf("%q: write HOST:N, with N slots", rest)
		}
	}
	most := ""
	for _, w := range words[1:] {
		key, value, _ := strings.Cut(w, "=")
		switch key = strings.ReplaceAll(key, "-", "_"); {
		case value != "" && key == "slots" && slots == "":
			slots = value
		case value != "" && key == "max_slots" && most == "":
			most = value
		default:
			return h, fmt.Errorf("%q is unknown: after the host, give slots=N and max_slots=N at most once each", w)
		}
	}
	for _, v := range []string{slots, most} {
		if n, err := strconv.Atoi(v); v != "" && (err != nil || n < 1 || n > MaxSize) {
			return h, fmt.Errorf("%s has %q slots: want a whole number from 1 to %d", h.Name, v, MaxSize)
		}
	}
	if slots != "" {
		h.Slots, _ = strconv.Atoi(slots)
	}
	if n, _ := strconv.Atoi(most); most != "" && n < h.Slots {
		return h, fmt.Errorf("%s has %d slots, more than max_slots=%d", h.Name, h.Slots, n)
	}
	return h, nil
}

// name returns whether a word can name a host or a user: it is neither an option of ssh nor special to a shell.
func name(word string) bool {
	return word != "" && word[0] != '-' && plain(word) == word
}

func add(hosts []Host, h Host) []Host {
	i := slices.IndexFunc(hosts, func(o Host) bool { return o.User == h.User && o.Name == h.Name && o.Port == h.Port })
	if i < 0 {
		return append(hosts, h)
	}
	hosts[i].Slots += h.Slots
	return hosts
}

func within(hosts []Host) ([]Host, error) {
	if n := Slots(hosts); n > MaxSize {
		return nil, fmt.Errorf("the hosts have %d slots: a fleet has at most %d workers", n, MaxSize)
	}
	return hosts, nil
}
