// Sums of activations. Every stride-th pixel of the second operand counts, and its missing channels are zero.
typedef struct { uint h, w, channels, side, across, stride; } addition;

// y = x + z, over samples of n elements.
__kernel void add(__global const uint *words, uint shape, uint sizes, uint n, __global const float *x, uint listx, ulong stepx,
	__global const float *z, uint listz, ulong stepz, __global float *y, ulong stepy)
{
	__global const addition *a = (__global const addition *)(words + shape);
	ulong e = COLUMN;
	if (e >= (ulong)words[sizes + ENTRY] * n)
		return;
	float v = x[ROW(words, listx) * stepx + e];
	uint s = e / n, i = e % n, plane = a->h * a->w, c = i / plane, r = i % plane / a->w, q = i % a->w;
	if (c < a->channels)
		v = v + z[ROW(words, listz) * stepz + (((ulong)s * a->channels + c) * a->side + r * a->stride) * a->across + q * a->stride];
	y[ENTRY * stepy + e] = v;
}

// The gradient of z, whose samples have n elements; more of it is added to what is there.
__kernel void add_back(__global const uint *words, uint shape, uint sizes, uint n, uint more, __global const float *dy, ulong stepy, uint wide,
	__global float *dz, ulong stepz)
{
	__global const addition *a = (__global const addition *)(words + shape);
	ulong e = COLUMN;
	if (e >= (ulong)words[sizes + ENTRY] * n)
		return;
	uint s = e / n, i = e % n, plane = a->side * a->across, c = i / plane, r = i % plane / a->across, q = i % a->across;
	__global float *d = dz + ENTRY * stepz + e;
	if (r % a->stride || q % a->stride || r / a->stride >= a->h || q / a->stride >= a->w) {
		if (!more)
			*d = 0;
		return;
	}
	float v = dy[ENTRY * stepy + (ulong)s * wide + (c * a->h + r / a->stride) * a->w + q / a->stride];
	*d = more ? *d + v : v;
}

__kernel void plus(__global float *d, __global const float *x, ulong n)
{
	if (COLUMN < n)
		d[COLUMN] = d[COLUMN] + x[COLUMN];
}

// y = a row of the parameters for each sample of n elements.
__kernel void constant_rows(__global const uint *words, uint sizes, uint n, __global const float *row, ulong at, uint list, ulong step,
	__global float *y, ulong stepy)
{
	ulong e = COLUMN;
	if (e < (ulong)words[sizes + ENTRY] * n)
		y[ENTRY * stepy + e] = row[ROW(words, list) * step + at + e % n];
}
