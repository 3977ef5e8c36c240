package kernel

import (
	"fmt"
	"math"
	"unsafe"
)

// softRows is the number of rows in one call of the softmax kernel.
const softRows = 32

// softArgs is the argument of the softmax kernel; strides are in bytes.
type softArgs struct {
	x, d, max, sum        unsafe.Pointer
	ldx, ldd, rows, units int // units of 16 columns
	bits                  uint64
	lanes                 unsafe.Pointer // of the remainder
	scale                 float32
}

// CrossEntropy takes len(labels) rows of n logits and writes loss[i] = -log softmax(x[i])[labels[i]] and, unless d is
// nil, its gradient d[i] = scale*(softmax(x[i]) - onehot(labels[i])); scale is 1/batch for a mean. d may be x. A row
// that holds NaN or +Inf gets a loss of NaN. A label outside [0, n) is an error and leaves loss and d undefined.
func (k *Kernels) CrossEntropy(loss []float32, d []float32, ldd int, x []float32, ldx, n int, labels []int32,
	scale float32) error {
	rows := len(labels)
	if rows == 0 || n <= 0 {
		return nil
	}
	loss, x = loss[:rows], matrix(x, rows, n, ldx)
	if d == nil {
		if len(k.unwanted) < n {
			k.unwanted = aligned(n)
		}
		d, ldd = k.unwanted[:n], 0
	} else {
		d = matrix(d, rows, n, ldd)
	}
	for lo := 0; lo < rows; lo += softRows {
		m := min(softRows, rows-lo)
		for i, l := range labels[lo : lo+m] {
			if uint(l) >= uint(n) {
				return fmt.Errorf("cross entropy: label %d of row %d, there are %d classes", l, lo+i, n)
			}
			loss[lo+i] = x[(lo+i)*ldx+int(l)]
		}
		k.softmax(d[lo*ldd:], ldd, x[lo*ldx:], ldx, m, n, scale)
		for i, l := range labels[lo : lo+m] {
			loss[lo+i] = float32(log(float64(k.sums[i])) - float64(loss[lo+i]-k.maxima[i]))
			if ldd > 0 {
				d[(lo+i)*ldd+int(l)] -= scale
			}
		}
	}
	return nil
}

// softmax writes d = scale*softmax(x) for at most softRows rows, and their maxima and sums.
func (k *Kernels) softmax(d []float32, ldd int, x []float32, ldx, rows, n int, scale float32) {
	if k.isa.softmax == nil {
		for i := range rows {
			k.maxima[i], k.sums[i] = softmax(d[i*ldd:][:n], x[i*ldx:][:n], scale)
		}
		return
	}
	k.soft = softArgs{ptr(x, 0), ptr(d, 0), ptr(k.maxima[:], 0), ptr(k.sums[:], 0), 4 * ldx, 4 * ldd, rows, n / 16,
		bits(n % 16), lanes(n % 16), scale}
	k.isa.softmax(&k.soft)
}

// softmax is the portable variant for one row. The sum has 16 lanes, folded by halves.
func softmax(d, x []float32, scale float32) (maximum, sum float32) {
	maximum = float32(math.Inf(-1))
	for _, v := range x {
		if v > maximum {
			maximum = v
		}
	}
	var lane [16]float32
	for i, v := range x {
		d[i] = exp(max(-expLimit, v-maximum))
		lane[i%16] += d[i]
	}
	for h := 8; h > 0; h /= 2 {
		for i := range h {
			lane[i] += lane[i+h]
		}
	}
	f := scale / lane[0]
	for i := range x {
		d[i] *= f
	}
	return maximum, lane[0]
}

var exp2C = [...]float32{1.0, 0.6931471824645996, 0.24022646248340607, 0.05550328642129898, 0.009618489071726799,
	0.0013399930903688073, 0.0001534580806037411}

// expLimit limits the arguments of exp, so that the result is a normal number.
const expLimit float32 = 86

// exp returns e^t for t in [-expLimit, expLimit]: 2 to the integer part of t/ln 2 times a polynomial of the fraction.
// NaN stays NaN.
func exp(t float32) float32 {
	const round = 1.5 * (1 << 23) // adding it rounds to an integer, whose bits are the lowest
	u := float32(t * math.Log2E)
	e := u + round
	f := u - float32(e-round)
	p := exp2C[6]
	for i := 5; i >= 0; i-- {
		p = float32(p*f) + exp2C[i]
	}
	return float32(p * math.Float32frombits(math.Float32bits(e)<<23+math.Float32bits(1)))
}

var atanhC = [...]float64{1, 1. / 3, 1. / 5, 1. / 7, 1. / 9, 1. / 11, 1. / 13, 1. / 15}

// log returns the natural logarithm of s >= 1 by the series of atanh, accurate to 1e-11; the standard library uses
// assembly on some architectures, so its bits differ between them.
func log(s float64) float64 {
	if !(s < math.Inf(1)) {
		return math.NaN()
	}
	m, e := math.Frexp(s)
	if m < math.Sqrt2/2 {
		m, e = 2*m, e-1
	}
	z := (m - 1) / (m + 1)
	z2 := float64(z * z)
	p := 0.0
	for i := len(atanhC) - 1; i >= 0; i-- {
		p = float64(p*z2) + atanhC[i]
	}
	return float64(float64(e)*math.Ln2) + float64(2*float64(z*p))
}
