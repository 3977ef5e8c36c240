// Package programtest is a small program that brood trains, for tests: a network of two layers on samples that are
// functions of their ids. A test binary becomes the program if its environment has Variable set, see Main.
package programtest

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"brood/models/noise"
)

// Variable is the environment variable that makes a test binary the program. Its value lists faults, see Main.
const Variable = "BROOD_TEST_PROGRAM"

// Sizes of the network and of its splits.
const (
	Inputs, Hidden, Outputs = 6, 5, 3
	Params                  = Hidden*Inputs + Hidden + Outputs*Hidden + Outputs
	Train, Validation, Test = 600, 60, 120
)

// OwnMomentum is the momentum of the program's own optimiser. Its state has StateBytes: the number of steps as the bits
// of a NaN, the momentum of each parameter, and three more bytes.
const (
	OwnMomentum = .8
	StateBytes  = 8 + 4*Params + 3
	counted     = 0x7ff4 << 48 // bits of a NaN that a conversion would change
)

// Command returns the command of this test binary as the program.
func Command() []string { return []string{os.Args[0]} }

// Main runs the program and exits if the environment has Variable. Call it first in TestMain. Faults are words of its
// value:
//
//	die=N      exits with status 3 at task N, with words on standard error
//	once=DIR   makes die happen once: the first process that dies creates DIR
//	hang=N     does not answer task N
//	print      writes text to standard output before it answers hello
//	shrink     truncates the shared file
//	short      answers with a body that is too short
//	nan=N      the gradient of task N is NaN
//	wander     results differ each time
//	other=FILE describes itself with more samples if FILE exists
//	refuse     exits before it describes itself
//	steps      takes the steps of SGD itself, see Steps; no fault
//	state      brings an optimiser, SGD with momentum OwnMomentum, with a state; with steps; no fault
//	ahead=N    asks for announcements N gradients ahead, and exits if gradients were not announced, but for N+8 and
//	           one of 32; no fault
//	forgets    does not keep the state
//	candidates adds the noise of candidates itself, of full rank without whole numbers; no fault
//	slow=MS    waits MS milliseconds in each task
func Main() {
	faults, ok := os.LookupEnv(Variable)
	if !ok {
		return
	}
	p := &program{in: bufio.NewReader(os.Stdin), faults: map[string]string{}, next: map[uint64][]int{}}
	for _, word := range strings.Fields(faults) {
		name, value, _ := strings.Cut(word, "=")
		p.faults[name] = value
	}
	p.serve()
	os.Exit(0)
}

type program struct {
	in     *bufio.Reader
	faults map[string]string
	file   *os.File
	own    bool // the task is steps by the program's own optimiser
	x, g   []float32
	tasks  int

	next              map[uint64][]int // announced batches by key
	misses, gradients int              // gradients that were not announced, and all

	state []byte // of the program's own optimiser; nil unless it brings one

	m, anchor, mean []float32 // first moments and rows of anchored steps; nil unless the program takes steps
	centre          []float32 // of candidates
}

func (p *program) has(fault string) bool { _, ok := p.faults[fault]; return ok }

// due reports whether a fault is due at this task.
func (p *program) due(fault string) bool { return p.faults[fault] == fmt.Sprint(p.tasks) }

func (p *program) read() (kind byte, body []byte) {
	var head [5]byte
	if _, err := io.ReadFull(p.in, head[:]); err != nil {
		os.Exit(0)
	}
	body = make([]byte, binary.LittleEndian.Uint32(head[:])-1)
	if _, err := io.ReadFull(p.in, body); err != nil {
		os.Exit(0)
	}
	return head[4], body
}

func write(kind byte, body []byte) {
	frame := binary.LittleEndian.AppendUint32(nil, uint32(len(body)+1))
	if _, err := os.Stdout.Write(append(append(frame, kind), body...)); err != nil {
		os.Exit(1)
	}
}

type tensor struct {
	Name  string `json:"name"`
	Shape []int  `json:"shape"`
}

func (p *program) describe() {
	train := Train
	if file, ok := p.faults["other"]; ok {
		if _, err := os.Stat(file); err == nil {
			train++
		}
	}
	description := map[string]any{
		"name": "twolayer", "score": "classes", "metrics": []string{"margin"}, "data": "formula 1",
		"train": train, "validation": Validation, "test": Test, "library": "go test", "device": "cpu",
		"parameters": []tensor{{"fc1.weight", []int{Hidden, Inputs}}, {"fc1.bias", []int{Hidden}},
			{"fc2.weight", []int{Outputs, Hidden}}, {"fc2.bias", []int{Outputs}}},
		"buffers": []tensor{}, "steps": p.has("steps"), "candidates": p.has("candidates"), "threads": 1, "processes": 0,
		"timeout": 5,
	}
	if n, err := strconv.Atoi(p.faults["ahead"]); err == nil {
		description["ahead"] = n
	}
	if p.has("state") {
		description["state"] = StateBytes
	}
	body, err := json.Marshal(description)
	if err != nil {
		panic(err)
	}
	write(65, body)
}

func (p *program) serve() {
	for {
		kind, body := p.read()
		u32 := func(at int) int { return int(binary.LittleEndian.Uint32(body[at:])) }
		u64 := func(at int) int { return int(binary.LittleEndian.Uint64(body[at:])) }
		switch kind {
		case 1:
			if p.has("refuse") {
				fmt.Fprintln(os.Stderr, "Traceback: no module named nowhere")
				os.Exit(1)
			}
			if p.has("print") {
				fmt.Println("Epoch 1: the loss is fine")
			}
			p.describe()
			continue
		case 2:
			f, err := os.OpenFile(string(body[68:68+u32(64)]), os.O_RDWR, 0)
			if err != nil {
				panic(err)
			}
			p.file = f
			b, err := mapFile(f, u64(0))
			if err != nil {
				panic(err)
			}
			row := func(at int) []float32 { return unsafe.Slice((*float32)(unsafe.Pointer(&b[u64(at)])), Params) }
			if p.x, p.g = row(8), row(24); p.has("steps") {
				p.m, p.anchor, p.mean = row(32), row(48), row(56)
			}
			if n := u32(64); p.has("state") {
				p.state = b[u64(68+n):][:StateBytes]
			}
			continue
		}
		id, key := u64(0), uint64(u64(8))
		var batches [][]int
		at := 24 + 4*u32(20)
		for k := range u32(20) {
			var ids []int
			for range u32(24 + 4*k) {
				ids = append(ids, u32(at))
				at += 4
			}
			batches = append(batches, ids)
		}
		if kind == 4 && p.has("ahead") {
			p.announced(u32(16), key, batches, body[at:])
		}
		if kind == 7 {
			at += 8 * len(batches) // keys
			if p.own = u32(at) == 3; u32(at) > 0 && !p.own {
				fmt.Fprintln(os.Stderr, "ValueError: this program steps by sgd alone: --set optimiser=sgd")
				os.Exit(1)
			}
			at += 12 // the optimiser and the steps before
		}
		p.answer(kind, u32(16), id, key, batches, body[at:])
		p.tasks++
	}
}

// announced exits if this gradient was announced otherwise or, too often, not at all.
func (p *program) announced(flags int, key uint64, batches [][]int, rest []byte) {
	p.gradients++
	if want, ok := p.next[key]; !ok {
		p.misses++
	} else if !slices.Equal(want, batches[0]) {
		fmt.Fprintln(os.Stderr, "ValueError: another batch was announced")
		os.Exit(1)
	}
	delete(p.next, key)
	if flags&16 != 0 {
		p.next[binary.LittleEndian.Uint64(rest)] = batches[1]
	}
	if n, _ := strconv.Atoi(p.faults["ahead"]); p.misses > n+8+p.gradients/32 {
		fmt.Fprintf(os.Stderr, "ValueError: %d of %d gradients were not announced\n", p.misses, p.gradients)
		os.Exit(1)
	}
}

// answer executes a task; rest is what follows the samples, of steps without keys, optimiser and count.
func (p *program) answer(kind byte, flags, id int, key uint64, batches [][]int, rest []byte) {
	f32 := func(i int) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(rest[4*i:])) }
	if p.due("die") && (!p.has("once") || os.Mkdir(p.faults["once"], 0o700) == nil) {
		fmt.Fprintln(os.Stderr, "ValueError: the tensors do not match")
		os.Exit(3)
	}
	if p.due("hang") {
		time.Sleep(time.Hour)
	}
	if ms, ok := p.faults["slow"]; ok {
		d, _ := time.ParseDuration(ms + "ms")
		time.Sleep(d)
	}
	loss, correct, margin := 0.0, 0, 0.0
	var ids []int
	if len(batches) > 0 {
		ids = batches[0]
	}
	switch kind {
	case 3:
		for i := range p.x {
			p.x[i] = Start(key, i)
		}
	case 4:
		loss = Gradient(p.x, ids, p.g)
		if p.due("nan") {
			p.g[0] = float32(math.NaN())
		}
		if p.has("wander") {
			p.g[0] += float32(time.Now().UnixNano()%1000) * 1e-6
		}
	case 7:
		s, m := Sgd{Eta: f32(0), Mu: f32(1)}, p.m
		if p.own {
			s.Mu, m = OwnMomentum, unsafe.Slice((*float32)(unsafe.Pointer(&p.state[8])), Params)
			if n := binary.LittleEndian.Uint64(p.state); n != 0 && n>>48 != counted>>48 {
				fmt.Fprintln(os.Stderr, "ValueError: the state has other bits")
				os.Exit(1)
			}
			if p.has("forgets") {
				clear(p.state)
				m = p.m
			}
		}
		if flags&2 != 0 {
			s.Anchor, s.Mean, s.Pull, s.Alpha = p.anchor, p.mean, f32(8), f32(9)
		}
		loss = s.Steps(p.x, m, p.g, batches)
		if p.own {
			n := binary.LittleEndian.Uint64(p.state) + uint64(len(batches))
			binary.LittleEndian.PutUint64(p.state, n|counted)
		}
	case 8:
		if flags&4 != 0 {
			p.centre = append(p.centre[:0], p.x...)
		}
		perturb(p.x, p.centre, rest, f32(4))
		loss, correct, margin = Evaluate(p.x, ids)
	case 5:
		loss, correct, margin = Evaluate(p.x, ids)
	}
	if p.has("shrink") && p.file.Truncate(0) != nil {
		os.Exit(1)
	}
	out := binary.LittleEndian.AppendUint64(nil, uint64(id))
	out = binary.LittleEndian.AppendUint64(out, math.Float64bits(loss))
	out = binary.LittleEndian.AppendUint64(out, uint64(correct))
	out = binary.LittleEndian.AppendUint64(out, math.Float64bits(margin))
	if p.has("short") {
		out = out[:8]
	}
	write(66, out)
}

// Start is the initial value of parameter i for a key, in [-0.5, 0.5).
func Start(key uint64, i int) float32 {
	x := key + uint64(i)*0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return float32(x>>40)/(1<<24) - .5
}

// Sample returns the input and the class of a sample.
func Sample(id int) (x [Inputs]float64, class int) {
	class = id % Outputs
	for k := range x {
		x[k] = float64(Start(uint64(id), k))
	}
	x[class] += 1
	x[class+3] -= .5
	return x, class
}

// forward returns the hidden units and the log-probabilities of a sample.
func forward(p []float32, x [Inputs]float64) (h [Hidden]float64, logp [Outputs]float64) {
	for j := range h {
		s := float64(p[Hidden*Inputs+j])
		for k := range x {
			s += float64(p[j*Inputs+k]) * x[k]
		}
		h[j] = math.Tanh(s)
	}
	top, total := math.Inf(-1), 0.0
	w2 := p[Hidden*Inputs+Hidden:]
	for o := range logp {
		s := float64(w2[Outputs*Hidden+o])
		for j := range h {
			s += float64(w2[o*Hidden+j]) * h[j]
		}
		logp[o] = s
		top = max(top, s)
	}
	for _, z := range logp {
		total += math.Exp(z - top)
	}
	for o := range logp {
		logp[o] -= top + math.Log(total)
	}
	return h, logp
}

// Gradient writes the gradient of the mean loss over samples to g and returns the loss.
func Gradient(p []float32, ids []int, g []float32) (loss float64) {
	sum := make([]float64, Params)
	for _, id := range ids {
		x, class := Sample(id)
		h, logp := forward(p, x)
		loss -= logp[class]
		w2, d2 := p[Hidden*Inputs+Hidden:], sum[Hidden*Inputs+Hidden:]
		var dh [Hidden]float64
		for o := range logp {
			d := math.Exp(logp[o])
			if o == class {
				d--
			}
			d2[Outputs*Hidden+o] += d
			for j := range h {
				d2[o*Hidden+j] += d * h[j]
				dh[j] += d * float64(w2[o*Hidden+j])
			}
		}
		for j := range h {
			t := dh[j] * (1 - h[j]*h[j])
			sum[Hidden*Inputs+j] += t
			for k := range x {
				sum[j*Inputs+k] += t * x[k]
			}
		}
	}
	n := float64(len(ids))
	for i := range g {
		g[i] = float32(sum[i] / n)
	}
	return loss / n
}

// Sgd is SGD with Nesterov momentum, with a pull to an anchor and a running mean unless Anchor is nil.
type Sgd struct {
	Eta, Mu, Pull, Alpha float32
	Anchor, Mean         []float32
}

// Steps takes steps in the order and with the rounding of brood's own (optim.Nesterov, package coupled), and returns
// the loss before the last. g is memory for a gradient.
func (s Sgd) Steps(x, m, g []float32, batches [][]int) (loss float64) {
	for _, ids := range batches {
		loss = Gradient(x, ids, g)
		for i := range x {
			if s.Anchor != nil {
				g[i] = float32(g[i]+float32(s.Pull*x[i])) + float32(-s.Pull*s.Anchor[i])
			}
			m[i] = float32(s.Mu*m[i]) + g[i]
			x[i] = float32(x[i]+float32(-s.Eta*g[i])) + float32(float32(-s.Eta*s.Mu)*m[i])
			if s.Anchor != nil {
				s.Mean[i] = float32(s.Alpha*s.Mean[i]) + float32((1-s.Alpha)*x[i])
			}
		}
	}
	return loss
}

// perturb sets x to centre + step*noise; address is the cipher key, the member and the round of the noise.
func perturb(x, centre []float32, address []byte, step float32) {
	u32 := func(i int) uint32 { return binary.LittleEndian.Uint32(address[4*i:]) }
	schedule, lo := noise.NewSchedule(u32(0), u32(1)), 0
	for stream, shape := range [][2]int{{Hidden, Inputs}, {1, Hidden}, {Outputs, Hidden}, {1, Outputs}} {
		key := noise.Key{Member: u32(2), Round: uint64(u32(3)), Stream: uint32(stream)}
		var tile [noise.Tile]float32
		for row := range shape[0] {
			schedule.Row(&tile, key, uint32(row))
			for c := range shape[1] {
				x[lo] = centre[lo] + float32(step*tile[c])
				lo++
			}
		}
	}
}

// Evaluate returns the summed loss of samples, how many are predicted right, and the sum of the log-probabilities of
// their classes.
func Evaluate(p []float32, ids []int) (loss float64, correct int, margin float64) {
	for _, id := range ids {
		x, class := Sample(id)
		_, logp := forward(p, x)
		loss -= logp[class]
		margin += logp[class]
		best := 0
		for o := range logp {
			if logp[o] > logp[best] {
				best = o
			}
		}
		if best == class {
			correct++
		}
	}
	return loss, correct, margin
}
