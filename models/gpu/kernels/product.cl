// Products of many entries in one launch: C = A B, each element one chain of fma from zero in the order of k, + bias,
// zero where the gate is not above zero; with add C = fma(factor, that, C), the factor of each entry from a list, or 1;
// max(0, .). Tiles depend on shapes alone.

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void gemm(__global const uint *words, uint params, __global const float *a, __global const float *b, __global float *c,
	__global const float *bias, __global const float *gate)
{
	__local float as[DEPTH * SIDE], bs[DEPTH * SIDE];
	__global const shape *p = (__global const shape *)(words + params);
	uint z = get_group_id(2), t = get_local_id(0), m = p->m, n = p->n, k = p->k;
	if (p->sized == 1)
		m = words[p->sizes + z];
	if (p->sized == 2)
		k = words[p->sizes + z];
	uint row = get_group_id(1) * SIDE, col = get_group_id(0) * SIDE, down = t / 8 * 8, across = t % 8 * 8;
	if (row >= m)
		return;
	a += begin(words, &p->a, z);
	b += begin(words, &p->b, z);
	c += begin(words, &p->c, z);
	float8 sum[8];
	#pragma unroll
	for (uint i = 0; i < 8; i++)
		sum[i] = 0;
	uint ad = p->a.down, ax = p->a.across, bd = p->b.down, bx = p->b.across;
	for (uint from = 0; from < k; from += DEPTH) {
		uint deep = min(DEPTH, k - from);
		barrier(CLK_LOCAL_MEM_FENCE);
		load(as, a + (ulong)row * ad + (ulong)from * ax, ad, ax, m - row, deep, t);
		load(bs, b + (ulong)col * bx + (ulong)from * bd, bx, bd, n - col, deep, t);
		barrier(CLK_LOCAL_MEM_FENCE);
		for (uint d = 0; d < deep; d++)
			multiply(sum, as + d * SIDE + down, bs + d * SIDE + across);
	}
	#pragma unroll
	for (uint i = 0; i < 8; i++) {
		float line[8];
		put8(line, sum[i]);
		#pragma unroll
		for (uint j = 0; j < 8; j++) {
			uint r = row + down + i, q = col + across + j;
			if (r >= m || q >= n)
				continue;
			finish(words, p, z, r, q, line[j], c, bias, gate);
		}
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
