package native

import (
	"brood/models"
	"brood/models/native/kernel"
)

// pool is the maximum or the mean of windows.
type pool struct {
	wire
	w    *kernel.Pool
	mean bool
}

func (p *plan) pool(l *models.Layer, in int) (int, error) {
	w, err := kernel.NewPool(kernel.PoolShape{
		Channels: l.In[0],
		H:        l.In[1],
		W:        l.In[2],
		Kernel:   l.Kernel,
		Stride:   l.Stride,
	})
	if err != nil {
		return 0, err
	}
	out := shaped(l.Out, true)
	if l.Kind == models.MaxPool && p.takePool(in, w, out) {
		return p.same(in), nil
	}
	return p.to(&pool{wire{in: in, with: -1, out: p.buffer(out)}, w, l.Kind == models.AvgPool}), nil
}

func (o *pool) forward(p *pass) { p.spread((*poolForward)(o), p.blocks()) }

func (o *pool) backward(p *pass, input bool) {
	if input {
		p.spread((*poolBack)(o), p.blocks())
	}
}

type poolForward pool

func (o *poolForward) run(p *pass, k *kernel.Kernels, lo, hi int) {
	in, out := o.w.Inputs(), o.w.Outputs()
	for b := lo; b < hi; b++ {
		y, x := p.act[o.out][b*out:(b+1)*out], p.act[o.in][b*in:(b+1)*in]
		if o.mean {
			k.MeanPool(o.w, y, x)
		} else {
			k.MaxPool(o.w, y, x)
		}
	}
}

type poolBack pool

func (o *poolBack) run(p *pass, k *kernel.Kernels, lo, hi int) {
	in, out := o.w.Inputs(), o.w.Outputs()
	for b := lo; b < hi; b++ {
		dx, dy := p.dx[b*in:(b+1)*in], p.dy[b*out:(b+1)*out]
		if o.mean {
			k.MeanPoolBack(o.w, dx, dy)
		} else {
			k.MaxPoolBack(o.w, dx, dy, p.act[o.out][b*out:(b+1)*out], p.act[o.in][b*in:(b+1)*in])
		}
	}
}

// average is the mean of each channel.
type average struct {
	wire
	channels, pixels, plane int
}

func (p *plan) average(l *models.Layer, in int) int {
	out := p.buffer(shaped(l.Out, true))
	return p.to(&average{wire{in: in, with: -1, out: out}, l.In[0], l.In[1] * l.In[2], kernel.Plane(l.In[1], l.In[2])})
}

func (o *average) forward(p *pass) { p.spread((*averageForward)(o), p.blocks()*o.channels) }

func (o *average) backward(p *pass, input bool) {
	if input {
		p.spread((*averageBack)(o), p.blocks()*o.channels)
	}
}

type averageForward average

func (o *averageForward) run(p *pass, k *kernel.Kernels, lo, hi int) {
	for c := lo; c < hi; c++ {
		k.ColSum(lanes(p.act[o.out], c, 1), 0, lanes(p.act[o.in], c, o.plane), kernel.Lanes, o.pixels, 1/float32(o.pixels))
	}
}

type averageBack average

func (o *averageBack) run(p *pass, _ *kernel.Kernels, lo, hi int) {
	for c := lo; c < hi; c++ {
		dy, dx := lanes(p.dy, c, 1), lanes(p.dx, c, o.plane)
		for i := range kernel.Lanes {
			dx[i] = dy[i] * (1 / float32(o.pixels))
		}
		for q := 1; q < o.pixels; q++ {
			copy(dx[q*kernel.Lanes:], dx[:kernel.Lanes])
		}
	}
}

// lanes returns channel c, counted over all blocks, of a blocked activation with plane rows per channel.
func lanes(x []float32, c, plane int) []float32 {
	return x[c*plane*kernel.Lanes : (c+1)*plane*kernel.Lanes]
}
