package session

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"brood/models/engine"
	"brood/optim/collective"
	"brood/runtime/event"
	"brood/runtime/testutil"
)

// manual returns options without timers and without waits for the disk, so that tests decide when records are written.
func manual() options {
	return options{disk: newFaulty(), segment: segmentBytes, reserve: 1 << 10, flush: time.Hour, sync: time.Hour}
}

func config() event.Record {
	return event.Record{At: 1, Config: &event.Config{
		Version:   1,
		Preset:    "quickstart",
		Model:     "mlp",
		ModelSpec: "[layer]\n",
		Data:      "glyphs",
		Seed:      7,
	}}
}

func commit(to uint64) event.Record {
	return event.Record{
		At: int64(to), Commit: &event.Commit{To: to, Hash: fmt.Sprintf("blake3:%064x", to),
			Sent: map[collective.Op]int64{"grad": 9, "a": 1}},
	}
}

func points(round uint64, n int) event.Record {
	p := &event.Points{Round: round, Series: "loss"}
	for i := range n {
		p.Members = append(p.Members, engine.Member(i))
		p.Values = append(p.Values, math.Sin(float64(round)+float64(i)))
	}
	return event.Record{At: int64(round), Points: p}
}

// some returns n records of several kinds; the first opens a log.
func some(n int) []event.Record {
	out := []event.Record{config()}
	for i := uint64(1); len(out) < n; i++ {
		switch i % 5 {
		case 0:
			out = append(out, commit(i))
		case 3:
			out = append(out, event.Record{At: int64(i), State: &event.State{Round: i, Phase: event.Training}})
		default:
			out = append(out, points(i, int(i%7)+1))
		}
	}
	return out
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// write creates a session of the records, with a flush after every few, and closes it.
func write(t testing.TB, o options, records []event.Record, every int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "s")
	s, err := create(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	for len(records) > 0 {
		n := min(every, len(records))
		if err := errors.Join(s.Append(records[:n]...), s.Sync()); err != nil {
			t.Fatal(err)
		}
		records = records[n:]
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// rest reads to the end and returns its error: io.EOF or damage.
func rest(t testing.TB, r *Reader) (out []event.Record, err error) {
	t.Helper()
	for rec, err := range r.Rest() {
		if err != nil {
			return out, err
		}
		out = append(out, rec)
	}
	return out, io.EOF
}

func read(t testing.TB, dir string) ([]event.Record, error) {
	t.Helper()
	r, err := OpenReader(dir)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return rest(t, r)
}

func same(t testing.TB, got, want []event.Record) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d records, want %d", len(got), len(want))
	}
	for i := range got {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Fatalf("record %d: %+v, want %+v", i, got[i], want[i])
		}
	}
}

func TestRoundTrip(t *testing.T) {
	want := some(500)
	for _, every := range []int{1, 7, 64, 65, 500} {
		got, err := read(t, write(t, manual(), want, every))
		if err != io.EOF {
			t.Fatal(err)
		}
		same(t, got, want)
	}
}

func TestValuesSurvive(t *testing.T) {
	p := event.Record{Points: &event.Points{Round: 1 << 63, Series: "\x00\xff name", Members: []engine.Member{engine.None},
		Values: []float64{math.Inf(1)}}}
	got, err := read(t, write(t, manual(), []event.Record{p}, 1))
	if err != io.EOF {
		t.Fatal(err)
	}
	same(t, got, []event.Record{p})
	nan := event.Record{Points: &event.Points{Values: []float64{math.NaN(), math.Copysign(0, -1)}}}
	got, err = read(t, write(t, manual(), []event.Record{nan}, 1))
	if err != io.EOF || !math.IsNaN(got[0].Points.Values[0]) || !math.Signbit(got[0].Points.Values[1]) {
		t.Fatal(got, err)
	}
}

// TestDeterministic: the bytes of a log depend only on its records.
func TestDeterministic(t *testing.T) {
	a, errA := os.ReadFile(filepath.Join(write(t, manual(), some(300), 10), segmentName(1)))
	b, errB := os.ReadFile(filepath.Join(write(t, manual(), some(300), 10), segmentName(1)))
	if errA != nil || errB != nil || string(a) != string(b) {
		t.Fatal("two logs of the same records differ", errA, errB)
	}
}

func TestEssentialIsWrittenBeforeAppendReturns(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	s, err := create(dir, manual())
	check(t, err)
	defer s.Close()
	r, err := OpenReader(dir)
	check(t, err)
	defer r.Close()

	check(t, s.Append(points(1, 1)))
	if got, err := rest(t, r); err != io.EOF || len(got) != 0 {
		t.Fatal("points were written at once", got, err)
	}
	check(t, s.Append(points(2, 1), commit(2), points(3, 1)))
	got, err := rest(t, r)
	if err != io.EOF {
		t.Fatal(err)
	}
	same(t, got, []event.Record{points(1, 1), points(2, 1), commit(2), points(3, 1)})
	check(t, s.Append(points(4, 1)))
	check(t, s.Close())
	if got, err = rest(t, r); err != io.EOF || len(got) != 1 {
		t.Fatal("Close did not write the rest", got, err)
	}
	if err := s.Append(commit(5)); !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
}

func TestTimerWritesPoints(t *testing.T) {
	o := manual()
	o.flush = time.Millisecond
	dir := filepath.Join(t.TempDir(), "s")
	s, err := create(dir, o)
	check(t, err)
	defer s.Close()
	r, err := OpenReader(dir)
	check(t, err)
	defer r.Close()
	check(t, s.Append(points(1, 1)))
	for late := time.Now().Add(testutil.Timeout); ; time.Sleep(time.Millisecond) {
		if _, err = r.Next(); err != io.EOF || time.Now().After(late) {
			break
		}
	}
	check(t, err)
}

func TestAppendRefuses(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	s, err := create(dir, manual())
	check(t, err)
	defer s.Close()
	two := commit(1)
	two.State = &event.State{}
	many := event.Record{Points: &event.Points{Members: make([]engine.Member, maxElements+1)}}
	big := event.Record{Alert: &event.Alert{Text: string(make([]byte, maxRecord))}}
	ledger := commit(1)
	for i := range 5000 {
		ledger.Commit.Sent[collective.Op(fmt.Sprint(i))] = 1
	}
	for i, bad := range []event.Record{{}, two, many, big, ledger} {
		if err := s.Append(commit(9), bad); err == nil {
			t.Errorf("record %d was accepted", i)
		}
	}
	if got, err := read(t, dir); err != io.EOF || len(got) != 0 {
		t.Fatal("a refused call left records", got, err)
	}
}

// TestLargestPopulation: the records of the largest population fit in the limit, and can be read.
func TestLargestPopulation(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	s, err := create(dir, manual())
	check(t, err)
	defer s.Close()
	ids, odd := collective.IDs(event.MaxMembers), make([]float64, event.MaxMembers)
	for i := range odd {
		odd[i] = math.Sqrt(float64(i + 2)) // each value needs a float64: nine bytes
	}
	workers := make([]int, 300)
	for i := range workers {
		workers[i] = 1000 + i // numbers of three bytes
	}
	roster := collective.Place(ids, workers)
	check(t, s.Append(event.Record{Points: &event.Points{Series: "fitness", Members: ids, Values: odd}},
		event.Record{Plan: &event.Plan{Old: roster, New: roster, Lost: ids}}))
	check(t, s.Close())
	if got, err := read(t, dir); err != io.EOF || len(got) != 2 || len(got[1].Plan.New.Members) != event.MaxMembers {
		t.Fatal("a record is missing", len(got), err)
	}
}

func TestCreateAndOpenRefuse(t *testing.T) {
	dir := write(t, manual(), some(3), 1)
	if _, err := Create(dir); err == nil {
		t.Fatal("a second session in one directory")
	}
	if _, err := Open(t.TempDir()); err == nil {
		t.Fatal("an empty directory was opened")
	}
	if _, err := OpenReader(t.TempDir()); err == nil {
		t.Fatal("an empty directory was read")
	}
}

func TestReopenAppends(t *testing.T) {
	want := some(200)
	dir := write(t, manual(), want[:100], 9)
	s, err := open(dir, manual())
	check(t, err)
	if s.Recovery() != nil {
		t.Fatal(s.Recovery())
	}
	check(t, errors.Join(s.Append(want[100:]...), s.Close()))
	got, err := read(t, dir)
	if err != io.EOF {
		t.Fatal(err)
	}
	same(t, got, want)
}

// TestForeignFolder: a folder with other files is refused and not changed. One with files of the process of a session
// is accepted.
func TestForeignFolder(t *testing.T) {
	dir := t.TempDir()
	check(t, os.WriteFile(filepath.Join(dir, HostLog), nil, 0o600))
	check(t, os.WriteFile(filepath.Join(dir, "holiday.jpg"), []byte("x"), 0o600))
	if _, err := create(dir, manual()); err == nil ||
		!strings.Contains(err.Error(), "holds other files (holiday.jpg): choose an empty or a new directory") {
		t.Errorf("a folder with other files: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("its files are %v, %v", left, err)
	}
	check(t, os.Remove(filepath.Join(dir, "holiday.jpg")))
	s, err := create(dir, manual())
	check(t, err)
	check(t, s.Close())
	if err := Vacant(dir); err == nil || !strings.Contains(err.Error(), "already holds a session") {
		t.Errorf("a folder with a session: %v", err)
	}
}
