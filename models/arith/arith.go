// Package arith names the arithmetic of the native engine, and implements float64 functions whose bits differ between
// architectures in the standard library: some are assembly, and elsewhere the compiler fuses products. These functions
// have the bits of the standard library on amd64 with FMA, everywhere. It is a leaf.
//
// Code whose results enter recorded numbers uses these functions, and writes float64(a*b) + c, which the compiler may
// not fuse: docs/arithmetic.md.
package arith

import "math"

// Name is the arithmetic's name, in logs and between machines. A change of any result needs another name.
const Name = "f32/1"

// BF16 equals Name except for the products of dense layers in candidate evaluations: operands are rounded to bfloat16,
// and each product is a chain of multiply-adds in pairs, see kernel.GemmBF16.
const BF16 = "bf16-fma/1"

// AMX is BF16 with the summation order kernel.Blocks.
const AMX = "bf16-amx/1"

// Exp returns e^x, by the method of Shibata, "Efficient evaluation methods of elementary functions suitable for SIMD
// computation" (ISC'10): a Taylor series for a sixteenth of the remainder, then four doublings.
func Exp(x float64) float64 {
	switch {
	case math.IsNaN(x) || math.IsInf(x, 1):
		return x
	case x > 710:
		return math.Inf(1)
	case x < -746:
		return 0
	}
	// of ln 2
	const high, low = 0.69314718055966295651160180568695068359375, 0.28235290563031577122588448175013436025525412068e-12
	n := math.RoundToEven(x * math.Log2E)
	if n > 1023 {
		return math.Inf(1)
	}
	r := math.FMA(-n, low, math.FMA(-n, high, x)) * 0.0625
	p := 2.4801587301587301587e-5
	for _, c := range [...]float64{1.9841269841269841270e-4, 1.3888888888888888889e-3, 8.3333333333333333333e-3,
		4.1666666666666666667e-2, 1.6666666666666666667e-1, 0.5, 1} {
		p = math.FMA(p, r, c)
	}
	r = float64(r * p)
	for range 3 {
		r = float64(r * float64(r+2))
	}
	return math.Ldexp(math.FMA(r+2, r, 1), int(n))
}

// Log returns the natural logarithm of x, by the method of FreeBSD's e_log.c.
func Log(x float64) float64 {
	switch {
	case math.IsNaN(x) || math.IsInf(x, 1):
		return x
	case x < 0:
		return math.NaN()
	case x == 0:
		return math.Inf(-1)
	}
	m, e := math.Frexp(x)
	if m <= math.Sqrt2/2 {
		m, e = 2*m, e-1
	}
	f, k := m-1, float64(e)
	s := f / (2 + f)
	s2 := float64(s * s)
	s4 := float64(s2 * s2)
	series := func(c ...float64) (p float64) {
		for _, c := range c {
			p = c + float64(p*s4)
		}
		return p
	}
	t1 := float64(s2 * series(1.479819860511658591e-01, 1.818357216161805012e-01, 2.857142874366239149e-01,
		6.666666666666735130e-01))
	t2 := float64(s4 * series(1.531383769920937332e-01, 2.222219843214978396e-01, 3.999999999940941908e-01))
	half := float64(0.5 * f * f)
	const high, low = 6.93147180369123816490e-01, 1.90821492927058770002e-10 // of ln 2
	return float64(k*high) - ((half - (float64(s*(half+(t1+t2))) + float64(k*low))) - f)
}

// Pow returns x^y: the fraction of y by Exp and Log, the integer part by squarings.
func Pow(x, y float64) float64 {
	whole, part := math.Modf(math.Abs(y))
	if !(x > 0 && x < math.Inf(1) && part > 0) || part == 0.5 && whole == 0 {
		return math.Pow(x, y) // multiplications only, or a square root
	}
	if part > 0.5 {
		part, whole = part-1, whole+1
	}
	a, ae := Exp(part*Log(x)), 0
	b, be := math.Frexp(x)
	for i := int64(whole); i != 0; i >>= 1 {
		if be < -1<<12 || be > 1<<12 { // far out of range
			ae += be
			break
		}
		if i&1 == 1 {
			a *= b
			ae += be
		}
		if b, be = float64(b*b), be<<1; b < .5 {
			b, be = 2*b, be-1
		}
	}
	if y < 0 {
		a, ae = 1/a, -ae
	}
	return math.Ldexp(a, ae)
}

// Cos returns the cosine of x, |x| below 2^29, by the method of Cephes' sin.c.
func Cos(x float64) float64 {
	if !(math.Abs(x) < 1<<29) {
		return math.Cos(x)
	}
	x = math.Abs(x)
	j := uint64(x * (4 / math.Pi))
	j += j & 1 // zeros go to the origin
	y := float64(j)
	const a, b, c = 7.85398125648498535156e-1, 3.77489470793079817668e-8, 2.69515142907905952645e-15 // of pi/4
	z := ((x - float64(y*a)) - float64(y*b)) - float64(y*c)
	zz := float64(z * z)
	series := func(c ...float64) (p float64) {
		for _, c := range c {
			p = float64(p*zz) + c
		}
		return p
	}
	j &= 7
	if j == 2 || j == 6 {
		y = z + float64(float64(z*zz)*series(1.58962301576546568060e-10, -2.50507477628578072866e-8,
			2.75573136213857245213e-6, -1.98412698295895385996e-4, 8.33333333332211858878e-3, -1.66666666666666307295e-1))
	} else {
		y = 1 - float64(0.5*zz) + float64(float64(zz*zz)*series(-1.13585365213876817300e-11, 2.08757008419747316778e-9,
			-2.75573141792967388112e-7, 2.48015872888517045348e-5, -1.38888888888730564116e-3, 4.16666666666665929218e-2))
	}
	if j == 2 || j == 4 {
		return -y
	}
	return y
}

// SinCos returns the sine and the cosine of x, |x| below 2^29, by the method of Cephes' sin.c.
func SinCos(x float64) (sin, cos float64) {
	if !(math.Abs(x) < 1<<29) {
		return math.Sincos(x)
	}
	minus, minusCos := x < 0, false
	x = math.Abs(x)
	j := uint64(x * (4 / math.Pi))
	j += j & 1 // zeros go to the origin
	y := float64(j)
	const a, b, c = 7.85398125648498535156e-1, 3.77489470793079817668e-8, 2.69515142907905952645e-15 // of pi/4
	z := ((x - float64(y*a)) - float64(y*b)) - float64(y*c)
	zz := float64(z * z)
	p := float64(1.58962301576546568060e-10*zz) - 2.50507477628578072866e-8
	p = float64(p*zz) + 2.75573136213857245213e-6
	p = float64(p*zz) - 1.98412698295885395996e-4
	p = float64(p*zz) + 8.33333333332211858878e-3
	p = float64(p*zz) - 1.66666666666666307295e-1
	sin = z + float64(float64(z*zz)*p)
	q := float64(-1.13585365213876817300e-11*zz) + 2.08757008419747316778e-9
	q = float64(q*zz) - 2.75573141792967388112e-7
	q = float64(q*zz) + 2.48015872888517045348e-5
	q = float64(q*zz) - 1.38888888888730564116e-3
	q = float64(q*zz) + 4.16666666666665929218e-2
	cos = 1 - float64(0.5*zz) + float64(float64(zz*zz)*q)
	switch j & 7 {
	case 2:
		sin, cos, minusCos = cos, sin, true
	case 4:
		minus, minusCos = !minus, true
	case 6:
		sin, cos, minus = cos, sin, !minus
	}
	if minus {
		sin = -sin
	}
	if minusCos {
		cos = -cos
	}
	return sin, cos
}
