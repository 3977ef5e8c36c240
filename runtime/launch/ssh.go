package launch

import (
	"fmt"
	"strconv"
	"strings"
)

// SSH starts brood on other machines.
type SSH struct {
	Program []string // of this machine, with options of its own: ssh -F FILE
	Brood   string   // path or name of brood on the other machines
}

// Command is the command line that runs brood with args on a host, without a terminal and without questions. The join
// URL is never among args: both machines' process lists show them.
func (s SSH) Command(h Host, args ...string) []string {
	argv := append([]string{}, s.Program...)
	argv = append(argv, "-T", "-o", "BatchMode=yes")
	if h.Port != 0 {
		argv = append(argv, "-p", strconv.Itoa(h.Port))
	}
	target := h.Name
	if h.User != "" {
		target = h.User + "@" + h.Name
	}
	remote := []string{quote(s.Brood)}
	for _, a := range args {
		remote = append(remote, quote(a))
	}
	return append(argv, "--", target, strings.Join(remote, " "))
}

// quote makes a word one word of a POSIX shell, which is what sshd hands the command to.
func quote(word string) string {
	if bare := strings.ReplaceAll(word, "/", ""); word != "" && plain(bare) == bare {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Explain says why a worker on a host has failed. status is that of ssh: its own failures are 255, 126 and 127 are the
// other machine's shell, and others brood's; said is what it wrote last.
func (s SSH) Explain(h Host, status int, said string) error {
	by := strings.Join(s.Program, " ")
	if h.Port != 0 {
		by += fmt.Sprintf(" -p %d", h.Port)
	}
	target := h.Name
	if h.User != "" {
		target = h.User + "@" + h.Name
	}
	switch {
	case status == 255 && strings.Contains(said, "Permission denied"):
		return fmt.Errorf("%s rejects your key (%s): put it into authorized_keys there, and try `%s -o BatchMode=yes %s true`", h, said, by, target)
	case status == 255 && strings.Contains(said, "Host key verification failed"):
		return fmt.Errorf("%s is not among your known hosts (%s): compare its key once with `%s %s`", h, said, by, target)
	case status == 255:
		return fmt.Errorf("%s cannot be reached by ssh (%s): try `%s %s true`", h, said, by, target)
	case status == 127:
		return fmt.Errorf("%s has no %s (%s): copy this binary into the PATH that `%s %s env` shows, or say where it is with --brood PATH", h, s.Brood, said, by, target)
	case status == 126:
		return fmt.Errorf("%s cannot execute %s (%s): copy a binary for its operating system and processor there", h, s.Brood,
			said)
	}
	return fmt.Errorf("the worker on %s has ended with status %d: %s", h, status, said)
}
