// Rounding to what a short code can write, in place.

__kernel void round_bf16(__global float *x, ulong at, ulong step, ulong n)
{
	ulong i = at + ENTRY * step + COLUMN;
	if (COLUMN >= n)
		return;
	uint b = as_uint(x[i]);
	if (x[i] != x[i])
		b |= 0x400000;
	else
		b += 0x7fff + ((b >> 16) & 1);
	x[i] = as_float(b & 0xffff0000u);
}

// A work item takes a block of 64 values q*2^e, |q| <= 127, e the smallest that reaches the largest.
__kernel void round_int8(__global float *x, ulong at, ulong step, ulong n)
{
	ulong lo = COLUMN * 64;
	if (lo >= n)
		return;
	__global float *v = x + at + ENTRY * step + lo;
	uint many = (uint)min((ulong)64, n - lo);
	double top = 0;
	int whole = 1;
	for (uint i = 0; i < many; i++) {
		double a = fabs((double)v[i]);
		whole = whole && a <= 127 * 0x1p121;
		top = a > top ? a : top;
	}
	int e = -149;
	if (whole && top > 0) { // top is frac*2^e, frac in [0.5, 1): a float32 is a normal double
		ulong b = as_ulong(top);
		double frac = as_double((b & 0xfffffffffffffUL) | 0x3fe0000000000000UL);
		e = (int)(b >> 52) - 1022 - 7;
		if (frac > 127.0 / 128)
			e++;
		e = max(e, -149);
	}
	double up = as_double((ulong)(e + 1023) << 52), down = as_double((ulong)(1023 - e) << 52);
	for (uint i = 0; i < many; i++)
		v[i] = whole ? (float)((double)(int)rint((double)v[i] * down) * up) : NAN;
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
