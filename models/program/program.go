// Package program trains a model of the user's own: a program, in any language, that computes gradients and evaluations
// of its model on its data. brood decides the order of the samples, moves the parameters, and does all arithmetic
// between members itself (models/native). Engine is the engine of such a run. It imports models, their engines, noise
// and subprocess.
//
//	p, err := program.Open(ctx, []string{"python3", "train.py"}, "")
//	net, err := p.Model()
//	eng, err := p.Engine(2)
//	err = eng.Do(ctx, engine.Gradients{...})
//
// A program describes itself, so that no further file is needed. docs/programs.md specifies the protocol byte by byte.
package program

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"brood/models"
	"brood/models/arith"
	"brood/models/data"
	"brood/models/noise"
	"brood/models/subprocess"
)

// idleTimeout is the time after which unused processes of a program are ended.
const idleTimeout = 15 * time.Second

// Program is a program that has described itself. It keeps idle processes for its engines, since a start takes seconds.
// It is safe for concurrent use. Call Close when no engine is in use.
type Program struct {
	Command   []string
	Device    string // that the program is asked to compute on; "" leaves it to the program
	desc      Description
	described string // description as text
	text      string // described, and what identifies the command
	set       *data.Set

	mu    sync.Mutex
	idle  []*process
	timer *time.Timer // ends the idle processes
}

// Open starts the program once and reads its description.
func Open(ctx context.Context, command []string, device string) (*Program, error) {
	p := &Program{Command: command, Device: device}
	first, err := start(ctx, command, device)
	if err != nil {
		return nil, p.cause(err)
	}
	p.desc = first.desc
	words, err := subprocess.Identity(command)
	if err == nil {
		p.described, err = p.desc.text()
	}
	if err != nil {
		first.shutdown()
		return nil, p.cause(err)
	}
	p.text, p.set = p.described+words, p.desc.samples(p.Name())
	programs.add(p)
	p.put(first)
	return p, nil
}

// cause adds the command to an error of the program.
func (p *Program) cause(err error) error {
	return fmt.Errorf("the program %s: %w", strings.Join(p.Command, " "), err)
}

// Description returns the description that the program sent; read-only.
func (p *Program) Description() *Description { return &p.desc }

// Text returns what sessions record: the description without what computes, the words of the command, and the digests
// of those that are files. Programs with equal texts are considered the same.
func (p *Program) Text() string { return p.text }

// Name returns the command with each path reduced to its last element.
func (p *Program) Name() string { return subprocess.Name(p.Command) }

// Kernels names what determines the bits of the results: the program, its library and what it computes on, and the
// arithmetic of everything else.
func (p *Program) Kernels() string {
	return fmt.Sprintf("program/%s/%s/%s+%s", digest(p.text), p.desc.Library, p.desc.Device, arith.Name)
}

// Model returns the parameters and buffers as a model without layers.
func (p *Program) Model() (*models.Model, error) { return p.desc.model() }

// Data returns the ids of the program's samples; read-only.
func (p *Program) Data() *data.Set { return p.set }

// Processes returns how many processes a worker with that many threads uses.
func (p *Program) Processes(threads int) int {
	if p.desc.Processes > 0 {
		return p.desc.Processes
	}
	return max(1, threads/max(1, p.desc.Threads))
}

// take returns an idle process, or starts one.
func (p *Program) take(ctx context.Context) (*process, error) {
	p.mu.Lock()
	var gone []*process
	var found *process
	for len(p.idle) > 0 && found == nil {
		last := p.idle[len(p.idle)-1]
		p.idle = p.idle[:len(p.idle)-1]
		if last.Exited() {
			gone = append(gone, last)
		} else {
			found = last
		}
	}
	p.mu.Unlock()
	for _, q := range gone {
		q.shutdown()
	}
	if found != nil {
		return found, nil
	}
	return p.start(ctx)
}

// start starts a process and compares its description with that of the first one.
func (p *Program) start(ctx context.Context) (*process, error) {
	fresh, err := start(ctx, p.Command, p.Device)
	if err != nil {
		return nil, p.cause(err)
	}
	if err := p.same(&fresh.desc); err != nil {
		return nil, p.cause(fresh.fail(err))
	}
	return fresh, nil
}

// same returns an error if d differs from the description of the first process.
func (p *Program) same(d *Description) error {
	text, err := d.text()
	if err != nil {
		return err
	}
	if text != p.described {
		have, want := strings.Split(text, "\n"), strings.Split(p.described, "\n")
		at := 0
		for at < min(len(have), len(want))-1 && have[at] == want[at] {
			at++
		}
		return fmt.Errorf("its description has the line %q, where the first process sent %q: "+
			"a description must depend on the files of the program only", have[at], want[at])
	}
	if d.Library != p.desc.Library || d.Device != p.desc.Device {
		return fmt.Errorf("it computes with %s on %s, but the first process computed with %s on %s",
			d.Library, d.Device, p.desc.Library, p.desc.Device)
	}
	return nil
}

// Warm starts processes, concurrently, until n are idle. It returns an error if one does not start, or if its
// description differs from the description of the first process.
func (p *Program) Warm(ctx context.Context, n int) error {
	p.mu.Lock()
	missing := n - len(p.idle)
	p.mu.Unlock()
	errs := make([]error, max(0, missing))
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			var q *process
			if q, errs[i] = p.start(ctx); errs[i] == nil {
				p.put(q)
			}
		})
	}
	wg.Wait()
	return cmp.Or(errs...)
}

// put makes a process available to the next engine.
func (p *Program) put(q *process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, q)
	if p.timer == nil {
		p.timer = time.AfterFunc(idleTimeout, p.Close)
	}
	p.timer.Reset(idleTimeout)
}

// registry is the programs of this process that may have idle processes.
type registry struct {
	mu  sync.Mutex
	all []*Program
}

var programs registry

func (r *registry) add(p *Program) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, p)
}

// CloseAll ends the idle processes of all programs, and kills those that do not end. Call it before this process exits,
// since a program may ignore the end of its input.
func CloseAll() {
	programs.mu.Lock()
	all := slices.Clone(programs.all)
	programs.mu.Unlock()
	var wg sync.WaitGroup
	for _, p := range all {
		wg.Go(p.Close)
	}
	wg.Wait()
}

// Close ends all idle processes. The program can still be used: processes are started when they are needed.
func (p *Program) Close() {
	p.mu.Lock()
	idle := slices.Clone(p.idle)
	p.idle = nil
	p.mu.Unlock()
	var wg sync.WaitGroup
	for _, q := range idle {
		wg.Go(q.shutdown)
	}
	wg.Wait()
}

// Init writes the initial parameters and statistics for a random key. Both are functions of the key. It may start a
// process in addition to those of the engines.
func (p *Program) Init(ctx context.Context, key noise.Key, params, stats []float32) error {
	q, err := p.take(ctx)
	if err != nil {
		return err
	}
	if err := q.do(ctx, task{kind: kindInit, key: key64(key), outParams: params, outStats: stats}, &result{}); err != nil {
		return p.cause(err)
	}
	p.put(q)
	return nil
}
