// Products of many entries in one launch: C = A B, each element one chain of fma from zero in the order of k, + bias,
// zero where the gate is not above zero; with add C = fma(factor, that, C), the factor of each entry from a list, or 1;
// max(0, .). Tiles depend on shapes alone.

#define SIDE 64u  // rows and columns of a tile of C
#define DEPTH 16u // of k at a time

// An operand of entry z begins at element at + list[z]*step; element (i, j) lies i*down + j*across behind.
typedef struct { ulong at, step; uint list, down, across, there; } operand;

// sized is 1 where each entry has m of its own, 2 where it has k.
typedef struct { uint m, n, k, sizes, sized, relu, add, factors; operand a, b, c, bias, gate; } shape;

ulong begin(__global const uint *words, __global const operand *o, uint z)
{
	return o->at + (o->list == NONE ? z : words[o->list + z]) * o->step;
}

__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void gemm(__global const uint *words, uint params, __global const float *a, __global const float *b, __global float *c,
	__global const float *bias, __global const float *gate)
{
	__local float as[DEPTH][SIDE + 4], bs[DEPTH][SIDE + 4];
	__global const shape *p = (__global const shape *)(words + params);
	uint z = get_group_id(2), t = get_local_id(0), m = p->m, n = p->n, k = p->k;
	if (p->sized == 1)
		m = words[p->sizes + z];
	if (p->sized == 2)
		k = words[p->sizes + z];
	uint row = get_group_id(1) * SIDE, col = get_group_id(0) * SIDE, down = t / 16 * 4, across = t % 16 * 4;
	if (row >= m)
		return;
	a += begin(words, &p->a, z);
	b += begin(words, &p->b, z);
	c += begin(words, &p->c, z);
	float sum[4][4];
	for (uint i = 0; i < 4; i++)
		for (uint j = 0; j < 4; j++)
			sum[i][j] = 0;
	uint ad = p->a.down, ax = p->a.across, bd = p->b.down, bx = p->b.across;
	for (uint from = 0; from < k; from += DEPTH) {
		for (uint e = t; e < SIDE * DEPTH; e += 256) { // neighbours read neighbours
			uint i = ax == 1 ? e / DEPTH : e % SIDE, d = ax == 1 ? e % DEPTH : e / SIDE;
			as[d][i] = row + i < m && from + d < k ? a[(ulong)(row + i) * ad + (ulong)(from + d) * ax] : 0;
			uint j = bx == 1 ? e % SIDE : e / DEPTH, h = bx == 1 ? e / SIDE : e % DEPTH;
			bs[h][j] = col + j < n && from + h < k ? b[(ulong)(from + h) * bd + (ulong)(col + j) * bx] : 0;
		}
		barrier(CLK_LOCAL_MEM_FENCE);
		uint deep = min(DEPTH, k - from);
		for (uint d = 0; d < deep; d++)
			for (uint i = 0; i < 4; i++)
				for (uint j = 0; j < 4; j++)
					sum[i][j] = fma(as[d][down + i], bs[d][across + j], sum[i][j]);
		barrier(CLK_LOCAL_MEM_FENCE);
	}
	for (uint i = 0; i < 4; i++)
		for (uint j = 0; j < 4; j++) {
			uint r = row + down + i, q = col + across + j;
			if (r >= m || q >= n)
				continue;
			float s = sum[i][j];
			if (p->bias.there)
				s = s + bias[begin(words, &p->bias, z) + q];
			if (p->gate.there && !(gate[begin(words, &p->gate, z) + (ulong)r * p->gate.down + q] > 0))
				s = 0;
			if (p->add)
				s = fma(p->factors == NONE ? 1.0f : as_float(words[p->factors + z]), s, c[(ulong)r * p->c.down + q]);
			if (p->relu && s < 0)
				s = 0;
			c[(ulong)r * p->c.down + q] = s;
		}
}

// d[j] = the sum of column j of an entry's rows in their order: the gradient of a bias.
__kernel void column_sums(__global const uint *words, uint sizes, uint n, __global const float *x, ulong step, __global float *d, ulong at, ulong stepd)
{
	ulong j = COLUMN;
	if (j >= n)
		return;
	float s = 0;
	for (uint r = 0; r < words[sizes + ENTRY]; r++)
		s = s + x[ENTRY * step + (ulong)r * n + j];
	d[at + ENTRY * stepd + j] = s;
}

// Dot products of entries' rows with columns that are n long, a multiple of 32: sixteen sums, element e by fma into sum
// e mod 16, added by halves of each four, then of the fours. c = 0 + the total. A work item takes a row of an entry and
// a column of its pair's.
__kernel void row_dots(__global const uint *words, uint sizes, uint n, uint pairs, __global const float *a, ulong stepa,
	__global const float *b, ulong stepb, __global float *c, ulong stepc, uint down)
{
	uint r = get_global_id(0), q = get_group_id(1), z = get_group_id(2);
	if (r >= words[sizes + z])
		return;
	a += z * stepa + (ulong)r * n;
	b += words[pairs + z] * stepb + (ulong)q * n;
	float s[16];
	for (uint i = 0; i < 16; i++)
		s[i] = 0;
	for (uint e = 0; e < n; e++)
		s[e % 16] = fma(a[e], b[e], s[e % 16]);
	float t[4];
	for (uint i = 0; i < 4; i++)
		t[i] = (s[4 * i] + s[4 * i + 2]) + (s[4 * i + 1] + s[4 * i + 3]);
	c[z * stepc + (ulong)r * down + q] = 0.0f + ((t[0] + t[2]) + (t[1] + t[3]));
}

// c = alpha*(sum of bytes times whole numbers) + beta*(sum of the whole numbers) + bias from the right: exact sums,
// rounded once, each product rounded. The bytes are those of samples, by ids as samples have them.
__kernel void byte_product(__global const uint *words, uint ids, uint views, uint sizes, uint most, __global const uchar *pixels, uint n,
	__global const float *v, ulong stepv, uint cols, __global const float *bias, ulong atb, ulong stepb, uint biased, float alpha, float beta,
	__global float *c, ulong stepc)
{
	uint q = get_global_id(0), r = get_group_id(1), z = get_group_id(2);
	if (q >= cols || r >= words[sizes + z])
		return;
	pixels += (ulong)words[ids + words[views + z] * most + r] * n;
	v += z * stepv + (ulong)q * n;
	int sum = 0, ones = 0;
	for (uint i = 0; i < n; i++) {
		int x = (int)v[i];
		sum += pixels[i] * x;
		ones += x;
	}
	float shift = beta * (float)ones + (biased ? bias[atb + z * stepb + q] : 0.0f);
	c[z * stepc + (ulong)r * cols + q] = alpha * (float)sum + shift;
}
