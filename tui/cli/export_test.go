package cli

import (
	"errors"
	"net"
	"os"
	"strings"
	"testing"
)

// TestWritableRefuses: --force replaces a file, and neither a directory nor what is no file, such as a device.
func TestWritableRefuses(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	l, err := net.Listen("unix", "socket")
	if err != nil {
		t.Skip(err)
	}
	defer l.Close()
	if err := errors.Join(os.Mkdir("folder", 0o700), os.WriteFile("file", nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		file  string
		force bool
		want  string
	}{
		{"new", false, ""}, {"file", true, ""}, {"file", false, "file exists"},
		{"folder", true, "folder cannot be written: is a directory: name another file with -o"},
		{"socket", true, "socket cannot be written: it is not a regular file"},
		{"socket", false, "socket cannot be written: it is not a regular file"},
	} {
		err := writable(c.file, c.force)
		if err != nil && !strings.HasPrefix(err.Error(), c.want) || (err == nil) != (c.want == "") {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
