// Noise by address: Philox4x32-10 (Salmon et al. 2011), normals by Box and Muller, whole numbers. A row of a tensor
// takes whole tiles of 32 elements, eight counters of four words each. The table has four words a tensor: its first
// parameter, elements, columns, first tile.

uint4 philox(uint4 c, uint k0, uint k1)
{
	for (uint r = 0; r < 10; r++) {
		uint h0 = mul_hi(0xD2511F53u, c.x), l0 = 0xD2511F53u * c.x, h1 = mul_hi(0xCD9E8D57u, c.z), l1 = 0xCD9E8D57u * c.z;
		c = (uint4)(h1 ^ c.y ^ k0, l1, h0 ^ c.w ^ k1, l0);
		k0 += 0x9E3779B9u;
		k1 += 0xBB67AE85u;
	}
	return c;
}

// Two words into two normals: -2 ln u by a polynomial around 1, the angle pi/2*v, the cosine's sign from bit 0.
float2 normals(uint x, uint y)
{
	float f = (float)(int)(x >> 1 | 1) * 0x1p-31f;
	int b = as_int(f), e = (b - 0x3f3504f3) >> 23;
	float t = as_float((uint)(b - (int)((uint)e << 23))) - 1.0f;
	float q = -0.2379191517829895f;
	q = q * t + 0.3733559846878052f;
	q = q * t + -0.40992698073387146f;
	q = q * t + 0.49819502234458923f;
	q = q * t + -0.6662901639938354f;
	q = q * t + 1.000022292137146f;
	q = q * t + -2.000001907348633f;
	float w = t * q;
	w = w + (float)e * -1.3862943611198906f;
	float r = sqrt(w), v = (float)(int)y * 0x1p-31f, v2 = v * v;
	float c = 0.0008581960573792458f, s = -0.004362513776868582f;
	c = c * v2 + -0.02081063948571682f;
	c = c * v2 + 0.2536507546901703f;
	c = c * v2 + -1.2336982488632202f;
	c = c * v2 + 0.9999999403953552f;
	s = s * v2 + 0.07948773354291916f;
	s = s * v2 + -0.645920991897583f;
	s = s * v2 + 1.5707948207855225f;
	s = s * v;
	c = as_float(as_uint(c) ^ y << 31);
	return (float2)(r * c, r * s);
}

int integer(uint w)
{
	int s = (char)(w & 255) + (char)(w >> 8 & 255) + (char)(w >> 16 & 255) + (char)(w >> 24 | 1);
	return (s + 3) >> 2;
}

// Where the four elements of a work item lie: lanes 2i, 2i+1, 16+2i and 17+2i of a tile.
typedef struct { uint tensor, block, lane, live; ulong first; } spot;

spot spot_of(__global const uint *table, uint tensors, ulong item)
{
	uint tile = item / 8, lo = 0, hi = tensors;
	while (hi - lo > 1) {
		uint mid = (lo + hi) / 2;
		if (table[4 * mid + 3] <= tile)
			lo = mid;
		else
			hi = mid;
	}
	__global const uint *t = table + 4 * lo;
	uint cols = t[2], per = (cols + 31) / 32, rel = tile - t[3], col = rel % per * 32;
	spot s;
	s.tensor = lo;
	s.block = 8 * rel + item % 8;
	s.lane = item % 8 * 2;
	s.live = min(32u, cols - col);
	s.first = t[0] + (ulong)(rel / per) * cols + col;
	return s;
}

uint lane_of(spot s, uint j) { return s.lane + (j & 1) + (j >> 1) * 16; }

// kind 0 is normals, 1 whole numbers times IntegerScale, 2 whole numbers.
void four(spot s, uint k0, uint k1, uint member, uint round, uint kind, float *v)
{
	uint4 w = philox((uint4)(s.block, s.tensor, member, round), k0, k1);
	if (kind > 0) {
		float scale = kind == 1 ? 0.027062882f : 1.0f;
		v[0] = (float)integer(w.x) * scale;
		v[1] = (float)integer(w.y) * scale;
		v[2] = (float)integer(w.z) * scale;
		v[3] = (float)integer(w.w) * scale;
		return;
	}
	float2 a = normals(w.x, w.z), b = normals(w.y, w.w);
	v[0] = a.x;
	v[1] = b.x;
	v[2] = a.y;
	v[3] = b.y;
}

// Keys are five words for each row: cipher key, member, round, and the factor of perturb.

// d = eps of each row's key, over items [from, from+n) of the tiles' counters; parameters [lo, hi) of it go to a row of
// d.
__kernel void draw(__global const uint *words, uint keys, __global const uint *table, uint tensors, ulong from, ulong n, uint kind,
	__global float *d, ulong at, ulong step, ulong lo, ulong hi)
{
	if (COLUMN >= n)
		return;
	__global const uint *k = words + keys + 5 * ENTRY;
	spot s = spot_of(table, tensors, from + COLUMN);
	float v[4];
	four(s, k[0], k[1], k[2], k[3], kind, v);
	for (uint j = 0; j < 4; j++)
		if (lane_of(s, j) < s.live && s.first + lane_of(s, j) >= lo && s.first + lane_of(s, j) < hi)
			d[at + ENTRY * step + s.first + lane_of(s, j) - lo] = v[j];
}

// x = x + sigma*eps, the product rounded.
__kernel void perturb(__global const uint *words, uint keys, __global const uint *table, uint tensors, ulong n, __global float *x, ulong at, ulong step)
{
	if (COLUMN >= n)
		return;
	__global const uint *k = words + keys + 5 * ENTRY;
	spot s = spot_of(table, tensors, COLUMN);
	float v[4], sigma = as_float(k[4]);
	four(s, k[0], k[1], k[2], k[3], 0, v);
	for (uint j = 0; j < 4; j++)
		if (lane_of(s, j) < s.live) {
			ulong i = at + ENTRY * step + s.first + lane_of(s, j);
			x[i] = x[i] + sigma * v[j];
		}
}

// d = sum of weights*eps(members) in their order, every product rounded; of eps^2-1 with square. Whole numbers are
// summed exactly, rounded and then scaled. Members are pairs of words: member, weight.
__kernel void noise_sum(__global const uint *words, uint members, uint count, uint k0, uint k1, uint round, __global const uint *table,
	uint tensors, ulong from, ulong n, uint kind, uint square, __global float *d, ulong at, ulong lo, ulong hi)
{
	if (COLUMN >= n)
		return;
	spot s = spot_of(table, tensors, from + COLUMN);
	float v[4], sum[4] = {0, 0, 0, 0};
	int whole[4] = {0, 0, 0, 0};
	for (uint i = 0; i < count; i++) {
		uint member = words[members + 2 * i];
		float w = as_float(words[members + 2 * i + 1]);
		if (kind == 1) {
			uint4 c = philox((uint4)(s.block, s.tensor, member, round), k0, k1);
			whole[0] += (int)w * integer(c.x);
			whole[1] += (int)w * integer(c.y);
			whole[2] += (int)w * integer(c.z);
			whole[3] += (int)w * integer(c.w);
			continue;
		}
		four(s, k0, k1, member, round, 0, v);
		for (uint j = 0; j < 4; j++) {
			float e = square ? v[j] * v[j] - 1.0f : v[j];
			sum[j] = sum[j] + w * e;
		}
	}
	for (uint j = 0; j < 4; j++) {
		ulong i = s.first + lane_of(s, j);
		if (lane_of(s, j) < s.live && i >= lo && i < hi)
			d[at + i - lo] = kind == 1 ? (float)whole[j] * 0.027062882f : sum[j];
	}
}

// d picks each element from a or b: coin o of a tensor is bit o%32 of word o/32 of its stream, coin 0 for all of it
// with whole. Heads is b.
__kernel void crossover(__global const uint *words, uint keys, __global const uint *table, uint tensors, ulong n, uint whole,
	__global float *d, ulong at, __global const float *a, ulong ata, __global const float *b, ulong atb)
{
	ulong i = COLUMN;
	if (i >= n)
		return;
	__global const uint *k = words + keys + 5 * ENTRY;
	uint lo = 0, hi = tensors;
	while (hi - lo > 1) {
		uint mid = (lo + hi) / 2;
		if (table[4 * mid] <= i)
			lo = mid;
		else
			hi = mid;
	}
	uint o = whole ? 0 : i - table[4 * lo];
	uint4 w = philox((uint4)(o / 128, lo, k[2], k[3]), k[0], k[1]);
	uint of[4] = {w.x, w.y, w.z, w.w}, bits = of[o / 32 % 4];
	ulong at_row = ENTRY * n + i;
	d[at + at_row] = bits >> (o % 32) & 1 ? b[atb + at_row] : a[ata + at_row];
}

// The factors of a tensor's noise of rank r: its stream holds 2r rows of max(rows, cols) normals, row 2q being column q
// of A, row 2q+1 column q of B. A is multiplied by inverse and then by the row's factor, if it is weighted. Each row of
// a and of b is a step on.
__kernel void draw_factors(__global const uint *words, uint keys, uint stream, uint rows, uint cols, uint weighted, float inverse,
	__global float *a, ulong stepa, __global float *b, ulong stepb, uint n)
{
	if (COLUMN >= n)
		return;
	__global const uint *k = words + keys + 5 * ENTRY;
	uint item = COLUMN, tiles = (max(rows, cols) + 31) / 32, row = item / 8 / tiles, tile = item / 8 % tiles, many = row % 2 ? cols : rows;
	spot s;
	s.tensor = stream;
	s.block = item;
	s.lane = item % 8 * 2;
	float v[4];
	four(s, k[0], k[1], k[2], k[3], 0, v);
	for (uint j = 0; j < 4; j++) {
		uint e = tile * 32 + lane_of(s, j);
		if (e >= many)
			continue;
		if (row % 2) {
			b[ENTRY * stepb + (ulong)(row / 2) * cols + e] = v[j];
			continue;
		}
		float x = inverse * v[j];
		if (weighted)
			x = as_float(k[4]) * x;
		a[ENTRY * stepa + (ulong)(row / 2) * rows + e] = x;
	}
}

// d = A B' of each row's factors: element (i, j) is the sum over q of a[q][i]*b[q][j], every product rounded.
__kernel void outer(__global const float *a, ulong stepa, __global const float *b, ulong stepb, uint rank, uint rows, uint cols,
	__global float *d, ulong at, ulong step)
{
	ulong e = COLUMN;
	if (e >= (ulong)rows * cols)
		return;
	uint i = e / cols, j = e % cols;
	float s = 0;
	for (uint q = 0; q < rank; q++) {
		float p = a[ENTRY * stepa + (ulong)q * rows + i] * b[ENTRY * stepb + (ulong)q * cols + j];
		s = q == 0 ? p : s + p;
	}
	d[at + ENTRY * step + e] = s;
}
