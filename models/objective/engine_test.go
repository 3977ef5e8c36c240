package objective

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"brood/models/engine"
	"brood/models/engine/ram"
	"brood/models/noise"
	"brood/models/subprocess"
	"brood/models/usererr"
)

// behaves is set when the test binary runs as an objective program, to its behaviour.
const behaves = "OBJECTIVE_OF_TESTS"

func TestMain(m *testing.M) {
	if how := os.Getenv(behaves); mapping[how] != nil {
		mapping[how](how)
		return
	} else if how != "" {
		play(how)
		return
	}
	restartDelay = 5 * time.Millisecond
	os.Exit(m.Run())
}

// play is a program that uses the protocol, or breaks it. Its fitness is the seed minus the sum of squares.
func play(how string) {
	reply := func(kind byte, body []byte) {
		head := binary.LittleEndian.AppendUint32(nil, uint32(len(body)+1))
		_, _ = os.Stdout.Write(append(append(head, kind), body...))
	}
	for asked := 0; ; asked++ {
		var head [5]byte
		if _, err := io.ReadFull(os.Stdin, head[:]); err != nil {
			return
		}
		body := make([]byte, binary.LittleEndian.Uint32(head[:])-1)
		if _, err := io.ReadFull(os.Stdin, body); err != nil {
			return
		}
		if head[4] == 1 {
			switch how {
			case "text":
				fmt.Println("Hello, world! I am no objective at all.")
			case "silent":
				f, err := os.OpenFile(os.Getenv("STARTED"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
				if err == nil {
					_, _ = f.WriteString("x")
				}
				time.Sleep(time.Hour)
			case "version":
				reply(2, []byte{7, 0, 0, 0})
			}
			if names, ok := declares[how]; ok {
				body := []byte{1, 0, 0, 0}
				if how == "changing" {
					names = []string{fmt.Sprint(os.Getpid())}
				}
				body = binary.LittleEndian.AppendUint32(body, uint32(len(names)))
				for _, n := range names {
					body = append(binary.LittleEndian.AppendUint32(body, uint32(len(n))), n...)
				}
				if how == "cut" {
					body = body[:len(body)-1]
				}
				reply(2, body)
				continue
			}
			reply(2, []byte{1, 0, 0, 0})
			continue
		}
		n, width := int(binary.LittleEndian.Uint32(body)), int(binary.LittleEndian.Uint32(body[4:]))
		out := binary.LittleEndian.AppendUint32(nil, uint32(n))
		for i := range n {
			at := 8 + 16*i
			seed := binary.LittleEndian.Uint64(body[at+8:])
			f := float64(seed)
			for j := range width {
				x := float64(math.Float32frombits(binary.LittleEndian.Uint32(body[8+16*n+4*(i*width+j):])))
				f -= x * x
			}
			switch {
			case how == "flaky" && asked == 5:
				fmt.Fprintln(os.Stderr, "out of rope")
				os.Exit(3)
			case how == "crash" && seed == 3:
				fmt.Fprintln(os.Stderr, "pole broken\x1b[31m")
				os.Exit(9)
			case how == "child" && seed == 3:
				child := exec.Command("sleep", "600")
				child.Stdout, child.Stderr = os.Stdout, os.Stderr
				if child.Start() == nil {
					fmt.Fprintf(os.Stderr, "child %d", child.Process.Pid)
				}
				os.Exit(9)
			case how == "large":
				f *= 1e300
			case how == "hang" && seed == 3:
				time.Sleep(time.Hour)
			case how == "nan" && seed == 3:
				f = math.NaN()
			case how == "infinite" && seed == 3:
				f = math.Inf(1)
			case how == "varies":
				f += float64(asked) + float64(os.Getpid())
			}
			id := binary.LittleEndian.Uint64(body[at:])
			if how == "twice" {
				id = binary.LittleEndian.Uint64(body[8:])
			}
			out = binary.LittleEndian.AppendUint64(out, id)
			out = binary.LittleEndian.AppendUint64(out, math.Float64bits(f))
			for k := range declares[how] { // the first is the seed, and the second twice the fitness
				x := []float64{float64(seed), 2 * f}[k%2]
				if how == "odd" {
					x = math.Inf(1)
				}
				out = binary.LittleEndian.AppendUint64(out, math.Float64bits(x))
			}
			if how == "few" {
				out = out[:len(out)-8]
			}
		}
		if how == "short" {
			out = out[:len(out)-16]
		}
		reply(4, out)
		if how == "again" && asked%3 == 1 {
			reply(4, out)
		}
	}
}

func program(t testing.TB, how string, spec Spec) Objective {
	t.Setenv(behaves, how)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Objective{Spec: spec, Command: []string{self}}
}

// naive computes the fitness of the test program.
func naive(x []float32, seed uint64) (float64, error) {
	f := float64(seed)
	for _, v := range x {
		f -= float64(v) * float64(v)
	}
	return f, nil
}

func open(t testing.TB, o Objective, threads int) *Engine {
	t.Helper()
	e, err := New(o, threads)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// candidates evaluates n candidates around ones, each on seeds 0 to 4 or on batch.
func candidates(t testing.TB, e *Engine, n int, batch ...int32) []float32 {
	t.Helper()
	p := e.model.Layout.Params
	theta := ram.New(1, p)
	for i := range ram.View(theta).F {
		ram.View(theta).F[i] = 1
	}
	if batch == nil {
		batch = []int32{0, 1, 2, 3, 4}
	}
	c := engine.Candidates{
		Theta:      theta,
		Sigma:      0.5,
		Key:        noise.Key{Seed: 4, Purpose: noise.Candidate},
		Antithetic: true,
		Batches:    [][]int32{batch},
		Fitness:    make([]float32, n),
	}
	for i := range n {
		c.IDs = append(c.IDs, engine.Member(i))
	}
	var evaluated atomic.Int64
	c.Evaluated = func(n int) { evaluated.Add(int64(n)) }
	if err := e.Do(context.Background(), c); err != nil {
		t.Fatal(err)
	}
	if got := int(evaluated.Load()); got != n {
		t.Errorf("%d of %d candidates were reported as evaluated", got, n)
	}
	return c.Fitness
}

// TestProgramEqualsFunction: a program and a function give the same fitness, also with candidates computed separately
// as theta + sigma*eps, on any number of processes.
func TestProgramEqualsFunction(t *testing.T) {
	spec := Spec{Params: []Param{{Name: "a", Shape: []int{3, 40}}, {Name: "b", Shape: []int{5}}}}
	const n = 10
	want := make([]float32, n)
	m, err := spec.Model()
	if err != nil {
		t.Fatal(err)
	}
	for c := range n {
		x := make([]float32, m.Layout.Params)
		for i, l := range m.Layout.Tensors {
			key := noise.Key{Seed: 4, Purpose: noise.Candidate, Member: uint32(c / 2), Stream: uint32(i)}
			key.Each(0, l.Len, l.Cols, func(at int, eps []float32) {
				for j, v := range eps {
					x[l.Lo+at+j] = 1 + float32(float32(1-2*(c%2))*0.5*v)
				}
			})
		}
		var sum float64
		for seed := range uint64(5) {
			f, _ := naive(x, seed)
			sum += f
		}
		want[c] = float32(sum / 5)
	}
	for _, threads := range []int{1, 3} {
		if got := candidates(t, open(t, Objective{Spec: spec, Func: naive}, threads), n); !slices.Equal(got, want) {
			t.Errorf("function on %d threads: %v, want %v", threads, got, want)
		}
		if got := candidates(t, open(t, program(t, "well", spec), threads), n); !slices.Equal(got, want) {
			t.Errorf("program on %d threads: %v, want %v", threads, got, want)
		}
	}
}

// TestDuplicateAnswer: a duplicate answer is not used for the next candidates: those are missing, not wrong.
func TestDuplicateAnswer(t *testing.T) {
	e, other := open(t, program(t, "again", Flat(3)), 1), open(t, Objective{Spec: Flat(3), Func: naive}, 1)
	given := 0
	for range 3 {
		want := candidates(t, other, 40)
		for i, f := range candidates(t, e, 40) {
			if f == f {
				given++
			}
			if f == f && f != want[i] {
				t.Errorf("candidate %d: %v, want %v", i, f, want[i])
			}
		}
	}
	if notes := e.Notes(); given == 0 || len(notes) != 1 || !strings.Contains(notes[0].Text, "one that it was not given") {
		t.Errorf("%d results, notes %q", given, notes)
	}
}

// TestChildOfAProgram: the end of a program is detected at once, even if a child process holds its output open; the
// child is ended too.
func TestChildOfAProgram(t *testing.T) {
	if _, err := exec.LookPath("sleep"); err != nil || runtime.GOOS != "linux" {
		t.Skip("needs sleep and /proc")
	}
	e := open(t, program(t, "child", Flat(3)), 1)
	if got := candidates(t, e, 4, 3); got[0] == got[0] {
		t.Errorf("%v, want missing results", got)
	}
	notes := missingNotes(e)
	if len(notes) != 1 || !strings.Contains(notes[0].Text, "ended without an answer: exit status 9") {
		t.Fatalf("notes %q", notes)
	}
	_, pid, _ := strings.Cut(notes[0].Text, "child ")
	n, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatalf("notes %q", notes)
	}
	for range 3600 { // three minutes
		// The process has ended.
		if line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", n)); err != nil || len(line) == 0 {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("process %d still runs", n)
}

// TestBeyondFloat32: a fitness beyond float32 is missing, with a note.
func TestBeyondFloat32(t *testing.T) {
	e := open(t, program(t, "large", Flat(3)), 1)
	if got := candidates(t, e, 2); got[0] == got[0] {
		t.Errorf("%v", got)
	}
	if notes := e.Notes(); len(notes) != 1 || !strings.Contains(notes[0].Text, "is beyond float32") {
		t.Errorf("notes %q", notes)
	}
}

// TestMissingResults: only evaluations that fail are missing, with a reason; others of the batch have results.
func TestMissingResults(t *testing.T) {
	for how, why := range map[string]string{
		"crash":    "ended without an answer: exit status 9; stderr: pole broken [31m",
		"hang":     "no answer within 500ms",
		"nan":      "its fitness is NaN",
		"infinite": "its fitness is +Inf",
	} {
		spec := Flat(3)
		if how == "hang" {
			spec.Timeout = "500ms"
		}
		e := open(t, program(t, how, spec), 2)
		if got := candidates(t, e, 4, 2); slices.ContainsFunc(got, func(f float32) bool { return f != f }) {
			t.Errorf("%s: %v, though nothing broke", how, got)
		}
		if got := candidates(t, e, 2, 1, 3); got[0] == got[0] || got[1] == got[1] {
			t.Errorf("%s: %v, want missing results", how, got)
		}
		notes := missingNotes(e)
		if len(notes) != 1 || notes[0].Kind != engine.NoteMissing || !strings.Contains(notes[0].Text, ": 2; the first: ") ||
			!strings.Contains(notes[0].Text, why) {
			t.Errorf("%s: notes %q, want one of 2 with %q", how, notes, why)
		}
		if got := candidates(t, e, 4, 2); slices.ContainsFunc(got, func(f float32) bool { return f != f }) ||
			e.Notes() != nil {
			t.Errorf("%s: %v and %v afterwards", how, got, e.Notes())
		}
	}
	for how, why := range map[string]string{"short": "bytes, want a count of", "twice": "names a candidate twice"} {
		e := open(t, program(t, how, Flat(3)), 1)
		got := candidates(t, e, 40, 1, 2) // 80 evaluations in batches of more than one
		if slices.ContainsFunc(got, func(f float32) bool { return f == f }) {
			t.Errorf("%s: %v, want missing results", how, got)
		}
		if notes := e.Notes(); len(notes) != 1 || notes[0].Kind != engine.NoteMissing ||
			!strings.Contains(notes[0].Text, ": 80; the first: ") || !strings.Contains(notes[0].Text, why) {
			t.Errorf("%s: notes %q, want 80 that say %q", how, notes, why)
		}
	}
	if err := parseResults(append([]byte{2, 0, 0, 0}, make([]byte, 32)...), 0, make([]float64, 2), nil); err == nil ||
		!strings.Contains(err.Error(), "twice") {
		t.Errorf("a candidate named twice: %v", err)
	}
}

func TestNoObjective(t *testing.T) {
	for how, why := range map[string]string{"text": "print text to its standard output", "version": "speaks version 7"} {
		if _, err := New(program(t, how, Flat(2)), 1); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v, want %q", how, err, why)
		}
	}
	if _, err := New(Objective{Spec: Flat(2)}, 1); err == nil {
		t.Error("an objective of nothing was taken")
	}
	e := open(t, Objective{Spec: Flat(2), Func: naive}, 1)
	var no *engine.UnsupportedError
	if err := e.Do(context.Background(), engine.Gradients{}); !errors.As(err, &no) {
		t.Errorf("gradients: %v", err)
	}
}

// TestSilent: a program that never answers hello is started only once.
func TestSilent(t *testing.T) {
	defer func(before time.Duration) { helloTimeout = before }(helloTimeout)
	helloTimeout = 300 * time.Millisecond
	started := filepath.Join(t.TempDir(), "started")
	t.Setenv("STARTED", started)
	if _, err := New(program(t, "silent", Flat(2)), 1); err == nil ||
		!strings.Contains(err.Error(), "does not start: it gave no answer within 300ms") {
		t.Errorf("%v", err)
	}
	if times, _ := os.ReadFile(started); len(times) > 1 { // on a slow machine it may have been ended before it wrote
		t.Errorf("it was started %d times", len(times))
	}
}

// TestMissingIsCountedOnce: a repeated evaluation counts once.
func TestMissingIsCountedOnce(t *testing.T) {
	e := open(t, Objective{Spec: Flat(2), Func: func([]float32, uint64) (float64, error) {
		return 0, errors.New("broken")
	}}, 2)
	for range checkEvery + 1 {
		candidates(t, e, 4, 1)
		if notes := e.Notes(); len(notes) != 1 ||
			!strings.Contains(notes[0].Text, "count as the worst: 4; the first: broken") {
			t.Fatalf("notes %q, want 4 that are missing", notes)
		}
	}
}

// TestVaries: an objective whose results vary for equal arguments is detected at once, and noted once.
func TestVaries(t *testing.T) {
	e := open(t, program(t, "varies", Flat(2)), 2)
	for range 3 * checkEvery {
		candidates(t, e, 4, 1)
	}
	if notes := e.Notes(); len(notes) != 1 || notes[0].Kind != engine.NoteVaries {
		t.Errorf("notes %q, want that it varies", notes)
	}
	e = open(t, program(t, "well", Flat(2)), 2)
	for range 2 * checkEvery {
		candidates(t, e, 4, 1)
	}
	if notes := e.Notes(); notes != nil {
		t.Errorf("notes %q of one that does not vary", notes)
	}
}

// TestCancelled: a cancelled task returns, and the engine continues with a new process.
func TestCancelled(t *testing.T) {
	e := open(t, program(t, "hang", Flat(2)), 1)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	x := ram.New(1, 2)
	err := e.Do(ctx, engine.Evaluate{
		X:       x,
		Rows:    engine.Rows(1),
		Batches: [][]int32{{3}},
		Loss:    make([]float64, 1),
		Correct: make([]int64, 1),
	})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if got := candidates(t, e, 2, 1); got[0] != got[0] || e.Notes() != nil {
		t.Errorf("afterwards: %v", got)
	}
}

// TestBounds: no program receives a value beyond its bounds.
func TestBounds(t *testing.T) {
	low, high := 0.9, 1.1
	spec := Spec{Params: []Param{{Name: "free", Shape: []int{2}}, {Name: "held", Shape: []int{4}, Low: &low, High: &high}}}
	beyond := 0
	e := open(t, Objective{Spec: spec, Func: func(x []float32, _ uint64) (float64, error) {
		for _, v := range x[2:] {
			if v < 0.9 || v > 1.1 {
				beyond++
			}
		}
		return 0, nil
	}}, 1)
	candidates(t, e, 64)
	if beyond > 0 {
		t.Errorf("%d values lie beyond their bounds", beyond)
	}
}

func TestInvalidSpecs(t *testing.T) {
	dir := t.TempDir()
	for text, why := range map[string]string{
		"[[param]]\nname = \"a\"":                                                            "shape",
		"[[param]]\nname = \"a\"\nshape = [0]":                                               "sizes above zero",
		"[[param]]\nname = \"a\"\nshape = [65536, 65536]":                                    "elements in all",
		"[[param]]\nname = \"a\"\nshape = [1]\nlow = 2\nhigh = 1":                            "is not below",
		"[[param]]\nname = \"a\"\nshape = [1]\ninit = \"ones\"":                              "choose zero, normal or uniform",
		"[[param]]\nname = \"a\"\nshape = [1]\nscale = -1":                                   "scale",
		"[[param]]\nname = \"a\\nb\"\nshape = [1]":                                           "one line",
		"timeout = \"1000000h\"\n[[param]]\nname = \"a\"\nshape = [1]":                       "at most 720h0m0s",
		"[[param]]\nname = \"a\"\nshape = [1]\ninit = \"uniform\"\nlow = -3e38\nhigh = 3e38": "float32 does not hold",
		"[[param]]\nname = \"a\"\nshape = [1]\ninit = \"uniform\"\nlow = -inf\nhigh = inf":   "float32 does not hold",
		"timeout = \"soon\"\n[[param]]\nname = \"a\"\nshape = [1]":                           "duration",
		"bounds = 1": "keys are",
		"":           "has no parameters",
		"[seeds]\ntrain = -1\n[[param]]\nname = \"a\"\nshape = [1]\n":        "seeds",
		"[[param]]\nname=\"a\"\nshape=[1]\n[[param]]\nname=\"a\"\nshape=[1]": "two tensors",
	} {
		path := filepath.Join(dir, "s.toml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ParseSpec(path); err == nil || !strings.Contains(err.Error(), why) || !usererr.Is(err) {
			t.Errorf("%q: %v, want %q, of what was typed", text, err, why)
		}
	}
	for _, text := range []string{"0", "-3", "none.toml"} {
		if _, err := ParseSpec(text); err == nil {
			t.Errorf("params = %s was taken", text)
		} else if file := text == "none.toml"; usererr.Is(err) == file {
			t.Errorf("params = %s: %v: a file that is not there fails here", text, err)
		}
	}
}

// TestSpecIsRecorded: a recorded spec is read back unchanged, including the timeout for workers; the timeout does not
// identify the objective. Initial values depend only on their address.
func TestSpecIsRecorded(t *testing.T) {
	low, high := -1.0, 2.0
	spec := Spec{Name: "s", Timeout: "5s", Processes: 3, Seeds: Seeds{Train: 7}, Params: []Param{
		{Name: "a", Shape: []int{70}, Init: Normal, Scale: 0.1},
		{Name: "b", Shape: []int{9}, Low: &low, High: &high, Init: Uniform}, {Name: "c", Shape: []int{1}, Start: 3}}}
	o := Objective{Spec: spec, Func: naive}
	text, err := o.Text()
	if err != nil {
		t.Fatal(err)
	}
	again, err := ReadSpec([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if o.Spec = again; true {
		if back, err := o.Text(); err != nil || back != text {
			t.Errorf("%v\n%s\nread again\n%s", err, text, back)
		}
	}
	if again.Timeout != "5s" || again.Processes != 3 {
		t.Errorf("read again, it waits for %q, and has %d processes", again.Timeout, again.Processes)
	}
	o.Spec.Timeout, o.Spec.Processes = "", 0
	if other, err := o.Text(); err != nil || other == text || !slices.Equal(What(other), What(text)) {
		t.Errorf("%v\n%s\nis another objective than\n%s", err, other, text)
	}
	o.Spec.Seeds.Train = 8
	if other, err := o.Text(); err != nil || slices.Equal(What(other), What(text)) {
		t.Errorf("%v\n%s\nis the same objective as\n%s", err, other, text)
	}
	x, y := make([]float32, 70), make([]float32, 9)
	spec.Init(noise.Key{Seed: 1, Purpose: noise.Init}, 0, x)
	spec.Init(noise.Key{Seed: 1, Purpose: noise.Init, Stream: 1}, 1, y)
	var sum, squares float64
	for _, v := range x {
		sum, squares = sum+float64(v), squares+float64(v)*float64(v)
	}
	if s := math.Sqrt(squares / 70); s < 0.07 || s > 0.13 || math.Abs(sum/70) > 0.05 {
		t.Errorf("normals of 0.1 have mean %v and root mean square %v", sum/70, s)
	}
	if slices.Min(y) < -1 || slices.Max(y) >= 2 || slices.Max(y)-slices.Min(y) < 1 {
		t.Errorf("uniform values %v within [-1, 2)", y)
	}
}

func FuzzFrames(f *testing.F) {
	f.Add([]byte{5, 0, 0, 0, 2, 1, 0, 0, 0})
	f.Add([]byte{21, 0, 0, 0, 4, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 240, 63})
	f.Add([]byte{18, 0, 0, 0, 2, 1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 'a', 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, p []byte) {
		for _, kind := range []byte{kindReady, kindResults} {
			if body, err := subprocess.ReadFrame(strings.NewReader(string(p)), nil, kind, page); err == nil {
				_, _ = parseReady(body)
				_ = parseResults(body, 0, make([]float64, 1), nil)
				_ = parseResults(body, 0, make([]float64, 1), make([]float64, 2))
			}
		}
	})
}
