package host

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// FaultsFile of a session holds the stacks of mistakes of brood's own that were caught while it trained: for the
// report.
const FaultsFile = "faults.txt"

// mostFaults is how long the file grows: whoever provokes a fault can do so again.
const mostFaults = 1 << 20

// fault keeps a stack. Where it cannot be written only the stack is lost: that there was a fault is said elsewhere.
func (r *Run) fault(what any, stack []byte) {
	f, err := os.OpenFile(filepath.Join(r.Session.Dir(), FaultsFile), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() < mostFaults {
		_, _ = fmt.Fprintf(f, "%s: %v\n%s\n", time.Now().UTC().Format(time.RFC3339), what, stack)
	}
}
