package host

import (
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"brood/models/gpu"
	"brood/models/gpu/opencl"
	"brood/models/longtest"
	"brood/optim"
	"brood/optim/averaging"
	"brood/optim/catalog"
	"brood/optim/collective"
	"brood/optim/coupled"
	"brood/optim/evolution"
	"brood/optim/gossip"
	"brood/optim/population"
	"brood/runtime/event"
	"brood/runtime/message"
	"brood/transport/local"
)

// usage counts the calls to a device.
type usage struct {
	launches    map[string]int // by kernel
	wrote, read int            // bytes
	waits       int            // waits for the queue
	allocs      int
	calls       int // driver calls if repeated chains are replayed as graphs, as the CUDA driver does
}

// less returns the counts since an earlier count.
func (u usage) less(o usage) usage {
	out := usage{map[string]int{}, u.wrote - o.wrote, u.read - o.read, u.waits - o.waits, u.allocs - o.allocs,
		u.calls - o.calls}
	for k, n := range u.launches {
		if n != o.launches[k] {
			out.launches[k] = n - o.launches[k]
		}
	}
	return out
}

// total returns the number of launches of all kernels.
func (u usage) total() (n int) {
	for _, some := range u.launches {
		n += some
	}
	return n
}

func (u usage) copy() usage {
	u.launches = maps.Clone(u.launches)
	return u
}

// counting is a driver with a single device, which is opened once, that counts calls. Compiled kernels are reused.
type counting struct {
	gpu.Driver
	gpu.Device
	loaded  map[string]bool
	kernels map[string]gpu.Kernel
	names   map[gpu.Kernel]string
	chains  map[string][]string // arguments of the launches of a chain; the key is its kernels and groups
	usage
}

func (c *counting) Name() string                 { return c.Driver.Name() }
func (c *counting) Devices() ([]gpu.Info, error) { return []gpu.Info{c.Info()}, nil }
func (c *counting) Open(int) (gpu.Device, error) { return c, nil }
func (c *counting) Close()                       {}

func (c *counting) Load(name, source string) error {
	if c.loaded[source] {
		return nil
	}
	c.loaded[source] = true
	return c.Device.Load(name, source)
}

func (c *counting) Kernel(name string) (gpu.Kernel, error) {
	if k, ok := c.kernels[name]; ok {
		return k, nil
	}
	k, err := c.Device.Kernel(name)
	c.kernels[name], c.names[k] = k, name
	return k, err
}

func (c *counting) Launch(k gpu.Kernel, groups [3]int, size int, args ...any) error {
	c.launches[c.names[k]]++
	c.calls++
	return c.Device.Launch(k, groups, size, args...)
}

// Sequence counts as a device with graphs would: a repeated chain of at least four launches is one call, plus one for
// each launch whose arguments changed.
func (c *counting) Sequence(calls []gpu.Call) error {
	key, args := "", []string{}
	for _, x := range calls {
		key += fmt.Sprintln(x.Kernel, x.Groups, x.Size)
		args = append(args, fmt.Sprint(x.Args...))
	}
	if before, ok := c.chains[key]; ok && len(calls) >= 4 {
		c.calls -= len(calls) - 1
		for i := range args {
			if args[i] != before[i] {
				c.calls++
			}
		}
	}
	c.chains[key] = args
	for _, x := range calls {
		if err := c.Launch(x.Kernel, x.Groups, x.Size, x.Args...); err != nil {
			return err
		}
	}
	return nil
}

func (c *counting) Write(dst gpu.Memory, at int, p []byte) error {
	c.wrote += len(p)
	return c.Device.Write(dst, at, p)
}

func (c *counting) Read(p []byte, src gpu.Memory, at int) error {
	c.read += len(p)
	c.waits++
	return c.Device.Read(p, src, at)
}

func (c *counting) Finish() error {
	c.waits++
	return c.Device.Finish()
}

func (c *counting) Alloc(bytes int) (gpu.Memory, error) {
	c.allocs++
	return c.Device.Alloc(bytes)
}

// counted replaces the drivers of the test process by one that counts.
func counted(t *testing.T) *counting {
	t.Helper()
	d := opencl.Driver{}
	if _, err := d.Devices(); err != nil {
		t.Skip(err)
	}
	open, err := d.Open(0)
	if err != nil {
		t.Fatal(err)
	}
	c := &counting{d, open, map[string]bool{}, map[string]gpu.Kernel{}, map[gpu.Kernel]string{}, map[string][]string{},
		usage{launches: map[string]int{}}}
	was := drivers
	drivers = []gpu.Driver{c}
	t.Cleanup(func() {
		drivers = was
		open.Close()
	})
	return c
}

// perRound has the calls to a device in a round, once its memory is allocated and the first period is over.
type perRound struct {
	launches, calls, gradients, evaluations, wrote, read, waits float64
	allocs                                                      int     // of the longer grant, not per round
	row                                                         float64 // bytes of a row of parameters
}

// measured returns the calls in a round of a worker that hosts all n members. It is the difference of a longer and a
// shorter grant, which excludes what a grant does once.
func measured(t *testing.T, c *counting, a *optim.Algorithm, n int, augment, model string) perRound {
	t.Helper()
	o := brief(a, "mlp-small", fewImages)
	if model != "" {
		o.Model, o.Data = model, "tales"
	}
	o.Members, o.Device, o.Augment = n, "opencl:0", augment
	j := prepare(t, o)
	w, err := j.Worker(0, (&local.Hub{}).Link(0), nil, nil, 1, false)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Free()
	plan := event.Plan{
		Epoch:     1,
		From:      event.Fresh,
		New:       collective.Place(collective.IDs(n), []int{0}),
		Algorithm: a.Name,
		Timeline:  j.Edits,
	}
	if m, ok := w.Handle(t.Context(), message.Plan{Plan: plan}).(message.Failed); ok {
		t.Fatal(m.Err)
	}
	at := uint64(0)
	grant := func(rounds uint64) (usage, int) {
		before := c.usage.copy()
		d, ok := w.Handle(t.Context(), message.Grant{
			Epoch:     1,
			From:      at,
			To:        at + rounds,
			Committed: at,
			Limit:     event.Limit{Rounds: 1 << 30},
		}).(message.Done)
		if !ok {
			t.Fatal("the grant failed")
		}
		at += rounds
		return c.usage.copy().less(before), int(d.Progress.Evaluations)
	}
	const rounds = 4
	_, first := grant(4 * rounds)
	short, second := grant(rounds)
	long, third := grant(2 * rounds)
	u := long.less(short)
	each := func(n int) float64 { return float64(n) / rounds }
	return perRound{each(u.total()), each(u.calls), each(u.launches["cross_entropy"]), each(third - 2*second + first),
		each(u.wrote), each(u.read), each(u.waits),
		long.allocs, float64(4 * j.Net.Layout.Params)}
}

// growing lists algorithms whose rounds process members or children in sequence, or pass over shards. For all others
// the number of launches in a round does not depend on the number of members.
var growing = []*optim.Algorithm{averaging.BGD, averaging.DecoupledDiLoCo, coupled.EASGD, gossip.ADPSGD, gossip.PopSGD,
	population.GA, population.PESGD, population.PBT, population.PB2}

// crossing lists algorithms that compute messages, shuffles, square roots, limits or covariance on the processor. They
// copy rows of parameters between host and device, and wait for them.
var crossing = []*optim.Algorithm{averaging.SparseLoCo, averaging.DeMo, averaging.WASH, averaging.SPARTA,
	evolution.SepCMA, evolution.PGPE, evolution.CRFMNES}

// TestLaunches counts the launches, transfers and waits of a round. Nothing is allocated, and the gradient family never
// waits. Only the algorithms in crossing transfer rows of parameters. The rows of docs/results/gpu-launches.csv equal
// the counts; without BROOD_LONG the test checks one of them.
func TestLaunches(t *testing.T) {
	c, few, many := counted(t), 4, 12
	recorded, err := os.ReadFile("../../docs/results/gpu-launches.csv")
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	type what struct {
		*optim.Algorithm
		augment, model string
	}
	long := longtest.On(longtest.Devices)
	var all []what
	for _, a := range catalog.All() {
		if a.Needs.Model() && a.Needs&optim.Whole == 0 && (long || a == averaging.DPSGD) {
			all = append(all, what{a, "", ""})
		}
	}
	if long {
		all = append(all, what{averaging.DPSGD, "pad=2,flip", ""}, what{evolution.OpenAIES, "pad=2,flip", ""})
		for _, model := range []string{"bytes-mingru", "bytes-attention"} {
			all = append(all, what{averaging.DPSGD, "", model}, what{evolution.OpenAIES, "", model})
		}
	}
	for _, x := range all {
		a := x.Algorithm
		var of [2]perRound
		for i, n := range []int{few, many} {
			u := measured(t, c, a, n, x.augment, x.model)
			of[i] = u
			stays := !slices.Contains(crossing, a)
			// The report of BGD is a mean over the passes of a shard, and Decoupled DiLoCo needs lengths of members' changes.
			family := stays && a.Needs&optim.Evaluations == 0 && a != averaging.BGD && a != averaging.DecoupledDiLoCo
			if family && u.waits != 0 {
				t.Errorf("%s with %d members waits %g times a round", a.Name, n, u.waits)
			}
			if u.allocs != 0 {
				t.Errorf("%s with %d members allocates memory %d times", a.Name, n, u.allocs)
			}
			// Each member or candidate has a loss and a number of hits, and some have lengths of 8 bytes. lm-ma-es also has
			// the lengths of its directions, their distances to one direction, and the distances of each candidate and of the
			// mean to all directions.
			products := 0
			if v := 4 + int(3*math.Log(u.row/4)); a == evolution.LMMAES {
				products = 8 * (2*v + (n+1)*(v+1) + 1)
			}
			if limit := float64(16*n)*u.gradients + 24*u.evaluations + float64(8*n+products); stays && u.read > limit {
				t.Errorf("%s with %d members reads %g bytes a round, more than %g", a.Name, n, u.read, limit)
			}
			if stays && u.wrote > u.row/10 {
				t.Errorf("%s with %d members writes %g bytes a round, and a row of parameters has %g", a.Name, n, u.wrote, u.row)
			}
		}
		if same := of[0].launches == of[1].launches; !same && !slices.Contains(growing, a) {
			t.Errorf("%s has %g launches a round with %d members and %g with %d", a.Name, of[0].launches, few,
				of[1].launches, many)
		}
		name := a.Name
		if x.augment != "" {
			name += " augmented"
		}
		if x.model != "" {
			name += " " + x.model
		}
		line := fmt.Sprintf("%s,%.4g,%.4g,%.4g,%.0f,%.0f,%.0f,%.2g\n", name, of[0].launches, of[1].launches, of[1].calls,
			of[0].wrote, of[1].wrote, of[1].read, of[1].waits)
		if table.WriteString(line); !strings.Contains(string(recorded), "\n"+line) {
			t.Errorf("docs/results/gpu-launches.csv does not have the row %s", line)
		}
	}
	if long && !strings.Contains(string(recorded), table.String()) {
		t.Errorf("docs/results/gpu-launches.csv does not have the measured rows, which are\n%s", table.String())
	}
}
