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

	"brood/models/tomlerr"
	"brood/models/usererr"
	"brood/transport/identity"
	"brood/transport/wire"
)

// hostLine is an entry of the hosts file: a machine whose runs the list shows, or a single remote run.
type hostLine struct {
	Name    string `toml:"name"`
	SSH     string `toml:"ssh"`     // destination for ssh, such as ada@lab; exclusive with URL
	URL     string `toml:"url"`     // join URL of a run, for a viewer or an operator
	Command string `toml:"command"` // program on the machine; "": brood
}

const (
	hostsVariable = "BROOD_HOSTS"
	hostsFile     = "hosts.toml"
	maxHostsBytes = 64 << 10 // of the file
)

// hostsPath returns the path of the hosts file: $BROOD_HOSTS, or hosts.toml in the user's configuration directory of
// brood. named reports that the variable is set; only then must the file exist. path is "" for a user without a
// configuration directory.
func hostsPath() (path string, named bool) {
	if path := os.Getenv(hostsVariable); path != "" {
		return path, true
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", false // no home directory
	}
	return filepath.Join(dir, "brood", hostsFile), false
}

// readHosts returns the hosts of the file, in file order. It returns none if the default file does not exist, and an
// error if the file named by $BROOD_HOSTS does not, or if the file is unreadable or invalid.
func readHosts() ([]hostLine, error) {
	path, named := hostsPath()
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) && !named {
		return nil, nil
	}
	if err != nil {
		return nil, usererr.Errorf("hosts: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxHostsBytes+1))
	if err != nil {
		return nil, fmt.Errorf("hosts: %w", err)
	}
	if len(text) > maxHostsBytes {
		return nil, usererr.Errorf("hosts: %s is larger than %d bytes: it is not a list of hosts", path, maxHostsBytes)
	}
	hosts, err := parseHosts(text)
	if err != nil {
		return nil, usererr.Errorf("hosts: %s: %w", path, err)
	}
	return hosts, nil
}

// parseHosts parses and validates a hosts file. Names are unique. Errors give the line or the number of the host.
func parseHosts(text []byte) ([]hostLine, error) {
	var file struct {
		Host []hostLine `toml:"host"`
	}
	err := tomlerr.Decode(text, &file)
	if _, ok := errors.AsType[*tomlerr.UnknownError](err); ok {
		return nil, fmt.Errorf("%w: a [[host]] has name, and ssh or url, and command", err)
	}
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for i, h := range file.Host {
		if err := h.check(); err != nil {
			return nil, fmt.Errorf("host %d: %w", i+1, err)
		}
		if seen[h.Name] {
			return nil, fmt.Errorf("host %d: the name %q is used twice", i+1, h.Name)
		}
		seen[h.Name] = true
	}
	return file.Host, nil
}

// sshTarget matches the accepted destinations of ssh. They cannot start with a dash, which ssh would read as an option.
var sshTarget = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.@:%+\[\]/-]*$`)

func (h hostLine) check() error {
	switch {
	case h.Name == "":
		return errors.New(`no name: write name = "lab"`)
	case wire.CleanName(h.Name) != h.Name || strings.ContainsAny(h.Name, "/ "):
		return fmt.Errorf("name %q: use letters and digits, at most 64, without blanks", h.Name)
	case (h.SSH == "") == (h.URL == ""):
		return fmt.Errorf("%s needs either ssh or url", h.Name)
	case h.URL != "" && h.Command != "":
		return fmt.Errorf("%s: command applies to ssh: leave it out with url", h.Name)
	case h.SSH != "" && !sshTarget.MatchString(h.SSH):
		return fmt.Errorf("%s: ssh = %q: give a destination for ssh, such as ada@lab", h.Name, h.SSH)
	}
	if h.URL != "" {
		if _, err := identity.ParseJoin(h.URL); err != nil {
			return fmt.Errorf("%s: %w", h.Name, err)
		}
	}
	return nil
}
