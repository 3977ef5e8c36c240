package session

import (
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"brood/models/engine"
	"brood/runtime/event"
)

// TestFullDisk: on a full disk points are dropped first, without an error; then essential records use the reserve and
// return an error; then Append fails with the number of missing records. All works again once there is space. The log
// has each acknowledged record.
func TestFullDisk(t *testing.T) {
	d := newFaulty()
	o := manual()
	o.disk, o.reserve = d, 4<<10
	dir := filepath.Join(t.TempDir(), "s")
	s, err := create(dir, o)
	check(t, err)
	defer s.Close()
	d.setCapacity(10 << 10)

	var want []uint64
	for i := uint64(1); s.Dropped() == 0; i++ {
		check(t, s.Append(points(i, 200)))
		s.flushSome()
		if i > 100 {
			t.Fatal("the disk never filled")
		}
	}
	next := uint64(1000)
	var disk *DiskError
	for ; ; next++ {
		err := s.Append(commit(next))
		if err == nil {
			want = append(want, next)
			continue
		}
		if !errors.As(err, &disk) || disk.Missing != 0 || !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("the reserve did not help: %v", err)
		}
		want = append(want, next)
		break
	}
	if _, err := os.Stat(filepath.Join(dir, "reserve")); err == nil {
		t.Fatal("the reserve is still there")
	}
	s.syncSome()
	for next++; ; next++ {
		err := s.Append(commit(next), commit(next+1_000_000))
		if err == nil {
			want = append(want, next, next+1_000_000)
			continue
		}
		if !errors.As(err, &disk) || disk.Missing != 2 {
			t.Fatalf("want two records missing: %v", err)
		}
		break
	}
	if !strings.Contains(disk.Error(), segmentName(1)) || !strings.Contains(disk.Error(), "free some space") {
		t.Error(disk)
	}
	d.setCapacity(1 << 20)
	s.syncSome()
	if _, err := os.Stat(filepath.Join(dir, "reserve")); err != nil {
		t.Fatal("there is space again, but no reserve", err)
	}
	check(t, s.Append(commit(7), points(8, 3)))
	want = append(want, 7)
	got, err := read(t, dir)
	if err != io.EOF {
		t.Fatal(err)
	}
	sameCommits(t, got, want)
}

// TestReserveFitsTheRun: the reserve of a small run is small and grows with the size of its essential records. Without
// space to grow, its size stays.
func TestReserveFitsTheRun(t *testing.T) {
	d := newFaulty()
	o := defaults()
	o.disk, o.flush, o.sync = d, manual().flush, manual().sync
	dir := filepath.Join(t.TempDir(), "s")
	s, err := create(dir, o)
	check(t, err)
	defer s.Close()
	size := func() int64 {
		st, err := os.Stat(filepath.Join(dir, "reserve"))
		check(t, err)
		return st.Size()
	}
	check(t, s.Append(commit(1)))
	s.syncSome()
	if n := size(); n != reserveLeast {
		t.Errorf("a small run reserves %d bytes", n)
	}
	crowd := event.Record{Plan: &event.Plan{Epoch: 1}}
	for m := range 30_000 {
		crowd.Plan.New.Members = append(crowd.Plan.New.Members, engine.Member(m))
	}
	d.setCapacity(1 << 19)
	check(t, s.Append(crowd))
	s.syncSome()
	if n := size(); n != reserveLeast {
		t.Errorf("without room for more %d bytes are reserved", n)
	}
	d.setCapacity(0)
	s.syncSome()
	if n := size(); n != reserveMost {
		t.Errorf("a run of 30000 members reserves %d bytes", n)
	}
	d.setCapacity(reserveMost + 400<<10) // the reserve is large enough for such a record
	for i := uint64(2); ; i++ {
		if err := s.Append(crowd); err != nil {
			var disk *DiskError
			if !errors.As(err, &disk) || disk.Missing != 0 {
				t.Errorf("the reserve did not help: %v", err)
			}
			break
		}
	}
}

// TestReserveEndsWithItsWriter: a closed session has no reserve. Opening the session again creates it, and fails
// without space for it.
func TestReserveEndsWithItsWriter(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	s, err := create(dir, manual())
	check(t, err)
	check(t, errors.Join(s.Append(config(), commit(1)), s.Close()))
	if _, err := os.Stat(filepath.Join(dir, "reserve")); !errors.Is(err, os.ErrNotExist) {
		t.Error("the session is closed and its reserve is still there", err)
	}
	d := newFaulty()
	o := manual()
	o.disk = d
	d.setCapacity(1)
	var disk *DiskError
	if _, err := open(dir, o); !errors.As(err, &disk) || !strings.Contains(err.Error(), "free some space") {
		t.Errorf("without room the session opens: %v", err)
	}
	d.setCapacity(0)
	s, err = open(dir, o)
	check(t, err)
	if st, err := os.Stat(filepath.Join(dir, "reserve")); err != nil || st.Size() != int64(o.reserve) {
		t.Error("an opened session has no reserve", err)
	}
	check(t, s.Close())
	got, err := read(t, dir)
	if err != io.EOF {
		t.Fatal(err)
	}
	sameCommits(t, got, []uint64{1})
}

func sameCommits(t *testing.T, got []event.Record, want []uint64) {
	t.Helper()
	for _, r := range got {
		if r.Commit == nil {
			continue
		}
		if len(want) == 0 || r.Commit.To != want[0] {
			t.Fatalf("commit %d, want %v", r.Commit.To, want)
		}
		want = want[1:]
	}
	if len(want) > 0 {
		t.Fatalf("%d commits are missing, the first is %d", len(want), want[0])
	}
}

// TestTornWrite: a torn write does not remove a record that a reader may have seen, and the log continues after it.
func TestTornWrite(t *testing.T) {
	batch := some(150) // three frames
	ends := frameEnds(content(t, write(t, manual(), batch, len(batch)), 1))
	for keep, total := 0, 1; keep < total; keep += 41 {
		d := newFaulty()
		o := manual()
		o.disk = d
		dir := filepath.Join(t.TempDir(), "s")
		s, err := create(dir, o)
		check(t, err)
		r, err := OpenReader(dir)
		check(t, err)
		torn := false
		var early []event.Record
		d.tear = func(path string, off int64, n int) (int, error) {
			if torn {
				return 0, syscall.EIO
			}
			torn, total = true, n
			return keep, syscall.EIO
		}
		err = s.Append(batch...)
		var disk *DiskError
		if !errors.As(err, &disk) || disk.Missing == 0 {
			t.Fatal(keep, err)
		}
		if early, err = rest(t, r); err != io.EOF {
			t.Fatal(keep, err)
		}
		d.tear = nil
		check(t, s.Append(commit(1<<40)))
		late, err := rest(t, r)
		if err != io.EOF {
			t.Fatal(keep, err)
		}
		same(t, append(early, late...), append(batch[:len(early):len(early)], commit(1<<40)))
		whole := 0
		for whole < len(ends) && ends[whole] <= segmentHeader+keep {
			whole++
		}
		if len(early) != whole*frameRecords {
			t.Fatalf("%d bytes hold %d whole frames, the log kept %d records of them", keep, whole, len(early))
		}
		check(t, errors.Join(s.Close(), r.Close()))
	}
}

// TestRandomFaults: after random faults under random appends the log has the acknowledged records in order, and readers
// return no error.
func TestRandomFaults(t *testing.T) {
	for seed := range uint64(15) {
		rng := rand.New(rand.NewPCG(seed, 1))
		d := newFaulty()
		o := manual()
		o.disk, o.segment = d, 3000
		dir := filepath.Join(t.TempDir(), "s")
		s, err := create(dir, o)
		check(t, err)
		r, err := OpenReader(dir)
		check(t, err)
		d.tear = func(_ string, _ int64, n int) (int, error) {
			switch rng.IntN(6) {
			case 0:
				return rng.IntN(n), syscall.EIO
			case 1:
				return rng.IntN(n), syscall.ENOSPC
			case 2:
				return rng.IntN(n), nil // short without an error
			}
			return n, nil
		}
		var want []uint64
		var got []event.Record
		for i := uint64(1); i < 300; i++ {
			switch rng.IntN(4) {
			case 0:
				check(t, s.Append(points(i, 5)))
			case 1:
				check(t, s.AppendKeyframe([]byte("picture")))
			default:
				err := s.Append(points(i, 3), commit(i), commit(i+1000))
				var disk *DiskError
				if err != nil && !errors.As(err, &disk) {
					t.Fatal(err)
				}
				both := []uint64{i, i + 1000}
				if disk != nil {
					both = both[:2-disk.Missing]
				}
				want = append(want, both...)
			}
			more, err := rest(t, r)
			if err != io.EOF {
				t.Fatalf("seed %d, step %d: %v", seed, i, err)
			}
			got = append(got, more...)
		}
		d.tear = nil
		check(t, s.Close())
		more, err := rest(t, r)
		if err != io.EOF {
			t.Fatal(seed, err)
		}
		got = append(got, more...)
		sameCommits(t, got, want)
		again, err := read(t, dir)
		if err != io.EOF {
			t.Fatal(err)
		}
		same(t, got, again)
		r.Close()
	}
}

func TestFailedSyncIsReportedOnce(t *testing.T) {
	d := newFaulty()
	o := manual()
	o.disk = d
	s, err := create(filepath.Join(t.TempDir(), "s"), o)
	check(t, err)
	check(t, s.Append(commit(1)))
	d.syncFail = syscall.EIO
	s.syncSome()
	d.syncFail = nil
	var disk *DiskError
	if err := s.Append(commit(2)); !errors.As(err, &disk) || disk.Op != "sync" || disk.Missing != 0 {
		t.Fatal(err)
	}
	check(t, s.Append(commit(3)))
	check(t, errors.Join(s.Sync(), s.Close()))
	got, _ := read(t, s.Dir())
	sameCommits(t, got, []uint64{1, 2, 3})
}

func TestCreateWithoutSpace(t *testing.T) {
	d := newFaulty()
	d.capacity = 100
	o := manual()
	o.disk = d
	if _, err := create(filepath.Join(t.TempDir(), "s"), o); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
}
