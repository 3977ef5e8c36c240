package native

import (
	"brood/models"
	"brood/models/native/kernel"
)

// maxPool is the maximum of windows.
type maxPool struct {
	w  *kernel.Pool
	in int
}

func (p *plan) maxPool(l *models.Layer) error {
	w, err := kernel.NewPool(kernel.PoolShape{Channels: l.In[0], H: l.In[1], W: l.In[2], Kernel: l.Kernel, Stride: l.Stride})
	if err != nil {
		return err
	}
	p.form(true)
	p.to(&maxPool{w, p.last()}, false, shaped(l.Out, true))
	return nil
}

func (o *maxPool) forward(p *pass) {
	in, out := o.w.Inputs(), o.w.Outputs()
	for b := range p.blocks() {
		p.k.MaxPool(o.w, p.act[o.in+1][b*out:(b+1)*out], p.act[o.in][b*in:(b+1)*in])
	}
}

func (o *maxPool) backward(p *pass, input bool) {
	if !input {
		return
	}
	in, out := o.w.Inputs(), o.w.Outputs()
	for b := range p.blocks() {
		p.k.MaxPoolBack(o.w, p.dx[b*in:(b+1)*in], p.dy[b*out:(b+1)*out], p.act[o.in+1][b*out:(b+1)*out], p.act[o.in][b*in:(b+1)*in])
	}
	p.swap()
}

// average is the mean of each channel.
type average struct{ in, channels, pixels, plane int }

func (p *plan) average(l *models.Layer) {
	p.form(true)
	p.to(&average{p.last(), l.In[0], l.In[1] * l.In[2], kernel.Plane(l.In[1], l.In[2])}, false, shaped(l.Out, true))
	p.form(false)
}

func (o *average) forward(p *pass) {
	for c := range p.blocks() * o.channels {
		p.k.ColSum(lanes(p.act[o.in+1], c, 1), 0, lanes(p.act[o.in], c, o.plane), kernel.Lanes, o.pixels, 1/float32(o.pixels))
	}
}

func (o *average) backward(p *pass, input bool) {
	if !input {
		return
	}
	for c := range p.blocks() * o.channels {
		dy, dx := lanes(p.dy, c, 1), lanes(p.dx, c, o.plane)
		for i := range kernel.Lanes {
			dx[i] = dy[i] * (1 / float32(o.pixels))
		}
		for q := 1; q < o.pixels; q++ {
			copy(dx[q*kernel.Lanes:], dx[:kernel.Lanes])
		}
	}
	p.swap()
}

// lanes is channel c, counted through all blocks, of a blocked activation of so many rows a channel.
func lanes(x []float32, c, plane int) []float32 {
	return x[c*plane*kernel.Lanes : (c+1)*plane*kernel.Lanes]
}
