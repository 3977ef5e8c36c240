package gpu

import (
	"encoding/binary"
	"math"

	"brood/models/data"
	"brood/models/noise"
)

// samples is the data set on the device: labels, weights, targets, and either pixels with a table of their values or
// values. Missing parts are 0. Augmentation runs on the device.
type samples struct {
	labels, weights, targets, pixels, values, tables Memory
}

// sendAtOnce is the size of a piece of an upload in bytes.
const sendAtOnce = 1 << 24

// put allocates memory for per bytes for each sample and uploads the bytes that f appends.
func (e *Engine) put(what string, per int, f func(p []byte, id int32) []byte) (Memory, error) {
	n := e.set.Len()
	m, err := e.dev.Alloc(n * per)
	if err != nil {
		return 0, e.fail("take memory for "+what, err)
	}
	var p []byte
	at := 0
	for id := range int32(n) {
		if p = f(p, id); len(p) >= sendAtOnce || int(id) == n-1 {
			if err := e.fail("send "+what, e.dev.Write(m, at, p)); err != nil {
				return 0, err
			}
			at += len(p)
			p = p[:0]
		}
	}
	return m, nil
}

// upload sends the data set.
func (e *Engine) upload() (err error) {
	s := &e.samples
	if s.labels, err = e.put("labels", 2,
		func(p []byte, id int32) []byte { return binary.LittleEndian.AppendUint16(p, uint16(e.set.Label(id))) }); err != nil {
		return err
	}
	if e.set.Weighs() {
		s.weights, err = e.put("weights", 4,
			func(p []byte, id int32) []byte { return appendFloats(p, []float32{e.set.Weight(id)}) })
		if err != nil {
			return err
		}
	}
	if outputs := e.set.Outputs; outputs > 0 {
		s.targets, err = e.put("targets", 4*outputs,
			func(p []byte, id int32) []byte { return appendFloats(p, e.set.Targets(id)) })
		if err != nil {
			return err
		}
	}
	if e.set.Text {
		return e.uploadText()
	}
	tables := e.set.Normal()
	if len(tables) == 0 {
		row, label := make([]float32, e.set.Features()), make([]int32, 1)
		s.values, err = e.put("samples", 4*len(row), func(p []byte, id int32) []byte {
			_ = e.set.Gather([]int32{id}, row, label) // ids are below Len
			return appendFloats(p, row)
		})
		return err
	}
	if s.pixels, err = e.put("samples", e.set.Features(),
		func(p []byte, id int32) []byte { return append(p, e.set.Image(id)...) }); err != nil {
		return err
	}
	var p []byte
	for i := range tables {
		p = appendFloats(p, tables[i][:])
	}
	if s.tables, err = e.dev.Alloc(len(p)); err != nil {
		return e.fail("take memory for tables", err)
	}
	return e.fail("send tables", e.dev.Write(s.tables, 0, p))
}

// uploadText sends a text once: the first byte of each window, and the whole last window.
func (e *Engine) uploadText() (err error) {
	n := e.set.Len()
	m, err := e.dev.Alloc(n - 1 + e.set.Features())
	if err != nil {
		return e.fail("take memory for the text", err)
	}
	e.samples.pixels = m
	var p []byte
	for id := range int32(n) {
		p = append(p, e.set.Image(id)[0])
	}
	p = append(p, e.set.Image(int32(n - 1))[1:]...)
	for at := 0; at < len(p); at += sendAtOnce {
		if err := e.fail("send the text", e.dev.Write(m, at, p[at:min(len(p), at+sendAtOnce)])); err != nil {
			return err
		}
	}
	return nil
}

func appendFloats(p []byte, v []float32) []byte {
	for _, x := range v {
		p = binary.LittleEndian.AppendUint32(p, math.Float32bits(x))
	}
	return p
}

// view is the samples that one or several entries see: at most the number that fits in a pass.
type view struct {
	ids []int32
	at  noise.Key // position at which the first sample was drawn
}

// loaded locates the samples of views: lists of ids, for labels, and of rows, for pixels.
type loaded struct {
	ids, rows uint32
	pixels    Memory
}

// gather appends the loading of the views' samples into x.
func (e *Engine) gather(b *batch, views []view, most int, x Memory) (out loaded, err error) {
	features, s := e.set.Features(), &e.samples
	ids := b.list()
	for _, v := range views {
		for i := range most {
			id := uint32(0)
			if i < len(v.ids) {
				id = uint32(v.ids[i])
			}
			b.words = append(b.words, id)
		}
	}
	sizes := b.list()
	for _, v := range views {
		b.words = append(b.words, uint32(len(v.ids)))
	}
	groups := [3]int{(features + group - 1) / group, most, len(views)}
	if e.set.Text {
		b.grid("gather_text", groups, group, wordsHere{}, ids, sizes, uint32(most), s.pixels, uint32(features), x)
		return loaded{ids: ids}, nil
	}
	if s.values != 0 {
		b.grid("gather_values", groups, group, wordsHere{}, ids, sizes, uint32(most), s.values, uint32(features), x)
		return loaded{ids: ids}, nil
	}
	out = loaded{ids, ids, s.pixels}
	if e.set.Augment() != (data.Augment{}) {
		if out.pixels, out.rows, err = e.draw(b, views, sizes, ids, most); err != nil {
			return out, err
		}
	}
	b.grid("gather_bytes", groups, group, wordsHere{}, out.rows, sizes, uint32(most), out.pixels, s.tables,
		uint32(features), uint32(features/len(e.set.Normal())), x)
	return out, nil
}

// draw appends the augmented bytes of views, equal to data.Set.Drawn, in staged memory, and lists their rows.
func (e *Engine) draw(b *batch, views []view, sizes, ids uint32, most int) (staged Memory, rows uint32, err error) {
	features := e.set.Features()
	if staged, err = e.scratchMemory("drawn", features*most*len(views)); err != nil {
		return 0, 0, err
	}
	keys := b.list()
	for _, v := range views {
		at := v.at
		drawn := uint32(0)
		if at.Purpose != 0 {
			drawn = 1
		}
		pass := e.set.PassOf(at)
		at.Purpose, at.Stream = noise.Order, 1
		next := at // cipher key of positions from the next multiple of 2^32 on
		next.Round += 1 << 32
		own := at // cipher key of the samples' own coins
		own.Round = 0
		k, l, c := at.Schedule(), next.Schedule(), own.Schedule()
		b.words = append(b.words, drawn, k[0], k[1], l[0], l[1], at.Stream, at.Member, uint32(at.Round), uint32(at.Round>>32),
			uint32(pass), c[0], c[1])
	}
	a := e.set.Augment()
	flag := func(on bool) uint32 {
		if on {
			return 1
		}
		return 0
	}
	b.grid("draw_samples", [3]int{(features + group - 1) / group, most, len(views)}, group, wordsHere{}, ids, sizes, keys,
		uint32(most), e.samples.pixels,
		uint32(features), uint32(e.set.Shape[1]), uint32(e.set.Shape[2]), uint32(a.Pad), flag(a.Reflect), flag(a.Flip),
		flag(a.Alternate), staged)
	return staged, b.numbers(0, most*len(views)), nil
}
