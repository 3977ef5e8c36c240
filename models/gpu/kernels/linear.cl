// d = c0*x0 + c1*x1 + ... from the left, every product rounded, over n columns of each row. A step of 0 has one row
// serve all.
__kernel void lin(__global const uint *words, uint rows, uint n, uint terms, __global float *d, ulong at, ulong step,
	__global const float *x0, ulong at0, ulong step0, float c0, __global const float *x1, ulong at1, ulong step1, float c1,
	__global const float *x2, ulong at2, ulong step2, float c2, __global const float *x3, ulong at3, ulong step3, float c3)
{
	ulong i = COLUMN, r = ROW(words, rows);
	if (i >= n)
		return;
	float s = 0;
	if (terms > 0)
		s = c0 * x0[at0 + r * step0 + i];
	if (terms > 1)
		s = s + c1 * x1[at1 + r * step1 + i];
	if (terms > 2)
		s = s + c2 * x2[at2 + r * step2 + i];
	if (terms > 3)
		s = s + c3 * x3[at3 + r * step3 + i];
	d[at + r * step + i] = s;
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

__kernel void product(__global float *d, ulong at, ulong step, __global const float *a, ulong ata, ulong stepa,
	__global const float *b, ulong atb, ulong stepb, ulong n)
{
	if (COLUMN < n)
		d[at + ENTRY * step + COLUMN] = a[ata + ENTRY * stepa + COLUMN] * b[atb + ENTRY * stepb + COLUMN];
}

// d = x / by.
__kernel void divide(__global float *d, ulong at, __global const float *x, ulong atx, ulong n, float by)
{
	if (COLUMN < n)
		d[at + COLUMN] = x[atx + COLUMN] / by;
}

// d = x, whose rows are of a list.
__kernel void rows(__global const uint *words, uint list, __global float *d, ulong step, __global const float *x, ulong stepx)
{
	if (COLUMN < step)
		d[ENTRY * step + COLUMN] = x[ROW(words, list) * stepx + COLUMN];
}
