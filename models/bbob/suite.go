package bbob

import (
	"math"
	"slices"

	"brood/models/arith"
)

// suite has the functions in their order. Each returns f(x) - f_opt for a problem, and sets its optimum if it is not
// the drawn one.
var suite = [Functions]func(*problem) func(x []float64) float64{
	sphere, ellipsoidSeparable, rastriginSeparable, buecheRastrigin, linearSlope,
	attractiveSector, stepEllipsoid, rosenbrock, rosenbrockRotated,
	ellipsoid, discus, bentCigar, sharpRidge, differentPowers,
	rastrigin, weierstrass, schaffers(10), schaffers(1000), griewankRosenbrock,
	schwefel, gallagher(101, 10, 31.622776601683793), gallagher(21, 9.8, 1000), katsuura, lunacek,
}

func sphere(p *problem) func(x []float64) float64 {
	ones := p.powers(1)
	return func(x []float64) float64 { return squares(ones, minus(x, p.optimum)) }
}

func ellipsoidSeparable(p *problem) func(x []float64) float64 {
	w := p.powers(1e6)
	return func(x []float64) float64 { return squares(w, oscillated(minus(x, p.optimum))) }
}

// waves is Rastrigin's function: 10 (n - sum cos 2 pi z_i) + |z|^2.
func waves(z []float64) float64 {
	sum := 0.0
	for _, v := range z {
		sum += float64(10*(1-arith.Cos(2*math.Pi*v))) + float64(v*v)
	}
	return sum
}

func rastriginSeparable(p *problem) func(x []float64) float64 {
	s := p.powers(math.Sqrt(10))
	return func(x []float64) float64 {
		return waves(scaled(asymmetric(oscillated(minus(x, p.optimum)), 0.2), s))
	}
}

func buecheRastrigin(p *problem) func(x []float64) float64 {
	for i := 0; i < p.n; i += 2 {
		p.optimum[i] = math.Abs(p.optimum[i])
	}
	s := p.powers(math.Sqrt(10))
	return func(x []float64) float64 {
		z := scaled(oscillated(minus(x, p.optimum)), s)
		for i := 0; i < p.n; i += 2 {
			if z[i] > 0 {
				z[i] *= 10
			}
		}
		return waves(z) + float64(100*outside(x))
	}
}

func linearSlope(p *problem) func(x []float64) float64 {
	s := p.powers(10)
	for i, v := range p.optimum {
		p.optimum[i] = math.Copysign(5, v)
		s[i] = math.Copysign(s[i], v)
	}
	return func(x []float64) float64 {
		sum := 0.0
		for i, v := range x {
			if v*p.optimum[i] >= 25 {
				v = p.optimum[i]
			}
			sum += float64(5*math.Abs(s[i])) - float64(s[i]*v)
		}
		return sum
	}
}

func attractiveSector(p *problem) func(x []float64) float64 {
	m := stretch(p.first(), p.powers(math.Sqrt(10)), p.second())
	return func(x []float64) float64 {
		z, sum := times(m, minus(x, p.optimum)), 0.0
		for i, v := range z {
			if v*p.optimum[i] > 0 {
				v *= 100
			}
			sum += float64(v * v)
		}
		return arith.Pow(oscillate(sum), 0.9)
	}
}

func stepEllipsoid(p *problem) func(x []float64) float64 {
	r, q, s, w := p.first(), p.second(), p.powers(math.Sqrt(10)), p.powers(100)
	return func(x []float64) float64 {
		z := scaled(times(q, minus(x, p.optimum)), s)
		first := math.Abs(z[0])
		for i, v := range z {
			if math.Abs(v) > 0.5 {
				z[i] = math.Floor(v + 0.5)
			} else {
				z[i] = math.Floor(float64(10*v)+0.5) / 10
			}
		}
		return float64(0.1*max(first*1e-4, squares(w, times(r, z)))) + outside(x)
	}
}

// valley is Rosenbrock's function, with f_i for each pair of neighbours.
func valley(z []float64, f func(v float64) float64) float64 {
	sum := 0.0
	for i := range len(z) - 1 {
		bend, rest := float64(z[i]*z[i])-z[i+1], z[i]-1
		sum += f(float64(100*bend*bend) + float64(rest*rest))
	}
	return sum
}

func same(v float64) float64 { return v }

// widening is the factor of the variables of Rosenbrock's functions.
func (p *problem) widening() float64 { return max(1, math.Sqrt(float64(p.n))/8) }

func rosenbrock(p *problem) func(x []float64) float64 {
	for i := range p.optimum {
		p.optimum[i] *= 0.75
	}
	c := p.widening()
	return func(x []float64) float64 {
		z := minus(x, p.optimum)
		for i := range z {
			z[i] = float64(c*z[i]) + 1
		}
		return valley(z, same)
	}
}

// turned returns the variables c R x + 1/2 of the rotated Rosenbrock functions, and sets the optimum, at which they are
// 1.
func (p *problem) turned() func(x []float64) []float64 {
	r, c := p.second(), p.widening()
	for j := range p.optimum {
		sum := 0.0
		for _, row := range r {
			sum += row[j]
		}
		p.optimum[j] = sum / (2 * c)
	}
	return func(x []float64) []float64 {
		z := times(r, x)
		for i := range z {
			z[i] = float64(c*z[i]) + 0.5
		}
		return z
	}
}

func rosenbrockRotated(p *problem) func(x []float64) float64 {
	turn := p.turned()
	return func(x []float64) float64 { return valley(turn(x), same) }
}

func griewankRosenbrock(p *problem) func(x []float64) float64 {
	turn := p.turned()
	return func(x []float64) float64 {
		return 10 + float64(10*valley(turn(x), func(v float64) float64 { return v/4000 - arith.Cos(v) })/float64(p.n-1))
	}
}

func ellipsoid(p *problem) func(x []float64) float64 {
	r, w := p.first(), p.powers(1e6)
	return func(x []float64) float64 { return squares(w, oscillated(times(r, minus(x, p.optimum)))) }
}

// weights returns n weights: the first, and rest for all others.
func (p *problem) weights(first, rest float64) []float64 {
	return append([]float64{first}, slices.Repeat([]float64{rest}, p.n-1)...)
}

func discus(p *problem) func(x []float64) float64 {
	r, w := p.first(), p.weights(1e6, 1)
	return func(x []float64) float64 { return squares(w, oscillated(times(r, minus(x, p.optimum)))) }
}

func bentCigar(p *problem) func(x []float64) float64 {
	r, w := p.first(), p.weights(1, 1e6)
	p.optimum = drawOptimum(p.seed+1000000, p.n)
	return func(x []float64) float64 {
		return squares(w, times(r, asymmetric(times(r, minus(x, p.optimum)), 0.5)))
	}
}

func sharpRidge(p *problem) func(x []float64) float64 {
	m, w := stretch(p.first(), p.powers(math.Sqrt(10)), p.second()), p.weights(0, 1)
	return func(x []float64) float64 {
		z := times(m, minus(x, p.optimum))
		return float64(z[0]*z[0]) + float64(100*math.Sqrt(squares(w, z)))
	}
}

func differentPowers(p *problem) func(x []float64) float64 {
	r := p.first()
	return func(x []float64) float64 {
		sum := 0.0
		for i, v := range times(r, minus(x, p.optimum)) {
			sum += arith.Pow(math.Abs(v), 2+4*float64(i)/float64(p.n-1))
		}
		return math.Sqrt(sum)
	}
}

func rastrigin(p *problem) func(x []float64) float64 {
	r, m := p.first(), stretch(p.first(), p.powers(math.Sqrt(10)), p.second())
	return func(x []float64) float64 {
		return waves(times(m, asymmetric(oscillated(times(r, minus(x, p.optimum))), 0.2)))
	}
}

func weierstrass(p *problem) func(x []float64) float64 {
	const terms = 12
	r, m := p.first(), stretch(p.first(), p.powers(0.1), p.second())
	series := func(v float64) float64 {
		sum, a, b := 0.0, 1.0, 1.0
		for range terms {
			sum += float64(a * arith.Cos(2*math.Pi*b*v))
			a, b = a/2, b*3
		}
		return sum
	}
	least := series(0.5)
	return func(x []float64) float64 {
		sum := 0.0
		for _, v := range times(m, oscillated(times(r, minus(x, p.optimum)))) {
			sum += series(v + 0.5)
		}
		mean := sum/float64(p.n) - least
		return float64(10*mean*mean*mean) + float64(10/float64(p.n)*outside(x))
	}
}

// schaffers returns Schaffers F7 with a condition.
func schaffers(condition float64) func(p *problem) func(x []float64) float64 {
	return func(p *problem) func(x []float64) float64 {
		r, q, s := p.first(), p.second(), p.powers(math.Sqrt(condition))
		return func(x []float64) float64 {
			z, sum := scaled(times(q, asymmetric(times(r, minus(x, p.optimum)), 0.5)), s), 0.0
			for i := range p.n - 1 {
				length := float64(z[i]*z[i]) + float64(z[i+1]*z[i+1])
				wave := sin(50 * arith.Pow(length, 0.1))
				sum += float64(arith.Pow(length, 0.25) * (1 + float64(wave*wave)))
			}
			sum /= float64(p.n - 1)
			return float64(sum*sum) + float64(10*outside(x))
		}
	}
}

func schwefel(p *problem) func(x []float64) float64 {
	const deep = 4.2096874637 // twice the optimum's distance from 0
	for i, u := range uniforms(p.seed, p.n) {
		p.optimum[i] = deep / 2
		if u < 0.5 {
			p.optimum[i] = -deep / 2
		}
	}
	s := p.powers(math.Sqrt(10))
	return func(x []float64) float64 {
		z := make([]float64, p.n)
		for i := range z {
			z[i] = 2 * math.Copysign(1, p.optimum[i]) * x[i]
		}
		for i := p.n - 1; i > 0; i-- {
			z[i] += float64(0.25 * (z[i-1] - deep))
		}
		sum, beyond := 0.0, 0.0
		for i, v := range z {
			v = 100 * (float64(s[i]*(v-deep)) + deep)
			if d := math.Abs(v) - 500; d > 0 {
				beyond += float64(d * d)
			}
			sum += float64(v * sin(math.Sqrt(math.Abs(v))))
		}
		return 0.01 * (beyond + 418.9828872724339 - sum/float64(p.n))
	}
}

// gallagher returns the function with that many peaks in a cube of the given width. condition is that of the highest
// peak.
func gallagher(peaks int, width, condition float64) func(p *problem) func(x []float64) float64 {
	return func(p *problem) func(x []float64) float64 {
		r, heights := p.second(), make([]float64, peaks)
		centres, scales := make([][]float64, peaks), make([][]float64, peaks)
		order, at := ascending(uniforms(p.seed, peaks-1)), uniforms(p.seed, peaks*p.n)
		for k := range peaks {
			c := condition
			if heights[k] = 10; k > 0 {
				c = arith.Pow(1000, float64(order[k-1])/float64(peaks-2))
				heights[k] = 1.1 + float64(float64(k-1)/float64(peaks-2)*8)
			}
			place := make([]float64, p.n)
			for j := range place {
				place[j] = float64(width*at[k*p.n+j]) - float64(width/2)
				if k == 0 {
					place[j] *= 0.8
				}
			}
			if k == 0 {
				p.optimum = place
			}
			centres[k] = times(r, place)
			for _, o := range ascending(uniforms(p.seed+1000*int64(k), p.n)) {
				scales[k] = append(scales[k], arith.Pow(c, float64(o)/float64(p.n-1)-0.5))
			}
		}
		return func(x []float64) float64 {
			z, low := times(r, x), 10.0
			for k, h := range heights {
				low = min(low, 10-float64(h*arith.Exp(-0.5/float64(p.n)*squares(scales[k], minus(z, centres[k])))))
			}
			low = oscillate(low)
			return float64(low*low) + outside(x)
		}
	}
}

// ascending returns the indices of v from the lowest value to the highest.
func ascending(v []float64) []int {
	out := make([]int, len(v))
	for i := range out {
		out[i] = i
	}
	slices.SortFunc(out, func(a, b int) int {
		if v[a] < v[b] {
			return -1
		}
		return 1
	})
	return out
}

func katsuura(p *problem) func(x []float64) float64 {
	m, n := stretch(p.first(), p.powers(10), p.second()), float64(p.n)
	return func(x []float64) float64 {
		product := 1.0
		for i, v := range times(m, minus(x, p.optimum)) {
			sum, two := 0.0, 1.0
			for range 32 {
				two *= 2
				sum += math.Abs(float64(two*v)-math.Floor(float64(two*v)+0.5)) / two
			}
			product *= 1 + float64(float64(i+1)*sum)
		}
		return float64(10/(n*n)*(arith.Pow(product, 10/arith.Pow(n, 1.2))-1)) + outside(x)
	}
}

func lunacek(p *problem) func(x []float64) float64 {
	const mu, d = 2.5, 1
	for i, g := range normals(p.seed, p.n) {
		p.optimum[i] = math.Copysign(mu/2, g)
	}
	m, n := stretch(p.first(), p.powers(10), p.second()), float64(p.n)
	s := 1 - 0.5/(math.Sqrt(n+20)-4.1)
	other := -math.Sqrt((mu*mu - d) / s)
	return func(x []float64) float64 {
		z, near, far, cosines := make([]float64, p.n), 0.0, 0.0, 0.0
		for i, v := range x {
			v = float64(v * math.Copysign(2, p.optimum[i]))
			z[i] = v - mu
			near += float64(z[i] * z[i])
			far += float64((v - other) * (v - other))
		}
		for _, v := range times(m, z) {
			cosines += arith.Cos(2 * math.Pi * v)
		}
		return min(near, d*n+float64(s*far)) + float64(10*(n-cosines)) + float64(1e4*outside(x))
	}
}
