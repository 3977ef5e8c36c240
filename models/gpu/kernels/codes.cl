// Rounding to what a short code can write.

float to_bf16(float x)
{
	uint b = as_uint(x);
	if (x != x)
		b |= 0x400000;
	else
		b += 0x7fff + ((b >> 16) & 1);
	return as_float(b & 0xffff0000u);
}

// Values of a block are q*2^e, |q| <= 127, e the smallest that reaches the largest magnitude: top, NaN where a value
// has none or is beyond all.
double higher(double top, float x)
{
	double a = fabs((double)x);
	return a <= 127 * 0x1p121 ? (a > top ? a : top) : NAN;
}

float to_int8(float x, double top)
{
	int e = -149;
	if (top != top)
		return NAN;
	if (top > 0) { // top is frac*2^e, frac in [0.5, 1): a float32 is a normal double
		ulong b = as_ulong(top);
		double frac = as_double((b & 0xfffffffffffffUL) | 0x3fe0000000000000UL);
		e = (int)(b >> 52) - 1022 - 7;
		if (frac > 127.0 / 128)
			e++;
		e = max(e, -149);
	}
	double up = as_double((ulong)(e + 1023) << 52), down = as_double((ulong)(1023 - e) << 52);
	return (float)((double)(int)rint((double)x * down) * up);
}

__kernel void round_bf16(__global float *x, ulong at, ulong step, ulong n)
{
	if (COLUMN < n)
		x[at + ENTRY * step + COLUMN] = to_bf16(x[at + ENTRY * step + COLUMN]);
}

// A work item takes a block of 64 values.
__kernel void round_int8(__global float *x, ulong at, ulong step, ulong n)
{
	ulong lo = COLUMN * 64;
	if (lo >= n)
		return;
	__global float *v = x + at + ENTRY * step + lo;
	uint many = (uint)min((ulong)64, n - lo);
	double top = 0;
	for (uint i = 0; i < many; i++)
		top = top != top ? top : higher(top, v[i]);
	for (uint i = 0; i < many; i++)
		v[i] = to_int8(v[i], top);
}

// d = lost = x + lost.
__kernel void owe(__global float *lost, ulong at, __global float *d, ulong atd, __global const float *x, ulong atx, ulong n)
{
	ulong i = ENTRY * n + COLUMN;
	if (COLUMN >= n)
		return;
	float v = x[atx + i] + lost[at + i];
	lost[at + i] = v;
	d[atd + i] = v;
}

// lost = lost - rounded, 0 where that is no number.
__kernel void owed(__global float *lost, ulong at, ulong step, __global const float *x, ulong atx, ulong stepx, ulong n)
{
	ulong i = at + ENTRY * step + COLUMN;
	if (COLUMN >= n)
		return;
	float d = lost[i] - x[atx + ENTRY * stepx + COLUMN];
	lost[i] = d == d ? d : 0;
}
