// Squared distances of rows to a centre, or to zero: pieces of 1,024 columns have sixteen sums in float64, column i
// into sum i mod 16, which are added by halves. A group of sixteen work items takes a piece.
__kernel __attribute__((reqd_work_group_size(16, 1, 1)))
void squares(__global const float *x, ulong at, ulong n, __global const float *c, ulong atc, uint centred, __global double *pieces)
{
	__local double sums[16];
	ulong lo = get_group_id(0) * 1024, hi = min(n, lo + 1024);
	uint lane = get_local_id(0);
	double s = 0;
	for (ulong i = lo + lane; i < hi; i += 16) {
		double d = x[at + ENTRY * n + i];
		if (centred)
			d = d - (double)c[atc + i];
		s = s + d * d;
	}
	sums[lane] = s;
	for (uint h = 8; h > 0; h /= 2) {
		barrier(CLK_LOCAL_MEM_FENCE);
		if (lane < h)
			sums[lane] = sums[lane] + sums[lane + h];
	}
	if (lane == 0)
		pieces[ENTRY * get_num_groups(0) + get_group_id(0)] = sums[0];
}

// The pieces of each row by pairs of neighbours until one is left, one without a neighbour going on as it is. A work
// item takes a row.
__kernel void pairs(__global double *pieces, uint n, uint rows, __global double *sums, ulong at)
{
	uint row = get_global_id(0);
	if (row >= rows)
		return;
	__global double *p = pieces + (ulong)row * n;
	for (; n > 1; n = (n + 1) / 2)
		for (uint i = 0; 2 * i < n; i++)
			p[i] = 2 * i + 1 < n ? p[2 * i] + p[2 * i + 1] : p[2 * i];
	sums[at + row] = p[0];
}

// Rows whose norm is above longest are scaled down to it.
__kernel void clip(__global float *x, ulong at, ulong n, __global const double *sums, float longest)
{
	if (COLUMN >= n)
		return;
	double norm = sqrt(sums[ENTRY] / (double)n) * sqrt((double)n);
	if (!(norm > (double)longest))
		return;
	float by = (float)((double)longest / norm);
	if (by != 1)
		x[at + ENTRY * n + COLUMN] = by * x[at + ENTRY * n + COLUMN];
}

// flags[row] is made 1 by an element that is not finite.
__kernel void infinite(__global const float *x, ulong at, ulong n, __global uint *flags, ulong first)
{
	if (COLUMN < n && (as_uint(x[at + ENTRY * n + COLUMN]) & 0x7f800000) == 0x7f800000)
		atomic_or(flags + first + ENTRY, 1u);
}

__kernel void zeros(__global uint *d, ulong at, ulong n)
{
	if (COLUMN < n)
		d[at + COLUMN] = 0;
}

// x of a length, where the square of the one it has is in sums.
__kernel void stretch(__global float *x, ulong at, ulong n, float length, __global const double *sums)
{
	if (COLUMN < n)
		x[at + COLUMN] = (float)((double)length / (sqrt(sums[0]) + 1e-7)) * x[at + COLUMN];
}
