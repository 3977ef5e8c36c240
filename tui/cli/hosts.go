package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"brood/models/usererr"
	"brood/transport/identity"
	"brood/transport/wire"
)

// hostLine is a machine whose runs the list shows, or one run elsewhere, as the file of hosts has it.
type hostLine struct {
	Name    string `toml:"name"`
	SSH     string `toml:"ssh"`     // whom ssh is to reach
	URL     string `toml:"url"`     // of a run, for a viewer or an operator
	Command string `toml:"command"` // the program there; "" is brood
}

const (
	hostsVariable = "BROOD_HOSTS"
	hostsFile     = "hosts.toml"
	hostsMost     = 64 << 10 // bytes of the file
)

// hostsPath is the file that names hosts: $BROOD_HOSTS, else hosts.toml in this user's configuration of brood. It need
// not exist, unless somebody named it.
func hostsPath() (path string, named bool, err error) {
	if path := os.Getenv(hostsVariable); path != "" {
		return path, true, nil
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", false, nil // a user without a home has no such file
	}
	return filepath.Join(dir, "brood", hostsFile), false, nil
}

// readHosts are the hosts of the file, in its order. An error is of a file that somebody named or wrote.
func readHosts() ([]hostLine, error) {
	path, named, err := hostsPath()
	if err != nil || path == "" {
		return nil, err
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) && !named {
		return nil, nil
	}
	if err != nil {
		return nil, usererr.Errorf("hosts: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, hostsMost+1))
	if err != nil {
		return nil, fmt.Errorf("hosts: %w", err)
	}
	if len(text) > hostsMost {
		return nil, usererr.Errorf("hosts: %s has more than %d bytes: it is no list of hosts", path, hostsMost)
	}
	hosts, err := parseHosts(text)
	if err != nil {
		return nil, usererr.Errorf("hosts: %s: %w", path, err)
	}
	return hosts, nil
}

// parseHosts reads the text of a file of hosts.
func parseHosts(text []byte) ([]hostLine, error) {
	var file struct {
		Host []hostLine `toml:"host"`
	}
	d := toml.NewDecoder(strings.NewReader(string(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(&file); err != nil {
		var strict *toml.StrictMissingError
		if errors.As(err, &strict) {
			row, _ := strict.Errors[0].Position()
			return nil, fmt.Errorf("line %d: no such key: a [[host]] has name, and ssh or url, and command", row)
		}
		var wrong *toml.DecodeError
		if errors.As(err, &wrong) {
			row, _ := wrong.Position()
			return nil, fmt.Errorf("line %d: %s", row, strings.TrimPrefix(wrong.Error(), "toml: "))
		}
		return nil, err
	}
	seen := map[string]bool{}
	for i, h := range file.Host {
		if err := h.check(); err != nil {
			return nil, fmt.Errorf("host %d: %w", i+1, err)
		}
		if seen[h.Name] {
			return nil, fmt.Errorf("host %d: another one is called %q too", i+1, h.Name)
		}
		seen[h.Name] = true
	}
	return file.Host, nil
}

// sshTarget is what may stand for a machine on ssh's command line.
var sshTarget = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.@:%+\[\]/-]*$`)

func (h hostLine) check() error {
	switch {
	case h.Name == "":
		return errors.New(`it has no name: write name = "lab"`)
	case wire.CleanName(h.Name) != h.Name || strings.ContainsAny(h.Name, "/ "):
		return fmt.Errorf("name %q: take letters and digits, 64 at most, without blanks", h.Name)
	case (h.SSH == "") == (h.URL == ""):
		return fmt.Errorf("%s has to have one of ssh and url", h.Name)
	case h.URL != "" && h.Command != "":
		return fmt.Errorf("%s: command is the program at the other end of ssh; a url needs none", h.Name)
	case h.SSH != "" && !sshTarget.MatchString(h.SSH):
		return fmt.Errorf("%s: ssh = %q: write what ssh takes for a machine, such as ada@lab", h.Name, h.SSH)
	}
	if h.URL != "" {
		if _, err := identity.ParseJoin(h.URL); err != nil {
			return fmt.Errorf("%s: %w", h.Name, err)
		}
	}
	return nil
}
