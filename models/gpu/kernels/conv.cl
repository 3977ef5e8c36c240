// Convolutions, an element of the result by a work item: groups go over elements, samples and entries.

// Channels are those of all groups of the convolution.
typedef struct { uint in, h, w, out, side, stride, pad, oh, ow, groups; } filter;

// Output channels, then kernel rows, then columns: weights are [out][in/groups][kernel][kernel].
__kernel void conv(__global const uint *words, uint shape, uint sizes, uint most, __global const float *x, uint listx, ulong stepx,
	__global const float *params, uint list, ulong step, ulong atw, ulong atb, uint biased, uint relu, __global float *y, ulong stepy)
{
	__global const filter *f = (__global const filter *)(words + shape);
	uint e = get_global_id(0), s = get_group_id(1), z = get_group_id(2), plane = f->oh * f->ow;
	if (e >= f->out * plane || s >= words[sizes + z])
		return;
	uint o = e / plane, oy = e % plane / f->ow, ox = e % f->ow, deep = f->in / f->groups, first = o / (f->out / f->groups) * deep;
	ulong p = (list == NONE ? z : words[list + z]) * step;
	__global const float *w = params + p + atw + (ulong)o * deep * f->side * f->side;
	x += (listx == NONE ? z : words[listx + z]) * stepx + ((ulong)s * f->in + first) * f->h * f->w;
	float sum = 0;
	for (uint c = 0; c < deep; c++)
		for (uint i = 0; i < f->side; i++) {
			uint iy = oy * f->stride + i - f->pad; // below zero is beyond all
			if (iy >= f->h)
				continue;
			for (uint j = 0; j < f->side; j++) {
				uint ix = ox * f->stride + j - f->pad;
				if (ix < f->w)
					sum = fma(w[(c * f->side + i) * f->side + j], x[((ulong)c * f->h + iy) * f->w + ix], sum);
			}
		}
	if (biased)
		sum = sum + params[p + atb + o];
	if (relu && sum < 0)
		sum = 0;
	y[z * stepy + (ulong)s * f->out * plane + e] = sum;
}

// The gradient of the input: over output channels of the group, kernel rows and columns; zero where the gate, the
// input, is not above zero.
__kernel void conv_data(__global const uint *words, uint shape, uint sizes, uint most, __global const float *dy, ulong stepy,
	__global const float *params, uint list, ulong step, ulong atw, __global const float *gate, uint gated, __global float *dx, ulong stepx)
{
	__global const filter *f = (__global const filter *)(words + shape);
	uint e = get_global_id(0), s = get_group_id(1), z = get_group_id(2), plane = f->h * f->w;
	if (e >= f->in * plane || s >= words[sizes + z])
		return;
	uint c = e / plane, y = e % plane / f->w, x = e % f->w, deep = f->in / f->groups, many = f->out / f->groups, first = c / deep * many;
	__global const float *w = params + (list == NONE ? z : words[list + z]) * step + atw;
	dy += z * stepy + (ulong)s * f->out * f->oh * f->ow;
	float sum = 0;
	for (uint o = first; o < first + many; o++)
		for (uint i = 0; i < f->side; i++) {
			uint oy = y + f->pad - i;
			if (y + f->pad < i || oy % f->stride > 0 || oy / f->stride >= f->oh)
				continue;
			for (uint j = 0; j < f->side; j++) {
				uint ox = x + f->pad - j;
				if (x + f->pad >= j && ox % f->stride == 0 && ox / f->stride < f->ow)
					sum = fma(w[(((ulong)o * deep + c % deep) * f->side + i) * f->side + j],
						dy[((ulong)o * f->oh + oy / f->stride) * f->ow + ox / f->stride], sum);
			}
		}
	ulong at = z * stepx + (ulong)s * f->in * plane + e;
	if (gated && !(gate[at] > 0))
		sum = 0;
	dx[at] = sum;
}

// The outputs [lo, hi), of m, that tap k meets on an axis of n inputs.
uint2 along(uint k, uint n, uint m, uint stride, uint pad)
{
	int at = (int)k - (int)pad;
	if (at >= (int)n)
		return (uint2)(0, 0);
	return (uint2)((uint)max(0, ((int)stride - 1 - at) / (int)stride), (uint)min((int)m, ((int)n - 1 - at) / (int)stride + 1));
}

// The total of sixteen sums over pixels of rows [ya, yb) and columns [xa, xb), each with the 32 samples of a block, of
// which some are there.
float sixteen(__global const filter *f, __global const float *dy, ulong nexty, __global const float *x, ulong nextx, uint live,
	uint ya, uint yb, uint xa, uint xb, uint i, uint j)
{
	float s[16], t[4];
	for (uint l = 0; l < 16; l++)
		s[l] = 0;
	for (uint oy = ya; oy < yb; oy++)
		for (uint ox = xa; ox < xb; ox++) {
			uint a = oy * f->ow + ox, b = (oy * f->stride + i - f->pad) * f->w + ox * f->stride + j - f->pad;
			for (uint l = 0; l < live; l++)
				s[l % 16] = fma(dy[l * nexty + a], x[l * nextx + b], s[l % 16]);
		}
	for (uint l = 0; l < 4; l++)
		t[l] = (s[4 * l] + s[4 * l + 2]) + (s[4 * l + 1] + s[4 * l + 3]);
	return (t[0] + t[2]) + (t[1] + t[3]);
}

// The gradient of the weights: blocks of 32 samples in order, jobs of max(1, 16/width) rows in order. A work item takes
// a weight of an entry.
__kernel void conv_weights(__global const uint *words, uint shape, uint sizes, __global const float *dy, ulong stepy, __global const float *x,
	ulong stepx, __global float *g, ulong at, ulong step)
{
	__global const filter *f = (__global const filter *)(words + shape);
	uint e = get_global_id(0), z = ENTRY, deep = f->in / f->groups, kk = f->side * f->side, n = words[sizes + z];
	if (e >= f->out * deep * kk)
		return;
	uint o = e / (deep * kk), c = e / kk % deep, i = e % kk / f->side, j = e % f->side, plane = f->h * f->w, result = f->oh * f->ow;
	uint first = o / (f->out / f->groups) * deep + c, rows = max(1u, 16 / f->ow);
	uint2 ys = along(i, f->h, f->oh, f->stride, f->pad), xs = along(j, f->w, f->ow, f->stride, f->pad), all = (uint2)(0, 0);
	if (deep < 5) // what all taps of the row have in common
		all = (uint2)(along(0, f->w, f->ow, f->stride, f->pad).x, along(f->side - 1, f->w, f->ow, f->stride, f->pad).y);
	float sum = 0;
	for (uint b = 0; b < n; b += 32) {
		__global const float *d = dy + z * stepy + ((ulong)b * f->out + o) * result, *in = x + z * stepx + ((ulong)b * f->in + first) * plane;
		ulong nexty = (ulong)f->out * result, nextx = (ulong)f->in * plane;
		uint live = min(32u, n - b);
		for (uint y = 0; y < f->oh; y += rows) {
			uint ya = max(y, ys.x), yb = min(y + rows, ys.y);
			if (ya >= yb)
				continue;
			uint cuts[6] = {xs.x, xs.y, 0, 0, 0, 0};
			if (all.x < all.y) {
				cuts[0] = all.x;
				cuts[1] = all.y;
				cuts[2] = xs.x;
				cuts[3] = all.x;
				cuts[4] = all.y;
				cuts[5] = xs.y;
			}
			for (uint k = 0; k < 6; k += 2)
				if (cuts[k] < cuts[k + 1])
					sum = fma(1.0f, sixteen(f, d, nexty, in, nextx, live, ya, yb, cuts[k], cuts[k + 1], i, j), sum);
		}
	}
	g[at + z * step + e] = sum;
}

// The gradient of the bias: in a block each of the 32 samples has a sum over pixels; they are added by halves, and to
// what the blocks before gave.
__kernel void conv_bias(__global const uint *words, uint sizes, uint out, uint plane, __global const float *dy, ulong stepy, __global float *g,
	ulong at, ulong step)
{
	uint o = get_global_id(0), z = ENTRY, n = words[sizes + z];
	if (o >= out)
		return;
	float sum = 0, s[32];
	for (uint b = 0; b < n; b += 32) {
		for (uint l = 0; l < 32; l++) {
			s[l] = 0;
			for (uint q = 0; q < plane && b + l < n; q++)
				s[l] = s[l] + dy[z * stepy + ((ulong)(b + l) * out + o) * plane + q];
		}
		for (uint h = 16; h > 0; h /= 2)
			for (uint l = 0; l < h; l++)
				s[l] = s[l] + s[l + h];
		sum = sum + s[0];
	}
	g[at + z * step + o] = sum;
}
