package launch

import (
	"fmt"
	"strconv"
	"strings"

	"brood/models/subprocess"
)

// SSH starts brood on other machines.
type SSH struct {
	Program []string // command on this machine, with options, such as ssh -F FILE
	Brood   string   // path or name of brood on the other machines
}

// Command returns the command line that runs brood with args on a host, without a terminal and without prompts. The
// args must not contain the join URL, since the process lists of both machines show them.
func (s SSH) Command(h Host, args ...string) []string {
	argv := append([]string{}, s.Program...)
	argv = append(argv, "-T", "-o", "BatchMode=yes")
	if h.Port != 0 {
		argv = append(argv, "-p", strconv.Itoa(h.Port))
	}
	return append(argv, "--", h.target(), subprocess.Quote(append([]string{s.Brood}, args...)...))
}

// target returns [USER@]HOST.
func (h Host) target() string {
	if h.User != "" {
		return h.User + "@" + h.Name
	}
	return h.Name
}

// Explain returns an error with the cause of the failure of a worker on a host, and a remedy. status is the exit status
// of ssh: 255 is a failure of ssh, 126 and 127 of the remote shell, others of brood. last is the last line of its
// output.
func (s SSH) Explain(h Host, status int, last string) error {
	by := strings.Join(s.Program, " ")
	if h.Port != 0 {
		by += fmt.Sprintf(" -p %d", h.Port)
	}
	target := h.target()
	switch {
	case status == 255 && strings.Contains(last, "Permission denied"):
		return fmt.Errorf("%s rejects your key (%s): put it into authorized_keys there, and try `%s -o BatchMode=yes %s "+
			"true`", h, last, by, target)
	case status == 255 && strings.Contains(last, "Host key verification failed"):
		return fmt.Errorf("%s is not among your known hosts (%s): compare its key once with `%s %s`", h, last, by, target)
	case status == 255:
		return fmt.Errorf("%s cannot be reached by ssh (%s): try `%s %s true`", h, last, by, target)
	case status == 127:
		return fmt.Errorf("%s has no %s (%s): copy this binary into the PATH that `%s %s env` shows, or give its path with "+
			"--brood PATH", h, s.Brood, last, by, target)
	case status == 126:
		return fmt.Errorf("%s cannot execute %s (%s): copy a binary for its operating system and processor there", h, s.Brood,
			last)
	}
	return fmt.Errorf("the worker on %s ended with status %d: %s", h, status, last)
}
