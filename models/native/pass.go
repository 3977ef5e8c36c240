package native

import (
	"fmt"

	"brood/models"
	"brood/models/data"
	"brood/models/engine"
	"brood/models/native/kernel"
	"brood/models/noise"
)

// mode is the kind of a pass.
type mode uint8

const (
	training   mode = iota // dropout, batch statistics that also update the running ones, gradients
	batchStats             // no dropout, batch statistics
	running                // no dropout, given statistics
)

// pass is the execution of a plan on one thread: its kernels, buffers and current batch. The buffers have the size of
// the largest batch so far; a pass of that size or less allocates nothing.
type pass struct {
	plan     *plan
	thread   *thread
	k        *kernel.Kernels     // of thread
	tables   []*kernel.ByteTable // of the engine
	capacity int                 // samples that fit the buffers, a multiple of the block size

	act       [][]float32 // per activation
	saved     [][]float32 // per op: data stored for its backward pass in addition to activations
	slot      [][]float32 // gradients
	dy, dx    []float32   // gradients of the current op's result and operand; dx is nil if not needed
	augmented []byte      // bytes of augmented samples
	labels    []int32     // per sample and position of the loss
	losses    []float32   // per sample; within loss, per sample and position
	targets   []float32   // targets, samples x outputs
	weights   []float32   // per sample, in the loss; nil: all 1
	errors    []float64   // per sample: mean squared error over the outputs; multi-label: the share of wrong labels
	odds      odds        // of multi-label models
	variant   candidates
	whole     wholePass // of a whole-number model
	own       []float32 // statistics of one batch
	laneSums  [][kernel.Lanes]float32

	helpers []*helper // threads without an entry, which help this pass

	job     jobOf  // the current job
	gather  gather // jobs
	mover   mover
	sideJob sideJob

	n      int  // samples of this pass
	bf16   bool // evaluate candidates in bfloat16 arithmetic, in the given order
	order  kernel.Order
	mode   mode
	params []float32
	grad   []float32
	stats  []float32 // running statistics; nil: batch statistics are used and not stored
	mask   noise.Key
	keys   *noise.Schedule // noise schedule of key keyed, for dropout masks
	keyed  noise.Key
}

// activationSaver is an op that stores data from forward to backward. saves returns the number of floats for a number
// of samples.
type activationSaver interface{ saves(samples int) int }

func newPass(pl *plan, k *thread, tables []*kernel.ByteTable) *pass {
	return &pass{
		plan:   pl,
		thread: k,
		k:      k.Kernels,
		tables: tables,
		act:    make([][]float32, len(pl.buffers)),
		saved:  make([][]float32, len(pl.ops)),
		slot:   make([][]float32, len(pl.slots)),
	}
}

func (p *pass) blocks() int { return (p.n + kernel.Lanes - 1) / kernel.Lanes }

// live returns the number of samples in block b.
func (p *pass) live(b int) int { return min(kernel.Lanes, p.n-b*kernel.Lanes) }

// floats returns the number of floats of the buffers of a pass over that many samples, with or without gradients.
func (pl *plan) floats(samples int, gradients bool) (n int) {
	samples = wholeBlocks(samples)
	for _, b := range pl.buffers {
		n += samples * b.floats()
	}
	for _, o := range pl.ops {
		if s, ok := o.(activationSaver); ok {
			n += s.saves(samples)
		}
	}
	if gradients {
		for _, f := range pl.slots {
			n += samples * f
		}
	}
	return n
}

// wholeBlocks rounds a number of samples up to a multiple of the block size.
func wholeBlocks(samples int) int { return (samples + kernel.Lanes - 1) / kernel.Lanes * kernel.Lanes }

// reserve grows the buffers to the number of samples, with gradient buffers if gradients is set.
func (p *pass) reserve(samples int, gradients bool) {
	if samples = wholeBlocks(samples); samples > p.capacity {
		p.capacity = samples
		clear(p.slot)
		for i, b := range p.plan.buffers {
			p.act[i] = make([]float32, samples*b.floats())
		}
		for i, o := range p.plan.ops {
			if s, ok := o.(activationSaver); ok {
				p.saved[i] = make([]float32, s.saves(samples))
			}
		}
		rows := samples * p.plan.model.Positions
		p.labels, p.losses, p.weights = make([]int32, rows), make([]float32, rows), nil
		if m := p.plan.model; m.Targeted() {
			p.targets, p.errors = make([]float32, samples*m.Outputs), make([]float64, samples)
		}
		if m := p.plan.model; m.MultiLabel() && p.odds.z == nil {
			p.odds = newOdds(m.Outputs)
		}
	}
	for i, f := range p.plan.slots {
		if gradients && p.slot[i] == nil {
			p.slot[i] = make([]float32, p.capacity*f)
		}
	}
}

// all returns activation i of the current samples.
func (p *pass) all(i int) []float32 {
	lo, hi := p.span(i, 0, p.blocks())
	return p.act[i][lo:hi]
}

// span returns the range of blocks [lo, hi) of samples in an activation, and in gradients of its shape.
func (p *pass) span(activation, lo, hi int) (int, int) {
	b := p.plan.buffers[activation]
	samples := hi * kernel.Lanes
	if !b.block {
		samples = min(samples, p.n)
	}
	return lo * kernel.Lanes * b.floats(), samples * b.floats()
}

// load gathers the samples, labels, targets and weights of a batch. at is the address at which its first sample was
// drawn.
func (p *pass) load(set *data.Set, ids []int32, at noise.Key, gradients bool) error {
	p.reserve(len(ids), gradients)
	p.n = len(ids)
	features := p.plan.model.Features
	if len(p.tables) == 0 {
		p.loadTargets(set, ids)
		err := set.GatherDrawn(ids, at, p.act[0][:p.n*features], p.labels[:p.n])
		p.labelPositions(set, ids)
		return err
	}
	p.gather.set, p.gather.ids, p.gather.at = set, ids, at
	if (set.Augment() != data.Augment{}) && len(p.augmented) < p.capacity*features {
		p.augmented = make([]byte, p.capacity*features)
	}
	if err := p.label(set, ids, gradients); err != nil {
		return err
	}
	p.spread(&p.gather, p.blocks())
	return nil
}

// label is like load without the samples.
func (p *pass) label(set *data.Set, ids []int32, gradients bool) error {
	p.reserve(len(ids), gradients)
	p.n = len(ids)
	for i, id := range ids {
		if p.labels[i] = set.Label(id); p.labels[i] < 0 {
			return fmt.Errorf("data %s: no sample %d, ids are below %d", set.Name, id, set.Len())
		}
	}
	p.labelPositions(set, ids)
	p.loadTargets(set, ids)
	return nil
}

// labelPositions replaces the labels of samples by those of their positions, if the loss is taken at each.
func (p *pass) labelPositions(set *data.Set, ids []int32) {
	n := p.plan.model.Positions
	for i := 0; n > 1 && i < len(ids); i++ {
		for t, b := range set.Next(ids[i]) {
			p.labels[i*n+t] = int32(b)
		}
	}
}

// loadTargets loads the targets and, if the data set has them, the weights of samples.
func (p *pass) loadTargets(set *data.Set, ids []int32) {
	m := p.plan.model
	if set.Weighs() {
		if p.weights == nil {
			p.weights = make([]float32, p.capacity)
		}
		for i, id := range ids {
			p.weights[i] = set.Weight(id)
		}
	}
	for i := 0; m.Targeted() && i < len(ids); i++ {
		copy(p.targets[i*m.Outputs:(i+1)*m.Outputs], set.Targets(ids[i]))
	}
}

// fewPixels is the number of pixels per channel below which table lookups are no faster than data.Set.GatherDrawn.
const fewPixels = 16

// byteTables returns one normalisation table per channel of a data set of bytes; none if the set itself gathers the
// samples.
func byteTables(set *data.Set) (tables []*kernel.ByteTable) {
	channels := set.Normal()
	if n := len(channels); n == 0 || set.Features()/n < fewPixels {
		return nil
	}
	for _, values := range channels {
		tables = append(tables, kernel.NewByteTable(values))
	}
	return tables
}

// gather is the job that normalises the bytes of samples by table lookup.
type gather struct {
	set *data.Set
	ids []int32
	at  noise.Key
}

// image returns the bytes of sample i of the batch, augmented if the set is.
func (g *gather) image(p *pass, i int) []byte {
	if len(p.augmented) == 0 {
		return g.set.Image(g.ids[i])
	}
	at, features := g.at, p.plan.model.Features
	at.Round += uint64(i)
	return g.set.Drawn(p.augmented[i*features:(i+1)*features], g.ids[i], at)
}

func (g *gather) run(p *pass, k *kernel.Kernels, lo, hi int) {
	features := p.plan.model.Features
	plane := features / len(p.tables)
	last := min(hi*kernel.Lanes, p.n) - 1
	for i := lo * kernel.Lanes; i <= last; i++ {
		pixels, row := g.image(p, i), p.act[0][i*features:(i+1)*features]
		next := g.set.Image(g.ids[min(i+1, last)])
		for c := range p.tables {
			k.Lookup(row[c*plane:(c+1)*plane], pixels[c*plane:], p.tables[c], next[c*plane:])
		}
	}
}

// forward runs all ops and returns the logits.
func (p *pass) forward() []float32 {
	for _, o := range p.plan.ops {
		o.forward(p)
	}
	return p.logits()
}

// logits returns the last activation.
func (p *pass) logits() []float32 { return p.act[p.plan.results[len(p.plan.results)-1]] }

// gradient runs a forward and a backward pass. It writes the gradient of the mean loss to p.grad and returns the summed
// loss.
func (p *pass) gradient() (float64, error) {
	z := p.forward()
	if len(p.plan.turns) > 0 {
		p.dy = p.slot[p.plan.turns[0].dy]
	}
	if err := p.loss(z, p.dy, 1/float32(p.n)); err != nil {
		return 0, err
	}
	p.backward()
	return total(p.losses[:p.n]), nil
}

// loss writes the losses of the samples with logits z to p.losses and, unless d is nil, scale times their gradients to
// d.
func (p *pass) loss(z, d []float32, scale float32) error {
	m := p.plan.model
	switch m.Loss {
	case models.MSE, models.Huber:
		p.regression(z, d, scale)
		return nil
	case models.BCE:
		return p.independent(z, d, scale)
	case models.CrossEntropy:
		scale /= float32(m.Positions)
		err := p.k.CrossEntropy(p.losses, d, m.Classes, z, m.Classes, m.Classes, p.labels[:p.n*m.Positions], scale)
		if err == nil && d != nil && m.Smoothing > 0 {
			p.smooth(z, d, scale)
		}
		p.meanOfPositions()
		if err == nil && p.weights != nil {
			p.applyWeights(d)
		}
		return err
	}
	x := p.act[0]
	for s := range p.n {
		var sum float64
		for i := s * m.Features; i < (s+1)*m.Features; i++ {
			e := z[i] - x[i]
			sum += float64(float64(e) * float64(e))
			if d != nil {
				d[i] = 2 * scale * e
			}
		}
		p.losses[s] = float32(sum)
	}
	return nil
}

// smooth applies label smoothing, which spreads a share s of each label evenly over all K classes. The loss becomes
//
//	(1-s)*(-log p[label]) + s*mean(-log p) = -log p[label] + s*(z[label] - mean(z)),
//
// and its gradient decreases by s/K for each class and increases by s at the label. The mean is summed in float64 in
// the order of the classes, and the added terms are rounded to float32 first.
func (p *pass) smooth(z, d []float32, scale float32) {
	m := p.plan.model
	own, even := float32(float64(scale)*m.Smoothing), float32(float64(scale)*m.Smoothing/float64(m.Classes))
	for s, label := range p.labels[:p.n*m.Positions] {
		z, d := z[s*m.Classes:(s+1)*m.Classes], d[s*m.Classes:(s+1)*m.Classes]
		var sum float64
		for c, v := range z {
			sum += float64(v)
			d[c] -= even
		}
		d[label] += own
		p.losses[s] += float32(m.Smoothing * (float64(z[label]) - sum/float64(m.Classes)))
	}
}

// meanOfPositions replaces the losses of positions by the mean of each sample.
func (p *pass) meanOfPositions() {
	n := p.plan.model.Positions
	if n == 1 {
		return
	}
	for s := range p.n {
		p.losses[s] = float32(total(p.losses[s*n:(s+1)*n]) / float64(n))
	}
}

// applyWeights multiplies the losses of the samples and, unless d is nil, their gradients by the sample weights.
func (p *pass) applyWeights(d []float32) {
	classes := p.plan.model.Classes
	for s, w := range p.weights[:p.n] {
		p.losses[s] *= w
		if d == nil {
			continue
		}
		row := d[s*classes : (s+1)*classes]
		for c := range row {
			row[c] *= w
		}
	}
}

// score returns the summed loss and the correct predictions of the loaded samples.
func (p *pass) score() (loss float64, correct int64, err error) { return p.tally(p.forward()) }

// lossOf returns the summed loss of logits.
func (p *pass) lossOf(z []float32) (float64, error) {
	if err := p.loss(z, nil, 1); err != nil {
		return 0, err
	}
	return total(p.losses[:p.n]), nil
}

// tally returns the summed loss of logits and the correct predictions, which are those of the last position.
func (p *pass) tally(z []float32) (loss float64, correct int64, err error) {
	if loss, err = p.lossOf(z); err != nil {
		return 0, 0, err
	}
	if p.plan.model.MultiLabel() {
		for _, wrong := range p.errors[:p.n] {
			if wrong == 0 {
				correct++
			}
		}
		return loss, correct, nil
	}
	m := p.plan.model
	for s := range p.n {
		if m.Classes == 0 { // there are no correct predictions
			break
		}
		last := (s+1)*m.Positions - 1
		row, best := z[last*m.Classes:(last+1)*m.Classes], 0
		for c, v := range row {
			if v > row[best] {
				best = c
			}
		}
		if best == int(p.labels[last]) {
			correct++
		}
	}
	return loss, correct, nil
}

func total(x []float32) (s float64) {
	for _, v := range x {
		s += float64(v)
	}
	return s
}

// tensor returns the elements of tensor i in a flat parameter vector.
func tensor(flat []float32, m *models.Model, i int) []float32 {
	return part(flat, &m.Layout.Tensors[i])
}

func part(flat []float32, t *engine.Tensor) []float32 { return flat[t.Lo : t.Lo+t.Len : t.Lo+t.Len] }
