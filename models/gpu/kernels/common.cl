// What all kernels share. Products are rounded before they are added: only fma() fuses.
#pragma OPENCL FP_CONTRACT OFF
#pragma OPENCL EXTENSION cl_khr_fp64 : enable

#define NONE 0xFFFFFFFFu
#define INLINE static inline __attribute__((always_inline))

// Work items go along columns, groups of dimension 1 along rows. ROW is the row of a list of the words, or the group's
// own number.
#define COLUMN ((ulong)get_global_id(0))
#define ENTRY ((uint)get_group_id(1))
#define ROW(words, list) ((ulong)((list) == NONE ? ENTRY : (words)[(list) + ENTRY]))

// Some pieces of memory that words number.
#define MEMORIES 8
#define PIECES __global float *m0, __global float *m1, __global float *m2, __global float *m3, \
	__global float *m4, __global float *m5, __global float *m6, __global float *m7
#define LIST_OF_PIECES {m0, m1, m2, m3, m4, m5, m6, m7}

// Tiles of products: a group of ITEMS work items computes SIDE x SIDE elements, each of them 8 x 8, DEPTH steps of k at a
// time from local memory. An element is one chain of fma in the order of k.
#define SIDE 64u
#define DEPTH 16u
#define SHALLOW 8u // the same of convolutions, whose tiles may be broader
#define ITEMS 64

float8 get8(__local const float *x) { return (float8)(x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]); }

void put8(float *d, float8 v)
{
	d[0] = v.s0;
	d[1] = v.s1;
	d[2] = v.s2;
	d[3] = v.s3;
	d[4] = v.s4;
	d[5] = v.s5;
	d[6] = v.s6;
	d[7] = v.s7;
}

float8 fma8(float a, float8 b, float8 c)
{
	return (float8)(fma(a, b.s0, c.s0), fma(a, b.s1, c.s1), fma(a, b.s2, c.s2), fma(a, b.s3, c.s3), fma(a, b.s4, c.s4),
		fma(a, b.s5, c.s5), fma(a, b.s6, c.s6), fma(a, b.s7, c.s7));
}

// The sums of 8 x 8 elements take one step of k.
void multiply(float8 *sum, __local const float *a, __local const float *b)
{
	float8 right = get8(b);
	#pragma unroll
	for (uint i = 0; i < 8; i++)
		sum[i] = fma8(a[i], right, sum[i]);
}

// Steps of k by SIDE lines of an operand: line i of step d lies at i*down + d*across. Missing ones are zero. Neighbours
// read neighbours.
void load(__local float *tile, __global const float *x, uint down, uint across, uint lines, uint deep, uint t)
{
	for (uint e = t; e < SIDE * DEPTH; e += ITEMS) {
		uint i = across == 1 ? e / DEPTH : e % SIDE, d = across == 1 ? e % DEPTH : e / SIDE;
		tile[d * SIDE + i] = i < lines && d < deep ? x[(ulong)i * down + (ulong)d * across] : 0;
	}
}

// An operand of entry z begins at element at + list[z]*step; element (i, j) lies i*down + j*across behind.
typedef struct { ulong at, step; uint list, down, across, there; } operand;

// Of products. sized is 1 where each entry has m of its own, 2 where it has k.
typedef struct { uint m, n, k, sizes, sized, relu, add, factors; operand a, b, c, bias, gate; } shape;

ulong begin(__global const uint *words, __global const operand *o, uint z)
{
	return o->at + (o->list == NONE ? z : words[o->list + z]) * o->step;
}

// Element (r, q) of entry z's result takes the sum s: + bias, zero where the gate is not above zero; with add
// fma(factor, s, what is there); max(0, .).
INLINE void finish(__global const uint *words, __global const shape *p, uint z, uint r, uint q, float s, __global float *c,
	__global const float *bias, __global const float *gate)
{
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

// Convolutions. Channels are those of all groups of the convolution; weights are [out][in/groups][kernel][kernel].
typedef struct { uint in, h, w, out, side, stride, pad, oh, ow, groups; } filter;

// What becomes of an element of a convolution: + bias, max(0, .), or zero where the gate is not above zero. Neither is
// there where it is 0.
INLINE float passed(float v, __global const float *bias, uint relu, __global const float *gate)
{
	if (bias)
		v = v + *bias;
	if (relu && v < 0)
		v = 0;
	if (gate && !(*gate > 0))
		v = 0;
	return v;
}
