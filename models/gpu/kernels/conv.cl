// In a tile, what stands for a tap outside the image: the bits of no number that is loaded.
#define ABSENT 0x7f800001

// The sums of 8 x 8 elements take one step of k, but where the right operand is absent.
void multiply_there(float8 *sum, __local const float *a, __local const float *b)
{
	float8 right = get8(b);
	int8 there = as_int8(right) != (int8)ABSENT;
	#pragma unroll
	for (uint i = 0; i < 8; i++)
		sum[i] = there ? fma8(a[i], right, sum[i]) : sum[i];
}

// A convolution, or with back the gradient of its input, as products: lines are channels of the result, columns its
// pixels in all samples, and k goes over channels of the operand, kernel rows and kernel columns, all ascending. A group
// has high items above each other, so that few channels make broad tiles: 8*high lines by 8*64/high columns. Then + bias,
// max(0, .), or zero where the gate, the input, is not above zero.
__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void conv_tiles(__global const uint *words, uint shape, uint sizes, uint back, uint high, __global const float *x, uint listx, ulong stepx,
	__global const float *params, uint list, ulong step, ulong atw, ulong atb, uint biased, uint relu, __global const float *gate, uint gated,
	__global float *y, ulong stepy)
{
	__local float as[SHALLOW * SIDE], bs[SHALLOW * SIDE * 8];
	__local uint4 taps[SHALLOW]; // of the operand: channel's start, row and column from that of the pixel
	__global const filter *f = (__global const filter *)(words + shape);
	uint z = get_group_id(2) / f->groups, g = get_group_id(2) % f->groups, t = get_local_id(0);
	uint deep = f->in / f->groups, many = f->out / f->groups, kk = f->side * f->side;
	uint m = back ? deep : many, channels = back ? many : deep, k = channels * kk;
	uint width = back ? f->w : f->ow, plane = width * (back ? f->h : f->oh), xh = back ? f->oh : f->h, xw = back ? f->ow : f->w;
	uint wide = ITEMS / high, row = get_group_id(1) * 8 * high, col = get_group_id(0) * 8 * wide, n = words[sizes + z] * plane;
	uint down = t / wide * 8, across = t % wide * 8;
	if (col >= n)
		return;
	ulong p = (list == NONE ? z : words[list + z]) * step;
	__global const float *w = params + p + atw + (ulong)g * many * deep * kk + (ulong)row * (back ? kk : k);
	x += (listx == NONE ? z : words[listx + z]) * stepx + (ulong)g * channels * xh * xw;
	uint apart = (back ? f->out : f->in) * xh * xw; // samples of the operand
	float8 sum[8];
	#pragma unroll
	for (uint r = 0; r < 8; r++)
		sum[r] = 0;
	uint thin = back && f->stride > 1; // taps meet every stride-th pixel
	for (uint from = 0; from < k; from += SHALLOW) {
		uint steps = min(SHALLOW, k - from);
		barrier(CLK_LOCAL_MEM_FENCE);
		if (t < SHALLOW) {
			uint i = (from + t) % kk / f->side, j = (from + t) % f->side;
			taps[t] = (uint4)((from + t) / kk * xh * xw, back ? f->pad - i : i - f->pad, back ? f->pad - j : j - f->pad, 0);
		}
		for (uint e = t; e < 8 * high * SHALLOW; e += ITEMS) {
			uint r = e / SHALLOW, d = e % SHALLOW, at = from + d;
			as[d * SIDE + r] = row + r < m && d < steps ? w[back ? (ulong)(at / kk) * deep * kk + r * kk + at % kk : (ulong)r * k + at] : 0;
		}
		barrier(CLK_LOCAL_MEM_FENCE);
		for (uint e = t; e < 8 * wide; e += ITEMS) {
			uint q = min(col + e, n - 1), left = q % plane, stride = back ? 1 : f->stride, oy = left / width * stride, ox = left % width * stride;
			__global const float *image = x + (ulong)(q / plane) * apart;
			for (uint d = 0; d < steps; d++) {
				uint iy = oy + taps[d].y, ix = ox + taps[d].z; // below zero is beyond all
				if (thin) {
					iy = (int)iy >= 0 && iy % f->stride == 0 ? iy / f->stride : xh;
					ix = (int)ix >= 0 && ix % f->stride == 0 ? ix / f->stride : xw;
				}
				float v = as_float(ABSENT);
				if (iy < xh && ix < xw) {
					v = image[taps[d].x + iy * xw + ix];
					v = v == v ? v : NAN;
				}
				bs[d * 8 * wide + e] = v;
			}
		}
		barrier(CLK_LOCAL_MEM_FENCE);
		for (uint d = 0; d < steps; d++)
			multiply_there(sum, as + d * SIDE + down, bs + d * 8 * wide + across);
	}
	#pragma unroll
	for (uint r = 0; r < 8; r++) {
		float line[8];
		put8(line, sum[r]);
		#pragma unroll
		for (uint e = 0; e < 8; e++) {
			uint o = row + down + r, q = col + across + e;
			if (o >= m || q >= n)
				continue;
			ulong at = z * stepy + ((ulong)(q / plane) * m * f->groups + g * m + o) * plane + q % plane;
			y[at] = passed(line[e], biased ? params + p + atb + g * m + o : 0, relu, gated ? gate + at : 0);
		}
	}
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
// a weight of an entry: for groups of few outputs, which would leave tiles empty.
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

// Of tiles of weights: an item has 8 outputs by 8 taps of one of sixteen sums, a group TAPS x TAPS of all. Lines in
// local memory are one longer, so that lanes meet in no bank.
#define TAPS 16u
#define PIXELS 4u
#define LINE (TAPS + 1)
#define PLANE (TAPS * TAPS + 1)

// The same as tiles, of the weights of an entry's group: lines are its outputs, columns its taps. The sixteen sums of a
// weight go over pixels in their order, each with samples l and 16 + l of the block; a tap outside the image is left out.
__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void conv_weight_tiles(__global const uint *words, uint shape, uint sizes, __global const float *dy, ulong stepy, __global const float *x,
	ulong stepx, __global float *g, ulong at, ulong step)
{
	__local float room[2 * PIXELS * 32 * LINE]; // of both operands; then sums of each lane
	__local uint4 taps[TAPS];
	__global const filter *f = (__global const filter *)(words + shape);
	uint z = get_group_id(2) / f->groups, of = get_group_id(2) % f->groups, t = get_local_id(0), n = words[sizes + z];
	uint deep = f->in / f->groups, many = f->out / f->groups, kk = f->side * f->side, wide = deep * kk;
	uint plane = f->h * f->w, result = f->oh * f->ow, row = get_group_id(1) * TAPS, col = get_group_id(0) * TAPS;
	uint lane = t % 16, down = t / 32 * 8, across = t / 16 % 2 * 8;
	__local float *ys = room, *xs = room + PIXELS * 32 * LINE;
	if (t < TAPS) {
		uint k = min(col + t, wide - 1);
		taps[t] = (uint4)(k / kk * plane, k % kk / f->side - f->pad, k % f->side - f->pad, 0);
	}
	dy += z * stepy + (ulong)(of * many + row) * result;
	x += z * stepx + (ulong)of * deep * plane;
	uint rows = max(1u, 16 / f->ow), cuts[6] = {0, f->ow, 0, 0, 0, 0};
	if (deep < 5) { // what all taps of the row have in common
		uint lo = along(0, f->w, f->ow, f->stride, f->pad).x, hi = along(f->side - 1, f->w, f->ow, f->stride, f->pad).y;
		if (lo < hi) {
			cuts[0] = lo;
			cuts[1] = hi;
			cuts[3] = lo;
			cuts[4] = hi;
			cuts[5] = f->ow;
		}
	}
	float total[TAPS * TAPS / ITEMS];
	for (uint i = 0; i < TAPS * TAPS / ITEMS; i++)
		total[i] = 0;
	for (uint b = 0; b < n; b += 32)
		for (uint y = 0; y < f->oh; y += rows)
			for (uint cut = 0; cut < 6; cut += 2) {
				uint from = cuts[cut], width = cuts[cut + 1] - from, pixels = min(rows, f->oh - y) * width;
				if (pixels == 0)
					continue;
				float8 sum[8];
				#pragma unroll
				for (uint i = 0; i < 8; i++)
					sum[i] = 0;
				for (uint first = 0; first < pixels; first += PIXELS) {
					uint live = min(PIXELS, pixels - first), begin = first / width;
					barrier(CLK_LOCAL_MEM_FENCE);
					for (uint e = t; e < 32 * TAPS; e += ITEMS) {
						uint s = e / TAPS, q = e % TAPS;
						bool there = b + s < n;
						__global const float *d = dy + (ulong)(b + s) * f->out * result + q * result;
						__global const float *image = x + (ulong)(b + s) * f->in * plane + taps[q].x;
						uint oy = y + begin, ox = from + first - begin * width;
						for (uint p = 0; p < live; p++) {
							uint iy = oy * f->stride + taps[q].y, ix = ox * f->stride + taps[q].z; // below zero is beyond all
							float v = as_float(ABSENT);
							if (there && iy < f->h && ix < f->w) {
								v = image[iy * f->w + ix];
								v = v == v ? v : NAN;
							}
							xs[(p * 32 + s) * LINE + q] = v;
							ys[(p * 32 + s) * LINE + q] = there && row + q < many ? d[oy * f->ow + ox] : 0;
							ox++;
							if (ox == from + width) {
								ox = from;
								oy++;
							}
						}
					}
					barrier(CLK_LOCAL_MEM_FENCE);
					for (uint d = lane; d < live * 32; d += 16)
						multiply_there(sum, ys + d * LINE + down, xs + d * LINE + across);
				}
				barrier(CLK_LOCAL_MEM_FENCE);
				#pragma unroll
				for (uint r = 0; r < 8; r++) {
					float line[8];
					put8(line, sum[r]);
					#pragma unroll
					for (uint e = 0; e < 8; e++)
						room[lane * PLANE + (down + r) * TAPS + across + e] = line[e];
				}
				barrier(CLK_LOCAL_MEM_FENCE);
				#pragma unroll
				for (uint i = 0; i < TAPS * TAPS / ITEMS; i++) {
					float s[16], t4[4];
					#pragma unroll
					for (uint l = 0; l < 16; l++)
						s[l] = room[l * PLANE + i * ITEMS + t];
					#pragma unroll
					for (uint l = 0; l < 4; l++)
						t4[l] = (s[4 * l] + s[4 * l + 2]) + (s[4 * l + 1] + s[4 * l + 3]);
					total[i] = fma(1.0f, (t4[0] + t4[2]) + (t4[1] + t4[3]), total[i]);
				}
			}
	for (uint i = 0; i < TAPS * TAPS / ITEMS; i++) {
		uint o = row + (i * ITEMS + t) / TAPS, q = col + t % TAPS;
		if (o < many && q < wide)
			g[at + z * step + ((ulong)of * many + o) * wide + q] = total[i];
	}
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
