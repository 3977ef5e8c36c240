package objective

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"
)

// waits is a program in C whose candidates take a millisecond each, with little overhead.
func waits(b *testing.B, how ...string) Objective {
	if _, err := exec.LookPath("cc"); err != nil {
		b.Skip("needs a C compiler, cc")
	}
	path := filepath.Join(b.TempDir(), "wait")
	if out, err := exec.Command("cc", "-O2", "-o", path, "testdata/wait.c").CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	return Objective{Spec: Flat(100), Command: append([]string{path}, how...)}
}

// busy uses a core for a while.
func busy(d time.Duration) {
	for began := time.Now(); time.Since(began) < d; {
	}
}

// BenchmarkProtocol measures the overhead of the protocol for candidates of a millisecond: 64 concurrent ones that
// sleep, in tasks of 4096 and of 64, and ones that keep each core busy, compared with goroutines doing the same.
func BenchmarkProtocol(b *testing.B) {
	for _, c := range []struct {
		name         string
		how          []string
		processes, n int
	}{{"asleep/4096", nil, 64, 4096}, {"asleep/64", nil, 64, 64},
		{"busy/1024", []string{"busy"}, runtime.NumCPU(), 1024}} {
		b.Run(c.name, func(b *testing.B) {
			o := waits(b, c.how...)
			o.Spec.Processes = c.processes
			e := open(b, o, 1)
			candidates(b, e, c.n, 1)
			alike := time.Sleep
			if c.how != nil {
				alike = busy
			}
			var with, without time.Duration
			for b.Loop() {
				began := time.Now()
				candidates(b, e, c.n, 1)
				with += time.Since(began)
				each := c.n / c.processes
				began = time.Now()
				var all sync.WaitGroup
				for range c.processes {
					all.Go(func() {
						for range min(each, batchesPerProcess) {
							alike(time.Duration(each/min(each, batchesPerProcess)) * time.Millisecond)
						}
					})
				}
				all.Wait()
				without += time.Since(began)
			}
			b.ReportMetric(100*(with-without).Seconds()/without.Seconds(), "%lost")
		})
	}
}
