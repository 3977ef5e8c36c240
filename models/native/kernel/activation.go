package kernel

import "math"

// Elementwise activations and their gradients: dst = dy times the derivative. All use exp of CrossEntropy and are
// accurate to a few units in the last place; NaN stays NaN. dst may be any of the operands.

// LeakyRelu computes dst = x, or slope*x where x is below zero.
func (k *Kernels) LeakyRelu(dst, x []float32, slope float32) {
	x = x[:len(dst)]
	if k.isa.leaky == nil {
		for i, v := range x {
			if math.Signbit(float64(v)) {
				v = slope * v
			}
			dst[i] = v
		}
		return
	}
	k.vec.c[0] = slope
	k.pointwise(k.isa.leaky, dst, x, x)
}

// LeakyReluBack computes dst = dy where x > 0, else slope*dy.
func (k *Kernels) LeakyReluBack(dst, dy, x []float32, slope float32) {
	dy, x = dy[:len(dst)], x[:len(dst)]
	if k.isa.leakyBack == nil {
		for i, v := range x {
			g := dy[i]
			if !(v > 0) {
				g = slope * g
			}
			dst[i] = g
		}
		return
	}
	k.vec.c[0] = slope
	k.pointwise(k.isa.leakyBack, dst, dy, x)
}

// Tanh computes the hyperbolic tangent.
func (k *Kernels) Tanh(dst, x []float32) { k.unary(k.isa.tanh, tanh, dst, x) }

// TanhBack computes dst = dy*(1 - y*y) for y = tanh(x).
func (k *Kernels) TanhBack(dst, dy, y []float32) {
	k.derivative(k.isa.tanhBack, func(y float32) float32 { return 1 - float32(y*y) }, dst, dy, y)
}

// Silu computes x*sigmoid(x). Below -expLimit, x is replaced by -expLimit, as in sigmoid.
func (k *Kernels) Silu(dst, x []float32) {
	k.unary(k.isa.silu, func(x float32) float32 { return float32(max(-expLimit, x) * sigmoid(x)) }, dst, x)
}

// SiluBack computes dst = dy*s*(1 + x*(1-s)) for s = sigmoid(x), with x limited as in sigmoid.
func (k *Kernels) SiluBack(dst, dy, x []float32) {
	k.derivative(k.isa.siluBack, func(x float32) float32 {
		s := sigmoid(x)
		return float32(s * (1 + float32(held(x)*(1-s))))
	}, dst, dy, x)
}

// Gelu computes x*Phi(x), Phi being the distribution function of the normal distribution (Hendrycks & Gimpel 2016): the
// exact form, with a small relative error in the tail too.
func (k *Kernels) Gelu(dst, x []float32) {
	k.unary(k.isa.gelu, func(x float32) float32 {
		p, _ := phi(x)
		return float32(x * p)
	}, dst, x)
}

// GeluBack computes dst = dy*(Phi(x) + x*phi(x)), phi being the density. Beyond expLimit x is limited, since phi no
// longer decreases there.
func (k *Kernels) GeluBack(dst, dy, x []float32) {
	k.derivative(k.isa.geluBack, func(x float32) float32 {
		p, q := phi(x)
		return p + float32(held(x)*float32(q*density))
	}, dst, dy, x)
}

// unary computes f of each element; f is the portable variant.
func (k *Kernels) unary(kernel func(*vecArgs), f func(float32) float32, dst, x []float32) {
	x = x[:len(dst)]
	if kernel == nil {
		for i, v := range x {
			dst[i] = f(v)
		}
		return
	}
	k.pointwise(kernel, dst, x, x)
}

// derivative computes dy times f of each element of x; f is the portable variant.
func (k *Kernels) derivative(kernel func(*vecArgs), f func(float32) float32, dst, dy, x []float32) {
	dy, x = dy[:len(dst)], x[:len(dst)]
	if kernel == nil {
		for i, v := range x {
			dst[i] = dy[i] * f(v)
		}
		return
	}
	k.pointwise(kernel, dst, dy, x)
}

// held limits x to the range of exp's arguments.
func held(x float32) float32 { return max(-expLimit, min(expLimit, x)) }

// sigmoid returns 1/(1 + e^-x).
func sigmoid(x float32) float32 { return 1 / (exp(held(-x)) + 1) }

const (
	// tanhSmall is the magnitude below which tanh uses a polynomial, since 1 - 2/(e^2x + 1) would lose digits.
	tanhSmall float32 = 0.625
	// phiScale is p in phi.
	phiScale float32 = 9.0 / 32
	// density is 1/sqrt(2 pi).
	density float32 = 0.3989422804014327
)

// tanhC are the coefficients of P in tanh(x) = x + x^3 P(x^2).
var tanhC = [...]float32{-0.3333328366279602, 0.13331490755081177, -0.05374349281191826, 0.02065056934952736,
	-0.005717025604099035}

// phiC are the coefficients of P in Phi(-a) = e^(-a^2/2) t P(t), t = 1/(1 + p*a), for a in [0, 13.2], with a relative
// error of 6.4e-8: the form of Hastings (1955), here of degree 9.
var phiC = [...]float32{0.11217926442623138, 0.11261438578367233, 0.10037834197282791, 0.09624698013067245,
	0.04247264191508293, 0.03796470910310745, 0.05165994167327881, -0.07481034100055695, 0.021294107660651207}

func tanh(x float32) float32 {
	a := float32(math.Abs(float64(x)))
	if a < tanhSmall {
		z := float32(x * x)
		p := tanhC[len(tanhC)-1]
		for i := len(tanhC) - 2; i >= 0; i-- {
			p = float32(p*z) + tanhC[i]
		}
		return x + float32(float32(p*z)*x)
	}
	r := 1 - 2/(exp(min(expLimit, a+a))+1)
	return float32(math.Copysign(float64(r), float64(x)))
}

// phi returns the distribution function of the normal distribution, and e^(-x^2/2).
func phi(x float32) (p, q float32) {
	q = exp(max(-expLimit, float32(float32(x*x)*-0.5)))
	t := 1 / (float32(float32(math.Abs(float64(x)))*phiScale) + 1)
	p = phiC[len(phiC)-1]
	for i := len(phiC) - 2; i >= 0; i-- {
		p = float32(p*t) + phiC[i]
	}
	p = float32(float32(p*t) * q)
	if !math.Signbit(float64(x)) {
		p = 1 - p
	}
	return p, q
}
