//go:build unix

package objective

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"brood/models/subprocess"
)

// mapping are programs that may read parameters from shared memory.
var mapping = map[string]func(how string){"sum": sum, "shared": sum, "shared only": sum, "cut off": sum}

// sum is a program whose fitness is the seed minus the sum of squares. It reads parameters from the pipe, or requests
// shared memory.
func sum(how string) {
	in, mapped, buf := bufio.NewReaderSize(os.Stdin, 1<<16), []byte(nil), []byte(nil)
	say := func(p []byte) {
		if _, err := os.Stdout.Write(subprocess.EndFrame(p)); err != nil {
			panic(err)
		}
	}
	for {
		var head [5]byte
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return
		}
		if n := int(order.Uint32(head[:])) - 1; cap(buf) < n {
			buf = make([]byte, n)
		} else {
			buf = buf[:n]
		}
		if _, err := io.ReadFull(in, buf); err != nil {
			return
		}
		switch head[4] {
		case kindHello:
			p := order.AppendUint32(subprocess.BeginFrame(nil, kindReady), protocolVersion)
			if how != "sum" {
				p = order.AppendUint32(order.AppendUint32(p, 0), wishShared)
			}
			say(p)
		case kindMemory:
			f, err := os.Open(string(buf[12:]))
			if err != nil {
				panic(err)
			}
			if how == "cut off" {
				_ = os.Truncate(f.Name(), 0)
				continue
			}
			if mapped, err = syscall.Mmap(int(f.Fd()), 0, int(order.Uint64(buf)), syscall.PROT_READ,
				syscall.MAP_SHARED); err != nil {
				panic(err)
			}
		case kindBatch, kindShared:
			n, width := int(order.Uint32(buf)), int(order.Uint32(buf[4:]))
			ids, rows := buf[8:], buf[min(len(buf), 8+16*n):]
			if head[4] == kindShared {
				ids, rows = buf[16:], mapped[min(len(mapped), int(order.Uint64(buf[8:]))):]
				if how == "cut off" {
					fmt.Fprint(os.Stderr, "the memory is gone")
					os.Exit(3)
				}
			} else if how == "shared only" {
				os.Exit(3)
			}
			x := unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(rows))), n*width)
			p := order.AppendUint32(subprocess.BeginFrame(nil, kindResults), uint32(n))
			for i := range n {
				f := float64(order.Uint64(ids[16*i+8:]))
				for _, v := range x[i*width : (i+1)*width] {
					f -= float64(v) * float64(v)
				}
				p = order.AppendUint64(p, order.Uint64(ids[16*i:]))
				p = order.AppendUint64(p, math.Float64bits(f))
			}
			say(p)
		}
	}
}

// left returns the files that objectives have left in memory.
func left(t testing.TB) (files []string) {
	for _, dir := range memoryDirs() {
		all, err := filepath.Glob(filepath.Join(dir, "brood-objective-*"))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, all...)
	}
	return files
}

// TestSharedMemory: a program reads the same parameters from shared memory as from the pipe, batch after batch, and no
// file remains.
func TestSharedMemory(t *testing.T) {
	before := left(t)
	for _, params := range []int{3, 5000} {
		want := open(t, program(t, "sum", Flat(params)), 1)
		for _, threads := range []int{1, 3} {
			e := open(t, program(t, "shared only", Flat(params)), threads)
			for range 3 {
				have, same := candidates(t, e, 500, 1, 2, 3), candidates(t, want, 500, 1, 2, 3)
				if !slices.Equal(have, same) {
					t.Fatalf("%d parameters on %d programs: fitness differs, the first %v and %v", params, threads, have[0], same[0])
				}
			}
			if e.Notes() != nil {
				t.Errorf("notes %q", e.Notes())
			}
		}
	}
	for _, f := range left(t) {
		if !slices.Contains(before, f) {
			t.Errorf("%s is left", f)
		}
	}
}

// TestNoSharedMemory: without a file, or with a full one, batches use the pipe; a program that truncates the file harms
// only itself.
func TestNoSharedMemory(t *testing.T) {
	want := candidates(t, open(t, program(t, "sum", Flat(3)), 1), 8, 1)
	e := open(t, program(t, "shared", Flat(3)), 1)
	e.executors[0].p.memory.slot = 4 // too short for a row
	if have := candidates(t, e, 8, 1); !slices.Equal(have, want) {
		t.Errorf("%v, want %v", have, want)
	}
	e = open(t, program(t, "cut off", Flat(3)), 1)
	if have := candidates(t, e, 2, 1); have[0] == have[0] {
		t.Errorf("%v, want missing results", have)
	}
	if notes := missingNotes(e); len(notes) != 1 || !strings.Contains(notes[0].Text, "the memory is gone") {
		t.Errorf("notes %q", notes)
	}
}

// BenchmarkWays measures a candidate from its noise to its fitness with a program that adds up squares: through the
// pipe, and through shared memory.
func BenchmarkWays(b *testing.B) {
	for _, params := range []int{100, 10_000, 1_000_000} {
		for _, how := range []string{"sum", "shared"} {
			b.Run(fmt.Sprintf("%s/%d", how, params), func(b *testing.B) {
				e := open(b, program(b, how, Flat(params)), 1)
				n := 8 * maxRowsOf(params)
				candidates(b, e, n, 1)
				for b.Loop() {
					candidates(b, e, n, 1)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/candidate")
			})
		}
	}
}
