package enginetest

import (
	"math"

	"brood/models"
	"brood/models/noise"
)

// reference is a float64 forward pass in simple loops: samples[s][channel][y][x], flat values as [feature][0][0].
type reference struct {
	m      *models.Model
	params []float64
	stats  []float64 // nil: the batch's own
	mask   *noise.Key

	targets [][]float64 // of a regression, per sample of the batch
	weights []float64   // per sample of the batch; nil: all equal

	smoothing float64 // of labels

	batch map[int][2][]float64 // out: mean and unbiased variance per batch-norm layer
}

type volume [][][]float64

func zeros(shape []int) volume {
	c, h, w := shape[0], 1, 1
	if len(shape) == 3 {
		h, w = shape[1], shape[2]
	}
	v := make(volume, c)
	for i := range v {
		v[i] = make([][]float64, h)
		for j := range v[i] {
			v[i][j] = make([]float64, w)
		}
	}
	return v
}

func (r *reference) tensor(i int) []float64 {
	t := r.m.Layout.Tensors[i]
	return r.params[t.Lo : t.Lo+t.Len]
}

// logits returns a row of classes per sample, or one for each of its positions.
func (r *reference) logits(pixels []float32) [][]float64 {
	var xs []volume
	for at := 0; at < len(pixels); {
		v := zeros(r.m.Input)
		for c := range v {
			for y := range v[c] {
				for x := range v[c][y] {
					v[c][y][x] = float64(pixels[at])
					at++
				}
			}
		}
		xs = append(xs, v)
	}
	results := [][]volume{xs}
	for i := range r.m.Layers {
		results = append(results, r.layer(i, results))
	}
	out := make([][]float64, len(xs))
	for s, x := range results[len(results)-1] {
		for k := range x {
			out[s] = append(out[s], x[k][0][0])
		}
	}
	return out
}

// loss returns the mean of the model's loss.
func (r *reference) loss(pixels []float32, labels []int32) float64 {
	var sum float64
	for s, z := range r.logits(pixels) {
		if r.m.Loss == models.Distance {
			for i, v := range z {
				d := v - float64(pixels[s*len(z)+i])
				sum += d * d
			}
			continue
		}
		if r.m.MultiLabel() {
			for k, v := range z {
				sum += (math.Log(1+math.Exp(v)) - r.targets[s][k]*v) / float64(len(z))
			}
			continue
		}
		if r.m.Regression() {
			for k, v := range z {
				d := math.Abs(v - r.targets[s][k])
				switch {
				case r.m.Loss == models.MSE:
					sum += d * d / float64(len(z))
				case d < models.HuberDelta:
					sum += d * d / 2 / float64(len(z))
				default:
					sum += (models.HuberDelta*d - models.HuberDelta*models.HuberDelta/2.0) / float64(len(z))
				}
			}
			continue
		}
		weight := 1.0
		if r.weights != nil {
			weight = r.weights[s]
		}
		n := r.m.Positions
		for t := range n {
			z, label := z[t*r.m.Classes:(t+1)*r.m.Classes], int(labels[s])
			if t < n-1 { // the next byte of the window
				label = int(pixels[s*n+t+1])
			}
			var e float64
			for _, v := range z {
				e += math.Exp(v)
			}
			for _, v := range z {
				sum += weight * r.smoothing / float64(len(z)) * (math.Log(e) - v) / float64(n)
			}
			sum += weight * (1 - r.smoothing) * (math.Log(e) - z[label]) / float64(n)
		}
	}
	return sum / float64(len(labels))
}

// squares returns the summed squared error of the targets, a mean over the outputs, or for a multi-label model the
// share of wrong classes; 0 for other models.
func (r *reference) squares(pixels []float32) (sum float64) {
	for s, z := range r.logits(pixels) {
		if r.m.MultiLabel() {
			sum += float64(r.misses(s, z)) / float64(len(z))
			continue
		}
		for k := 0; r.m.Regression() && k < len(z); k++ {
			d := z[k] - r.targets[s][k]
			sum += d * d / float64(len(z))
		}
	}
	return sum
}

// misses returns the number of classes that the results z of sample s have wrong.
func (r *reference) misses(s int, z []float64) (n int) {
	for k, v := range z {
		if (1/(1+math.Exp(-v)) > 0.5) != (r.targets[s][k] > 0.5) {
			n++
		}
	}
	return n
}

func (r *reference) layer(i int, results [][]volume) []volume {
	l := &r.m.Layers[i]
	xs := results[l.From]
	if l.Kind == models.BatchNorm {
		return r.norm(i, xs)
	}
	out := make([]volume, len(xs))
	for s, x := range xs {
		y := zeros(l.Out)
		switch l.Kind {
		case models.Dense:
			w, in, wide := r.tensor(l.Weight), len(x)/l.Rows, len(y)/l.Rows
			for o := range y {
				row, unit := o/wide, o%wide
				for j := range in {
					y[o][0][0] += w[unit*in+j] * x[row*in+j][0][0]
				}
				if l.Bias >= 0 {
					y[o][0][0] += r.tensor(l.Bias)[unit]
				}
			}
		case models.Conv:
			r.conv(l, x, y)
		case models.LayerNorm:
			for row := range l.Rows {
				wide := len(x) / l.Rows
				r.layerNorm(l, x[row*wide:(row+1)*wide], y[row*wide:(row+1)*wide])
			}
		case models.MaxPool:
			for c := range y {
				for a := range y[c] {
					for b := range y[c][a] {
						y[c][a][b] = math.Inf(-1)
						for p := range l.Kernel {
							for q := range l.Kernel {
								y[c][a][b] = max(y[c][a][b], x[c][a*l.Stride+p][b*l.Stride+q])
							}
						}
					}
				}
			}
		case models.AvgPool:
			for c := range y {
				for a := range y[c] {
					for b := range y[c][a] {
						for p := range l.Kernel {
							for q := range l.Kernel {
								y[c][a][b] += x[c][a*l.Stride+p][b*l.Stride+q] / float64(l.Kernel*l.Kernel)
							}
						}
					}
				}
			}
		case models.Add:
			with := results[l.With][s]
			for c := range y {
				for a := range y[c] {
					for b := range y[c][a] {
						y[c][a][b] = x[c][a][b]
						if c < len(with) {
							y[c][a][b] += with[c][a*l.Stride][b*l.Stride]
						}
					}
				}
			}
		case models.MinGRU:
			r.minGRU(l, x, y)
		case models.Attention:
			r.attention(l, x, y)
		case models.Embedding:
			w, out := r.tensor(l.Weight), len(y)/len(x)
			for place := range x {
				for j := range out {
					y[place*out+j][0][0] = w[int(x[place][0][0])*out+j]
				}
			}
		case models.Last:
			copy(y, x[len(x)-len(y):])
		case models.Constant:
			for c := range y {
				y[c][0][0] = r.tensor(l.Bias)[c]
			}
		case models.GlobalAvg:
			for c := range x {
				for a := range x[c] {
					for b := range x[c][a] {
						y[c][0][0] += x[c][a][b] / float64(len(x[c])*len(x[c][a]))
					}
				}
			}
		default:
			n := 0
			for c := range x {
				for a := range x[c] {
					for b := range x[c][a] {
						v := x[c][a][b]
						switch {
						case curves[l.Kind] != nil:
							v = curves[l.Kind](v, l.Slope)
						case l.Kind == models.Scale:
							v *= float64(float32(l.Factor))
						case l.Kind == models.Dropout && r.mask != nil:
							key := *r.mask
							key.Stream = uint32(i)
							if float64(key.Uniform(s*models.Size(l.In)+n)) < l.Rate {
								v = 0
							} else {
								v /= 1 - l.Rate
							}
						}
						if l.Kind == models.Flatten {
							y[n][0][0] = v
						} else {
							y[c][a][b] = v
						}
						n++
					}
				}
			}
		}
		out[s] = y
	}
	return out
}

// curves are the activations as defined in their papers.
var curves = map[models.Kind]func(x, slope float64) float64{
	models.ReLU:      func(x, _ float64) float64 { return max(x, 0) },
	models.LeakyReLU: func(x, slope float64) float64 { return max(x, 0) + slope*min(x, 0) },
	models.Tanh:      func(x, _ float64) float64 { return math.Tanh(x) },
	models.SiLU:      func(x, _ float64) float64 { return x / (1 + math.Exp(-x)) },
	models.GELU:      func(x, _ float64) float64 { return x * (1 + math.Erf(x/math.Sqrt2)) / 2 },
}

func (r *reference) layerNorm(l *models.Layer, x, y volume) {
	var all []float64
	for _, plane := range x {
		for _, row := range plane {
			all = append(all, row...)
		}
	}
	var mean, variance float64
	for _, v := range all {
		mean += v / float64(len(all))
	}
	for _, v := range all {
		variance += (v - mean) * (v - mean) / float64(len(all))
	}
	n := 0
	for c := range y {
		for a := range y[c] {
			for b := range y[c][a] {
				y[c][a][b] = (all[n]-mean)/math.Sqrt(variance+models.NormEpsilon)*r.tensor(l.Weight)[n] + r.tensor(l.Bias)[n]
				n++
			}
		}
	}
}

func (r *reference) minGRU(l *models.Layer, x, y volume) {
	steps := r.m.Features
	in, units := len(x)/steps, r.m.Layout.Tensors[l.Bias].Len
	product := func(weight, bias, t, unit int) float64 {
		sum := r.tensor(bias)[unit]
		for j := range in {
			sum += r.tensor(weight)[unit*in+j] * x[t*in+j][0][0]
		}
		return sum
	}
	for unit := range units {
		h := 0.0
		for t := range steps {
			z := 1 / (1 + math.Exp(-product(l.Weight, l.Bias, t, unit)))
			h = (1-z)*h + z*product(l.State[0], l.State[1], t, unit)
			if l.Steps > 0 {
				y[t*units+unit][0][0] = h
			}
		}
		if l.Steps == 0 {
			y[unit][0][0] = h
		}
	}
}

// attention computes, for each position of the result, one score for each position up to it.
func (r *reference) attention(l *models.Layer, x, y volume) {
	steps := r.m.Features
	wide := len(x) / steps
	head := wide / l.Heads
	parts := make([]float64, 3*steps*wide) // q, k and v
	for at := range parts {
		t, which := at/wide%steps, at/wide/steps*wide+at%wide
		parts[at] = r.tensor(l.Bias)[which]
		for j := range wide {
			parts[at] += r.tensor(l.Weight)[which*wide+j] * x[t*wide+j][0][0]
		}
	}
	part := func(which, t, i int) float64 { return parts[(which*steps+t)*wide+i] }
	queries := len(y) / wide
	for t := steps - queries; t < steps; t++ {
		gives := make([]float64, wide)
		for h := range l.Heads {
			var sum float64
			weights := make([]float64, t+1)
			for u := range weights {
				for i := h * head; i < (h+1)*head; i++ {
					weights[u] += part(0, t, i) * part(1, u, i) / math.Sqrt(float64(head))
				}
				weights[u] = math.Exp(weights[u])
				sum += weights[u]
			}
			for u, w := range weights {
				for i := h * head; i < (h+1)*head; i++ {
					gives[i] += w / sum * part(2, u, i)
				}
			}
		}
		for o := range wide {
			at := (t-steps+queries)*wide + o
			y[at][0][0] = r.tensor(l.Project[1])[o]
			for i, v := range gives {
				y[at][0][0] += r.tensor(l.Project[0])[o*wide+i] * v
			}
		}
	}
}

func (r *reference) conv(l *models.Layer, x, y volume) {
	k := l.Kernel
	var w []float64
	if l.Filters == nil {
		w = r.tensor(l.Weight)
	}
	for _, x := range l.Filters {
		w = append(w, float64(x))
	}
	share := len(x) / l.Groups // input channels of a result
	for o := range y {
		first := o / (len(y) / l.Groups) * share
		for a := range y[o] {
			for b := range y[o][a] {
				for c := first; c < first+share; c++ {
					for p := range k {
						for q := range k {
							u, v := a*l.Stride+p-l.Pad, b*l.Stride+q-l.Pad
							if u >= 0 && v >= 0 && u < len(x[c]) && v < len(x[c][u]) {
								y[o][a][b] += w[((o*share+c-first)*k+p)*k+q] * x[c][u][v]
							}
						}
					}
				}
				if l.Bias >= 0 {
					y[o][a][b] += r.tensor(l.Bias)[o]
				}
			}
		}
	}
}

func (r *reference) norm(i int, xs []volume) []volume {
	l := &r.m.Layers[i]
	out := make([]volume, len(xs))
	for s := range out {
		out[s] = zeros(l.Out)
	}
	means, variances := make([]float64, l.In[0]), make([]float64, l.In[0])
	for c := range l.In[0] {
		var all []float64
		for _, x := range xs {
			for _, row := range x[c] {
				all = append(all, row...)
			}
		}
		var mean, sq float64
		for _, v := range all {
			mean += v / float64(len(all))
		}
		for _, v := range all {
			sq += (v - mean) * (v - mean)
		}
		means[c], variances[c] = mean, sq/float64(len(all)-1)
		variance := sq / float64(len(all))
		if r.stats != nil {
			mean = r.stats[r.m.Layout.StatTensors[l.Mean].Lo+c]
			variance = r.stats[r.m.Layout.StatTensors[l.Var].Lo+c]
		}
		scale, shift := r.tensor(l.Weight)[c], r.tensor(l.Bias)[c]
		for s, x := range xs {
			for a := range x[c] {
				for b, v := range x[c][a] {
					out[s][c][a][b] = (v-mean)/math.Sqrt(variance+models.NormEpsilon)*scale + shift
				}
			}
		}
	}
	if r.batch != nil {
		r.batch[i] = [2][]float64{means, variances}
	}
	return out
}
