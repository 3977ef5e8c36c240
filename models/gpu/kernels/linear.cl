ulong long_of(__global const uint *words) { return words[0] | (ulong)words[1] << 32; }

// Four columns, of which some are there.
float4 columns(__global const float *x, uint live)
{
	if (live == 4)
		return (float4)(x[0], x[1], x[2], x[3]);
	return (float4)(x[0], live > 1 ? x[1] : 0, live > 2 ? x[2] : 0, 0);
}

void put_columns(__global float *d, float4 v, uint live)
{
	d[0] = v.x;
	if (live > 1)
		d[1] = v.y;
	if (live > 2)
		d[2] = v.z;
	if (live > 3)
		d[3] = v.w;
}

// The functions of engine.Map, numbered as there.
float mapped(float x, uint fn)
{
	if (fn == 1)
		return x > 0 ? 1 : x < 0 ? -1 : x;
	if (fn == 2)
		return as_float(as_uint(x) & 0x7fffffffu);
	if (fn == 3)
		return x * x;
	if (fn == 4)
		return x > 0 ? sqrt(x) : x < 0 ? 0 : x;
	if (fn == 5)
		return 1 / x;
	if (fn == 6)
		return x > 1 ? 1 : x < -1 ? -1 : x;
	return x;
}

// d = fn(c0*x0 + c1*x1 + ...)*by, from the left, every product rounded; a value where there are no terms, and the bits
// of the only one where their number says NONE; A work item takes four
// columns through the turns of a chain: pairs of a programme and a row. Words of a programme are as statements.go writes
// them; places are a piece, an element and what rows are apart.
__kernel void statements(__global const uint *words, uint ends, uint turns, ulong n, PIECES)
{
	__global float *m[MEMORIES] = LIST_OF_PIECES;
	ulong i = COLUMN * 4;
	if (i >= n)
		return;
	uint live = (uint)min((ulong)4, n - i);
	for (uint k = words[ends + ENTRY]; k < words[ends + ENTRY + 1]; k++) {
		__global const uint *p = words + words[turns + 2 * k];
		ulong row = words[turns + 2 * k + 1];
		uint count = *p++;
		for (uint j = 0; j < count; j++) {
			bool bits = p[0] == NONE;
			uint terms = bits ? 1 : p[0] & 0xffffff, fn = bits ? 0 : p[0] >> 24 & 15;
			__global const uint *by = !bits && p[0] >> 28 & 1 ? p + 6 : 0;
			float4 s = as_float(p[1]);
			__global float *d = m[p[2]] + long_of(p + 3) + row * p[5] + i;
			p += by ? 10 : 6;
			for (uint t = 0; t < terms; t++, p += 5) {
				float4 x = columns(m[p[1]] + long_of(p + 2) + row * p[4] + i, live);
				float4 c = as_float(p[0]) * x;
				s = bits ? x : t == 0 ? c : s + c;
			}
			if (fn != 0)
				s = (float4)(mapped(s.x, fn), mapped(s.y, fn), mapped(s.z, fn), mapped(s.w, fn));
			if (by)
				s = s * columns(m[by[0]] + long_of(by + 1) + row * by[3] + i, live);
			put_columns(d, s, live);
		}
	}
}

#define BF16 1u
#define INT8 2u
#define DEEPEST 40 // of a stack: the logarithm of any number of sources

// d = the sum of a tree, over by where that is not 0. Ops are as postfix in sum.go lists them: a piece of memory and a
// place in it, or NONE for the sum of the two on top of the stack. A code rounds every source, sum and the result. A
// work item takes a column, a group a block.
__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void tree(__global const uint *words, uint ops, uint count, uint code, float by, ulong n, __global float *d, ulong at, PIECES)
{
	__local float block[64];
	__global float *m[MEMORIES] = LIST_OF_PIECES;
	float stack[DEEPEST], v = 0;
	uint deep = 0, lane = get_local_id(0);
	ulong i = COLUMN;
	for (uint k = 0; k <= count; k++) {
		__global const uint *op = words + ops + 3 * k;
		if (k == count) {
			v = by != 0 ? stack[0] / by : stack[0];
			deep = 0;
		} else if (op[0] == NONE) {
			deep -= 2;
			v = stack[deep] + stack[deep + 1];
		} else
			v = i < n ? m[op[0]][long_of(op + 1) + i] : 0;
		if (code == BF16)
			v = to_bf16(v);
		if (code == INT8) {
			double top = 0;
			barrier(CLK_LOCAL_MEM_FENCE);
			block[lane] = v;
			barrier(CLK_LOCAL_MEM_FENCE);
			for (uint j = 0; j < 64; j++)
				top = top != top ? top : higher(top, block[j]);
			v = to_int8(v, top);
		}
		stack[deep++] = v;
	}
	if (i < n)
		d[at + i] = v;
}

// d = a + c[row]*b, the product rounded; max(0, .) of it with relu. Rows of d are entries, those of a and b lists of
// the words, where the factors lie too.
__kernel void spread(__global const uint *words, uint factors, ulong n, uint relu, __global float *d, ulong step,
	__global const float *a, ulong ata, uint lista, ulong stepa, __global const float *b, ulong atb, uint listb, ulong stepb)
{
	ulong i = COLUMN;
	if (i >= n)
		return;
	float c = as_float(words[factors + ENTRY]);
	float s = a[ata + ROW(words, lista) * stepa + i] + c * b[atb + ROW(words, listb) * stepb + i];
	if (relu && s < 0)
		s = 0;
	d[ENTRY * step + i] = s;
}

__kernel void fill(__global float *d, ulong at, ulong step, ulong n, float value)
{
	if (COLUMN < n)
		d[at + ENTRY * step + COLUMN] = value;
}

__kernel void move(__global float *d, ulong at, ulong step, __global const float *x, ulong atx, ulong stepx, ulong n)
{
	if (COLUMN < n)
		d[at + ENTRY * step + COLUMN] = x[atx + ENTRY * stepx + COLUMN];
}

// d = x in columns of lists of the words; NONE is all columns in order.
__kernel void copy_columns(__global const uint *words, uint to, uint from, uint n, __global float *d, ulong at, ulong step,
	__global const float *x, ulong atx, ulong stepx)
{
	ulong i = COLUMN;
	if (i >= n)
		return;
	ulong put = to == NONE ? i : words[to + i], get = from == NONE ? i : words[from + i];
	d[at + ENTRY * step + put] = x[atx + ENTRY * stepx + get];
}

__kernel void product(__global float *d, ulong at, ulong step, __global const float *a, ulong ata, ulong stepa,
	__global const float *b, ulong atb, ulong stepb, ulong n)
{
	if (COLUMN < n)
		d[at + ENTRY * step + COLUMN] = a[ata + ENTRY * stepa + COLUMN] * b[atb + ENTRY * stepb + COLUMN];
}

// d = x, whose rows are of a list.
__kernel void rows(__global const uint *words, uint list, __global float *d, ulong step, __global const float *x, ulong stepx)
{
	if (COLUMN < step)
		d[ENTRY * step + COLUMN] = x[ROW(words, list) * stepx + COLUMN];
}

// d = a*x + b*y, each product rounded; a*x alone where only says so.
__kernel void blend(__global float *d, ulong at, float a, __global const float *x, ulong atx, float b, __global const float *y, ulong aty,
	uint only, ulong n)
{
	ulong i = COLUMN;
	if (i >= n)
		return;
	float s = a * x[atx + i];
	if (!only)
		s = s + b * y[aty + i];
	d[at + i] = s;
}
