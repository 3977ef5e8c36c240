package gpu

import "sync/atomic"

// counted is a device that counts the memory allocated on it.
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

// DeviceMemory returns the device memory that this engine holds, in bytes (blocks, data set and scratch memory), and
// the total memory of the device. It is safe for concurrent use.
func (e *Engine) DeviceMemory() (used, total int64) { return e.memory.held.Load(), e.memory.total }

// Sense returns the device's state as its driver reports it: bytes of memory in use by all processes, the share of time
// in which it was busy, and its temperature in degrees Celsius. Unknown values are below zero. It is safe for
// concurrent use.
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
