package gpu

import "sync/atomic"

// counted is a device that knows what memory of it was given out.
type counted struct {
	Device
	sizes map[Memory]int64
	held  atomic.Int64
	total int64
}

func count(d Device) *counted {
	return &counted{Device: d, sizes: map[Memory]int64{}, total: d.Info().Memory}
}

func (c *counted) Alloc(bytes int) (Memory, error) {
	m, err := c.Device.Alloc(bytes)
	if err == nil && m != 0 {
		c.sizes[m] = int64(bytes)
		c.held.Add(int64(bytes))
	}
	return m, err
}

func (c *counted) Free(m Memory) {
	c.held.Add(-c.sizes[m])
	delete(c.sizes, m)
	c.Device.Free(m)
}

func (c *counted) Close() {
	c.held.Store(0)
	c.Device.Close()
}

// Held is the memory of the device that this engine has, in bytes: blocks, the data set and what tasks work in; and how
// much the device has altogether. It may be called from any goroutine.
func (e *Engine) Held() (used, total int64) { return e.memory.held.Load(), e.memory.total }

// Sense is how the device is, where its driver tells: bytes of its memory that are taken by whomever, the share of the
// time in which it was busy, and its temperature in degrees Celsius. What nobody tells is below zero. It may be called
// from any goroutine.
func (e *Engine) Sense() (taken int64, load, celsius float64) {
	s := e.memory.sense()
	return s.Taken, s.Load, s.Celsius
}

func (c *counted) sense() Sense {
	if s, ok := c.Device.(Sensor); ok {
		return s.Sense()
	}
	return Unknown
}
