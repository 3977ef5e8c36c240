package session

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"brood/models/longtest"
	"brood/runtime/testutil"
)

// TestMain: as a child process the test binary appends commits to a session until it is killed, and prints each number
// after Append has returned.
func TestMain(m *testing.M) {
	dir := os.Getenv("BROOD_SESSION_CHILD")
	if dir == "" {
		os.Exit(m.Run())
	}
	o := defaults()
	o.segment = 50_000
	s, err := open(dir, o)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	r, _ := OpenReader(dir)
	for i := r.Records() + 1; ; i++ {
		if err := s.Append(commit(i)); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		if i%10 == 0 {
			_ = s.AppendKeyframe(make([]byte, 5000))
		}
		fmt.Println(i)
	}
}

func child(t *testing.T, dir string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), "BROOD_SESSION_CHILD="+dir)
	out, err := c.StdoutPipe()
	check(t, errors.Join(err, c.Start()))
	late := time.AfterFunc(testutil.Timeout, func() { _ = c.Process.Kill() }) // a child that hangs prints nothing
	t.Cleanup(func() { late.Stop() })
	return c, bufio.NewScanner(out)
}

// TestKill: records that Append acknowledged before a kill -9 are in the log, and the lock ends with its process.
func TestKill(t *testing.T) {
	rounds := 3
	if longtest.On(longtest.Fleets) {
		rounds = 100
	}
	dir := write(t, manual(), nil, 1)
	for range rounds {
		c, lines := child(t, dir)
		for range 1 + rand.IntN(200) {
			if !lines.Scan() {
				t.Fatal("the child printed nothing")
			}
		}
		check(t, c.Process.Kill())
		last := uint64(0)
		for {
			n, err := strconv.ParseUint(lines.Text(), 10, 64)
			if err == nil {
				last = n
			}
			if !lines.Scan() {
				break
			}
		}
		_ = c.Wait() // it returns that the child was killed
		got, err := read(t, dir)
		if err != io.EOF || uint64(len(got)) < last {
			t.Fatalf("%d records, %d acknowledged: %v", len(got), last, err)
		}
		for i, r := range got {
			if r.Commit.To != uint64(i+1) {
				t.Fatalf("record %d is commit %d", i, r.Commit.To)
			}
		}
		s, err := open(dir, manual())
		check(t, err)
		check(t, s.Close())
	}
}

func TestTwoWriters(t *testing.T) {
	dir := write(t, manual(), some(3), 1)
	c, lines := child(t, dir)
	if !lines.Scan() {
		t.Fatal("the child printed nothing")
	}
	_, err := Open(dir)
	var held *LockedError
	if !errors.As(err, &held) || held.PID != c.Process.Pid || !strings.Contains(err.Error(), strconv.Itoa(c.Process.Pid)) {
		t.Error(err)
	}
	if running, pid := Running(dir); !running || pid != c.Process.Pid {
		t.Error(running, pid)
	}
	check(t, c.Process.Kill())
	_ = c.Wait()
	if running, _ := Running(dir); running {
		t.Error("a dead process runs")
	}
	s, err := Open(dir)
	check(t, err)
	defer s.Close()
	if _, err := open(dir, manual()); !errors.As(err, &held) || held.PID != os.Getpid() {
		t.Error("twice in one process:", err)
	}
}

// TestStaleLock: a lock file without a holder is not a lock, whatever it contains.
func TestStaleLock(t *testing.T) {
	dir := write(t, manual(), some(3), 1)
	check(t, os.WriteFile(filepath.Join(dir, LockName), []byte("1\n and more"), 0o600))
	if running, _ := Running(dir); running {
		t.Error("it runs")
	}
	s, err := open(dir, manual())
	check(t, err)
	if _, pid := Running(dir); pid != os.Getpid() {
		t.Error(pid)
	}
	check(t, s.Close())
}

// TestListingDoesNotLockOut: a listing that tests the lock does not refuse a writer, even on a busy machine.
func TestListingDoesNotLockOut(t *testing.T) {
	dir := write(t, manual(), some(3), 1)
	f, err := os.Open(filepath.Join(dir, LockName))
	check(t, err)
	if ok, err := tryLock(f, false); !ok || err != nil {
		t.Fatal(ok, err)
	}
	done := make(chan error)
	go func() {
		s, err := open(dir, manual())
		if err == nil {
			err = s.Close()
		}
		done <- err
	}()
	time.Sleep(3 * writerWait / 2)
	check(t, f.Close())
	check(t, testutil.Receive(t, done, "lock"))
}
