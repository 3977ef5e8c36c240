// Windows of images: groups go over elements, samples and entries.
typedef struct { uint channels, h, w, side, stride, oh, ow, there; } window;

// The maximum, or the mean, of each window; of two that compare as neither, the later one.
__kernel void pool(__global const uint *words, uint shape, uint sizes, uint mean, float scale, __global const float *x, uint listx, ulong stepx,
	__global float *y, ulong stepy)
{
	__global const window *p = (__global const window *)(words + shape);
	uint e = get_global_id(0), s = get_group_id(1), z = get_group_id(2), plane = p->oh * p->ow;
	if (e >= p->channels * plane || s >= words[sizes + z])
		return;
	x += (listx == NONE ? z : words[listx + z]) * stepx + ((ulong)s * p->channels + e / plane) * p->h * p->w + e % plane / p->ow * p->stride * p->w
		+ e % p->ow * p->stride;
	float m = mean ? 0 : x[0];
	for (uint i = 0; i < p->side; i++)
		for (uint j = 0; j < p->side; j++) {
			float v = x[i * p->w + j];
			if (mean)
				m = m + v;
			else if (!(m > v))
				m = v;
		}
	y[z * stepy + (ulong)s * p->channels * plane + e] = mean ? m * scale : m;
}

// The gradient of an element of the input: what each window that holds it gives, in the order of windows. Of a maximum
// the first tap that equals it takes all.
__kernel void pool_back(__global const uint *words, uint shape, uint sizes, uint mean, float scale, __global const float *x, ulong stepx,
	__global const float *y, __global const float *dy, ulong stepy, __global float *dx)
{
	__global const window *p = (__global const window *)(words + shape);
	uint e = get_global_id(0), s = get_group_id(1), z = get_group_id(2), in = p->h * p->w, out = p->oh * p->ow;
	if (e >= p->channels * in || s >= words[sizes + z])
		return;
	uint c = e / in, r = e % in / p->w, q = e % p->w;
	ulong from = z * stepx + ((ulong)s * p->channels + c) * in, to = z * stepy + ((ulong)s * p->channels + c) * out;
	float sum = 0;
	uint top = r < p->side ? 0 : (r - p->side) / p->stride + 1, left = q < p->side ? 0 : (q - p->side) / p->stride + 1;
	for (uint i = top; i < p->oh && i * p->stride <= r; i++)
		for (uint j = left; j < p->ow && j * p->stride <= q; j++) {
			ulong o = to + i * p->ow + j;
			float won = dy[o];
			if (mean)
				won = won * scale;
			else {
				__global const float *tap = x + from + i * p->stride * p->w + j * p->stride;
				uint mine = (r - i * p->stride) * p->side + q - j * p->stride;
				for (uint t = 0; t < mine; t++)
					if (tap[t / p->side * p->w + t % p->side] == y[o])
						won = 0;
				if (!(x[from + e % in] == y[o]))
					won = 0;
			}
			if (p->stride >= p->side && !mean)
				sum = won;
			else
				sum = sum + won;
		}
	dx[z * stepx + (ulong)s * p->channels * in + e] = sum;
}

// The mean of each channel, and its gradient.
__kernel void average(__global const uint *words, uint sizes, uint channels, uint plane, __global const float *x, uint listx, ulong stepx,
	__global float *y, ulong stepy)
{
	uint e = COLUMN, z = ENTRY;
	if (e >= words[sizes + z] * channels)
		return;
	x += ROW(words, listx) * stepx + (ulong)e * plane;
	float s = 0;
	for (uint q = 0; q < plane; q++)
		s = s + x[q];
	y[z * stepy + e] = 0.0f + (1.0f / (float)plane) * s;
}

__kernel void average_back(__global const uint *words, uint sizes, uint channels, uint plane, __global const float *dy, ulong stepy,
	__global float *dx, ulong stepx)
{
	ulong e = COLUMN;
	if (e < (ulong)words[sizes + ENTRY] * channels * plane)
		dx[ENTRY * stepx + e] = dy[ENTRY * stepy + e / plane] * (1.0f / (float)plane);
}
