package ptxtest

import (
	"fmt"
	"slices"
)

// An address is the number of a piece of memory above the offset in it. Two numbers are reserved for shared memory and
// for a work item's local memory.
const (
	places      = 40
	sharedPiece = 1<<20 - 1
	localPiece  = 1<<20 - 2
)

// fault describes an invalid operation of a kernel.
type fault string

type state int

const (
	running  state = iota
	waiting        // at a barrier
	gathered       // at an instruction that the whole warp executes
	done
)

// thread is a work item.
type thread struct {
	*group
	id    int
	r     []uint64
	pc    int
	state state
	local []byte
}

// group is the work items that share memory.
type group struct {
	device *Device
	args   []byte
	shared []byte
	wrote  []touch // by word of shared memory
	read   []touch
	epoch  int // number of barriers passed
}

// touch records which work items used a word since the last barrier.
type touch struct {
	epoch    int // the group's epoch plus one; 0: not used
	workItem int // work item; -1: several
}

// run runs all groups of a launch.
func (d *Device) run(k *kernel, groups [3]int, size int, args []byte) {
	threads := make([]thread, size)
	for i := range threads {
		threads[i] = thread{id: i, r: make([]uint64, len(k.first)), local: make([]byte, k.local)}
	}
	for z := range groups[2] {
		for y := range groups[1] {
			for x := range groups[0] {
				g := &group{
					device: d,
					args:   args,
					shared: make([]byte, k.shared),
					wrote:  make([]touch, k.shared/4),
					read:   make([]touch, k.shared/4),
				}
				for i := range threads {
					t := &threads[i]
					t.group, t.pc, t.state = g, 0, running
					copy(t.r, k.first)
					for n, v := range [12]int{i, 0, 0, size, 1, 1, x, y, z, groups[0], groups[1], groups[2]} {
						t.r[k.sizes[n]] = uint64(v)
					}
				}
				g.run(k, threads)
			}
		}
	}
}

// warp is the number of work items that execute some instructions together.
const warp = 32

// run runs the group's work items from barrier to barrier.
func (g *group) run(k *kernel, threads []thread) {
	for {
		stopped := 0
		for some := range slices.Chunk(threads, warp) {
			for g.together(k, some) {
			}
		}
		for i := range threads {
			if threads[i].state == done {
				stopped++
			}
		}
		if stopped == len(threads) {
			return
		}
		if stopped > 0 {
			panic(fault(fmt.Sprintf("%d of %d work items do not reach a barrier", stopped, len(threads))))
		}
		g.epoch++
		for i := range threads {
			threads[i].state = running
		}
	}
}

// together runs a warp until each item reaches a barrier, its end, or an instruction for whole warps. It executes such
// an instruction and returns true if there was one.
func (g *group) together(k *kernel, threads []thread) bool {
	var at *inst
	met := 0
	for i := range threads {
		t := &threads[i]
		if t.state == running {
			t.run(k)
		}
		if t.state == gathered {
			if at == nil {
				at = &k.code[t.pc-1]
			}
			if at == &k.code[t.pc-1] {
				met++
			}
		}
	}
	switch {
	case at == nil:
		return false
	case met < warp:
		panic(fault(fmt.Sprintf("%s: %d of the %d work items of a warp meet there", at.text, met, warp)))
	}
	at.all(threads, at)
	for i := range threads {
		threads[i].state = running
	}
	return true
}

// mostSteps is the largest number of instructions of a work item between barriers; more count as an infinite loop.
const mostSteps = 1 << 28

func (t *thread) run(k *kernel) {
	for range mostSteps {
		i := &k.code[t.pc]
		t.pc++
		if i.guard >= 0 && (t.r[i.guard] == 0) != i.unless {
			continue
		}
		if i.do(t, i); t.state != running {
			return
		}
	}
	panic(fault("a loop without end"))
}

func jump(t *thread, i *inst) { t.pc = i.target }

// halves returns the lower and the upper word of a register.
func halves(t *thread, i *inst) {
	x := t.r[i.a]
	t.r[i.vector[0]], t.r[i.vector[1]] = uint64(uint32(x)), x>>32
}

func loadParam(t *thread, i *inst) {
	t.r[i.vector[0]] = word(t.args[i.target:i.target+i.bytes], i.signed)
}

func load(t *thread, i *inst) {
	p := t.memory(i, false)
	for n, r := range i.vector {
		t.r[r] = word(p[n*i.bytes:(n+1)*i.bytes], i.signed)
	}
}

func store(t *thread, i *inst) {
	p := t.memory(i, true)
	for n, r := range i.vector {
		put(p[n*i.bytes:(n+1)*i.bytes], t.r[r])
	}
}

func atomicOr(t *thread, i *inst) {
	p := t.memory(i, false)
	old := word(p, false)
	put(p, old|t.r[i.b])
	t.r[i.vector[0]] = old
}

// memory returns the bytes that an instruction accesses.
func (t *thread) memory(i *inst, write bool) []byte {
	at := t.r[i.a] + uint64(int64(i.target))
	piece, place, n := int(at>>places), int(at&(1<<places-1)), i.bytes*len(i.vector)
	var p []byte
	switch {
	case piece == sharedPiece:
		p = t.shared
	case piece == localPiece:
		p = t.local
	case piece < len(t.device.pieces):
		p = t.device.pieces[piece]
	}
	if place+n > len(p) {
		panic(fault(fmt.Sprintf("%s: %d bytes at %d of a piece of %d", i.text, n, place, len(p))))
	}
	if place%n != 0 {
		panic(fault(fmt.Sprintf("%s: %d bytes at %d, which is not aligned", i.text, n, place)))
	}
	if piece == sharedPiece {
		for word := place / 4; word < (place+n+3)/4; word++ {
			t.touch(i, word, write)
		}
	}
	return p[place : place+n]
}

// touch records an access to a word of shared memory. It is a fault if another work item wrote the word since the last
// barrier, or if this one writes a word that another used.
func (t *thread) touch(i *inst, word int, write bool) {
	now := t.epoch + 1
	if w := t.wrote[word]; w.epoch == now && w.workItem != t.id {
		panic(fault(fmt.Sprintf("%s: work items %d and %d meet at byte %d of shared memory",
			i.text, w.workItem, t.id, 4*word)))
	}
	r := &t.read[word]
	if write {
		if r.epoch == now && r.workItem != t.id {
			panic(fault(fmt.Sprintf("%s: work item %d writes byte %d of shared memory, which another reads", i.text, t.id,
				4*word)))
		}
		t.wrote[word] = touch{now, t.id}
		return
	}
	if r.epoch == now && r.workItem != t.id {
		r.workItem = -1
	} else {
		*r = touch{now, t.id}
	}
}
