package machine

import (
	"fmt"
	"os"
	"os/exec"
	goruntime "runtime"
	"strconv"
	"strings"
	"testing"
)

// TestPeakMemory: the peak is that of this process, without the process that started it.
func TestPeakMemory(t *testing.T) {
	const child = "BROOD_TEST_PEAK"
	if os.Getenv(child) != "" {
		fmt.Printf("peak %d\n", PeakMemory())
		return
	}
	if goruntime.GOOS != "linux" {
		t.Skip("only Linux tells it exactly")
	}
	const size = 256 << 20
	block := make([]byte, size)
	for i := 0; i < size; i += 4096 {
		block[i] = 1
	}
	own := PeakMemory()
	goruntime.KeepAlive(block)
	if own < size {
		t.Fatalf("%d bytes were touched, and the peak is %d", size, own)
	}
	c := exec.Command(os.Args[0], "-test.run=^TestPeakMemory$", "-test.v")
	c.Env = append(os.Environ(), child+"=1")
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(out), "peak ")
	line, _, _ := strings.Cut(rest, "\n")
	if peak, err := strconv.ParseInt(line, 10, 64); err != nil || peak <= 0 || peak > size {
		t.Errorf("the child says %q of its own peak: %v", line, err)
	}
}
