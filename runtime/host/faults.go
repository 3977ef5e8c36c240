package host

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// FaultsFile is the name of the file in a session with the stacks of panics that brood recovered from while it trained,
// for bug reports.
const FaultsFile = "faults.txt"

// maxFaults is the size in bytes at which the file stops growing: a peer could cause faults repeatedly.
const maxFaults = 1 << 20

// fault appends a stack to the file. It ignores write errors: the fault itself is reported elsewhere.
func (r *Run) fault(what any, stack []byte) {
	f, err := os.OpenFile(filepath.Join(r.Session.Dir(), FaultsFile), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() < maxFaults {
		_, _ = fmt.Fprintf(f, "%s: %v\n%s\n", time.Now().UTC().Format(time.RFC3339), what, stack)
	}
}
