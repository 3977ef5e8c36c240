package cli

import (
	"fmt"
	goruntime "runtime"

	"github.com/spf13/cobra"

	"brood/models"
	"brood/models/data"
	"brood/models/engine"
	"brood/models/engine/ram"
	"brood/models/native"
	"brood/models/noise"
)

// samples are random bytes of a model's shape.
func samples(m *models.Model, n int) (*data.Set, error) {
	key := noise.Key{Seed: 1, Purpose: noise.Data}
	r := data.Raster{Pixels: make([]byte, n*m.Features), Labels: make([]uint16, n)}
	for i := range r.Pixels {
		r.Pixels[i] = byte(i * 2654435761 >> 7)
	}
	for i := range r.Labels {
		r.Labels[i] = uint16(key.Below(i, max(1, m.Classes)))
	}
	return data.New(data.Info{Name: "random", Shape: m.Input, Classes: max(1, m.Classes)}, r, data.Raster{}, 0)
}

func benchTrain(c *cobra.Command, report func(measurement)) error {
	m, err := newMachine(c)
	if err != nil {
		return err
	}
	threads := goruntime.NumCPU()
	for _, t := range []struct {
		model string
		batch int
		goal  float64
	}{{"mlp", 128, 0.8}, {"lenet-caffe", 128, 0.7}, {"lenet", 128, 0}, {"lenets", 128, 0}, {"allcnn", 64, 0.75}, {"resnet20", 64, 0.6}, {"wrn-28-10", 32, 0.6}, {"cif-300k", 64, 0}} {
		one, err := m.train(c, report, t.model, t.batch, 1, 1, t.goal, 0)
		if err != nil {
			return err
		}
		if threads == 1 || t.batch < 128 {
			continue
		}
		eight, err := m.train(c, report, t.model, t.batch, 8, 1, 0, 0)
		if err != nil {
			return err
		}
		if _, err := m.train(c, report, t.model, t.batch, 8, threads, 0.95, eight); err != nil {
			return err
		}
		if _, err := m.train(c, report, t.model, t.batch, 1, threads, 0, one); err != nil {
			return err
		}
	}
	return nil
}

// train measures the gradients of members on threads, in samples a second. The ratio is to the products of the model at
// the peak or, where the rate of one thread at the same members is given, to as many times that as the threads' peak is
// of one.
func (m *machine) train(c *cobra.Command, report func(measurement), model string, batch, members, threads int, goal, one float64) (float64, error) {
	net, err := models.Load(model)
	if err != nil {
		return 0, err
	}
	set, err := samples(net, 2*batch)
	if err != nil {
		return 0, err
	}
	e, err := native.NewEngine(net, set, threads, m.twin)
	if err != nil {
		return 0, err
	}
	x, stats := engine.NewHost(members, net.Layout.Params, engine.F32), engine.NewHost(members, net.Layout.Stats, engine.F32)
	g := engine.Gradients{X: ram.Of(x), Rows: engine.Rows(members), Stats: ram.Of(stats),
		Masks: make([]noise.Key, members), G: ram.New(members, net.Layout.Params), Loss: make([]float32, members)}
	for i := range members {
		if err := net.Init(1, engine.Member(i), x.Row(engine.Row(i))); err != nil {
			return 0, err
		}
		net.Layout.FreshStats(stats.Row(engine.Row(i)))
		g.Masks[i].Member = uint32(i)
		g.Batches = append(g.Batches, set.Train()[i:i+batch])
	}
	_, flops := net.Flops()
	limit, per, name := m.Peak, flops*1e-9, fmt.Sprintf("%s, batch %d", model, batch)
	if members > 1 || threads > 1 {
		name += fmt.Sprintf(", %s on %s", plural(members, "member"), plural(threads, "thread"))
	}
	if one > 0 {
		limit, per = func() float64 { return one * m.peaks(threads) / m.Peak() }, 1
	}
	rate, err := m.beside(c, report, name, "samples/s", float64(batch*members), per, goal, limit, func() error { return e.Do(c.Context(), g) })
	return rate * float64(batch*members), err
}

func benchES(c *cobra.Command, report func(measurement)) error {
	m, err := newMachine(c)
	if err != nil {
		return err
	}
	integer, low := engine.Noise{Integer: true}, engine.Noise{Rank: 1}
	for _, t := range []struct {
		model string
		batch int
		kind  string
		noise engine.Noise
		goal  float64
	}{{"mlp", 256, "antithetic", engine.Noise{}, 1.2}, {"mlp", 256, "integer", integer, 2.5}, {"mlp", 256, "rank 1", low, 0},
		{"mlp-small", 256, "antithetic", engine.Noise{}, 0}, {"mlp-small", 256, "integer", integer, 0}, {"mlp-small", 256, "rank 1", low, 0},
		{"lenet-caffe", 128, "antithetic", engine.Noise{}, 0.75}, {"lenet-caffe", 128, "integer", integer, 0}, {"lenet-caffe", 128, "rank 1", low, 0},
		{"darwinn-10k", 128, "antithetic", engine.Noise{}, 0}} {
		net, err := models.Load(t.model)
		if err != nil {
			return err
		}
		set, err := samples(net, t.batch)
		if err != nil {
			return err
		}
		for _, threads := range []int{1, goruntime.NumCPU()} {
			e, err := native.NewEngine(net, set, threads, m.twin)
			if err != nil {
				return err
			}
			const n = 128 // what they share is done once
			theta := engine.NewHost(1, net.Layout.Params, engine.F32)
			task := engine.Candidates{Noise: t.noise, Theta: ram.Of(theta), Sigma: 0.01, Antithetic: true, Batches: [][]int32{set.Train()}, Fitness: make([]float32, n)}
			if err := net.Init(1, 0, theta.F); err != nil {
				return err
			}
			for i := range n {
				task.IDs = append(task.IDs, engine.Member(i))
			}
			flops, _ := net.Flops()
			name := fmt.Sprintf("%s, batch %d, %s", t.model, t.batch, t.kind)
			if threads > 1 {
				name += fmt.Sprintf(", %d threads", threads)
			}
			_, err = m.beside(c, report, name, "evaluations/s", n, flops*float64(t.batch)*1e-9, t.goal, func() float64 { return m.peaks(threads) }, func() error { return e.Do(c.Context(), task) })
			if err != nil {
				return err
			}
			if goruntime.NumCPU() == 1 {
				break
			}
		}
	}
	return nil
}
