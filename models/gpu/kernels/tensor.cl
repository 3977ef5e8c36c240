// Products of a model by tensor cores: gemm and conv_tiles of other arithmetics, tf32 and, with BF16_PRODUCTS, bf16, by
// CUDA alone. Operands are rounded as they are loaded; a product of two is exact in float32, and sums are float32. Two
// warps of a group have a tile of 64 x 64 elements.

// A word holds one element of tf32, or two of bf16 that follow each other in k, the first below. Then a step of mma.sync
// takes 16 lines by 8 words and 8 columns by 8 words in either arithmetic, and the lanes of a warp hold of them, with
// g = lane/4 and c = lane%4:
//
//	left    word c of line g, word c of line g+8, word c+4 of line g, word c+4 of line g+8
//	right   word c of column g, word c+4 of column g
//	sums    line g in columns 2c and 2c+1, line g+8 in columns 2c and 2c+1
#ifdef BF16_PRODUCTS
#define EACH 2u
#define MMA "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
INLINE uint word(float low, float high)
{
	uint w;
	__asm__("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(w) : "f"(high), "f"(low));
	return w;
}
#else
#define EACH 1u
#define MMA "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
INLINE uint word(float low, float high)
{
	uint w;
	__asm__("cvt.rna.tf32.f32 %0, %1;" : "=r"(w) : "f"(low));
	return w;
}
#endif

#define WORDS 16u // of a tile of gemm, in k
#define STEP 8u   // of mma.sync, and of a tile of a convolution
#define APART 8u  // more words in a row of a tile than lines, so that the lanes of a warp meet different banks

// The sums of 16 lines by 8 columns take a step of k.
INLINE float4 multiply_words(float4 s, const uint *a, uint b0, uint b1)
{
	float x, y, z, w;
	__asm__ volatile(MMA " {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%10,%11,%12,%13};"
		: "=f"(x), "=f"(y), "=f"(z), "=f"(w)
		: "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(s.x), "f"(s.y), "f"(s.z), "f"(s.w));
	return (float4)(x, y, z, w);
}

INLINE float which(float4 s, uint e) { return e < 2 ? e == 0 ? s.x : s.y : e == 2 ? s.z : s.w; }

// What a lane holds of the left operand: lines of a tile whose words are wide apart, from its own place on.
INLINE void left_words(uint *a, __local const uint *tile, uint wide)
{
	a[0] = tile[0];
	a[1] = tile[8];
	a[2] = tile[4 * wide];
	a[3] = tile[4 * wide + 8];
}

// WORDS words of k by SIDE lines of an operand, as load has them.
INLINE void load_words(__local uint *tile, __global const float *x, uint down, uint across, uint lines, uint deep, uint t)
{
	for (uint e = t; e < SIDE * WORDS; e += ITEMS) {
		uint i = across == 1 ? e / WORDS : e % SIDE, w = across == 1 ? e % WORDS : e / SIDE, d = w * EACH;
		__global const float *at = x + (ulong)i * down + (ulong)d * across;
		float low = i < lines && d < deep ? at[0] : 0, high = 0;
		if (EACH == 2 && i < lines && d + 1 < deep)
			high = at[across];
		tile[w * (SIDE + APART) + i] = word(low, high);
	}
}

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void gemm_tensor(__global const uint *words, uint params, __global const float *a, __global const float *b, __global float *c,
	__global const float *bias, __global const float *gate)
{
	__local uint as[WORDS * (SIDE + APART)], bs[WORDS * (SIDE + APART)];
	__global const shape *p = (__global const shape *)(words + params);
	uint z = get_group_id(2), t = get_local_id(0), m = p->m, n = p->n, k = p->k;
	if (p->sized == 1)
		m = words[p->sizes + z];
	if (p->sized == 2)
		k = words[p->sizes + z];
	uint row = get_group_id(1) * SIDE, col = get_group_id(0) * SIDE;
	if (row >= m)
		return;
	uint high = t / 32 * 32, g = t % 32 / 4, mine = t % 4;
	a += begin(words, &p->a, z);
	b += begin(words, &p->b, z);
	c += begin(words, &p->c, z);
	float4 sum[16];
	#pragma unroll
	for (uint i = 0; i < 16; i++)
		sum[i] = 0;
	uint ad = p->a.down, ax = p->a.across, bd = p->b.down, bx = p->b.across;
	for (uint from = 0; from < k; from += WORDS * EACH) {
		uint deep = min(WORDS * EACH, k - from);
		barrier(CLK_LOCAL_MEM_FENCE);
		load_words(as, a + (ulong)row * ad + (ulong)from * ax, ad, ax, m - row, deep, t);
		load_words(bs, b + (ulong)col * bx + (ulong)from * bd, bx, bd, n - col, deep, t);
		barrier(CLK_LOCAL_MEM_FENCE);
		#pragma unroll
		for (uint w = 0; w < WORDS; w += STEP) {
			uint left[2][4], at = (w + mine) * (SIDE + APART) + g;
			left_words(left[0], as + at + high, SIDE + APART);
			left_words(left[1], as + at + high + 16, SIDE + APART);
			#pragma unroll
			for (uint j = 0; j < 8; j++) {
				uint b0 = bs[at + 8 * j], b1 = bs[at + 4 * (SIDE + APART) + 8 * j];
				sum[j] = multiply_words(sum[j], left[0], b0, b1);
				sum[8 + j] = multiply_words(sum[8 + j], left[1], b0, b1);
			}
		}
	}
	#pragma unroll
	for (uint i = 0; i < 16; i++) {
		#pragma unroll 1
		for (uint e = 0; e < 4; e++) {
			uint r = row + high + i / 8 * 16 + g + e / 2 * 8, q = col + i % 8 * 8 + 2 * mine + e % 2;
			if (r < m && q < n)
				finish(words, p, z, r, q, which(sum[i], e), c, bias, gate);
		}
	}
}

// A tap outside an image is zero here. Lines are pixels and columns channels, so that few channels leave nothing empty:
// a group has 8*high channels of 512/high pixels, and each warp half of its 32 parts of 16 x 8.
__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void conv_tensor(__global const uint *words, uint shape, uint sizes, uint back, uint high, __global const float *x, uint listx, ulong stepx,
	__global const float *params, uint list, ulong step, ulong atw, ulong atb, uint biased, uint relu, __global const float *gate, uint gated,
	__global float *y, ulong stepy)
{
	__local uint as[STEP * (SIDE * 8 + APART)], bs[STEP * (SIDE + APART)];
	__local uint4 taps[STEP * EACH]; // of the operand: channel's start, row and column from that of the pixel
	__global const filter *f = (__global const filter *)(words + shape);
	uint z = get_group_id(2) / f->groups, group = get_group_id(2) % f->groups, t = get_local_id(0);
	uint deep = f->in / f->groups, many = f->out / f->groups, kk = f->side * f->side;
	uint m = back ? deep : many, channels = back ? many : deep, k = channels * kk;
	uint width = back ? f->w : f->ow, plane = width * (back ? f->h : f->oh), xh = back ? f->oh : f->h, xw = back ? f->ow : f->w;
	uint wide = SIDE * 8 / high, row = get_group_id(1) * 8 * high, col = get_group_id(0) * wide, n = words[sizes + z] * plane;
	if (col >= n)
		return;
	ulong p = (list == NONE ? z : words[list + z]) * step;
	__global const float *w = params + p + atw + (ulong)group * many * deep * kk + (ulong)row * (back ? kk : k);
	x += (listx == NONE ? z : words[listx + z]) * stepx + (ulong)group * channels * xh * xw;
	uint apart = (back ? f->out : f->in) * xh * xw; // samples of the operand
	uint first = t / 32 * 16, g = t % 32 / 4, mine = t % 4;
	float4 sum[16];
	#pragma unroll
	for (uint i = 0; i < 16; i++)
		sum[i] = 0;
	uint thin = back && f->stride > 1; // taps meet every stride-th pixel
	for (uint from = 0; from < k; from += STEP * EACH) {
		uint steps = min(STEP * EACH, k - from);
		barrier(CLK_LOCAL_MEM_FENCE);
		if (t < STEP * EACH) {
			uint i = (from + t) % kk / f->side, j = (from + t) % f->side;
			taps[t] = (uint4)((from + t) / kk * xh * xw, back ? f->pad - i : i - f->pad, back ? f->pad - j : j - f->pad, 0);
		}
		for (uint e = t; e < 8 * high * STEP; e += ITEMS) {
			uint r = e / STEP, d = e % STEP * EACH;
			float of[2] = {0, 0};
			#pragma unroll
			for (uint i = 0; i < EACH; i++) {
				uint at = from + d + i;
				if (row + r < m && d + i < steps)
					of[i] = w[back ? (ulong)(at / kk) * deep * kk + r * kk + at % kk : (ulong)r * k + at];
			}
			bs[e % STEP * (SIDE + APART) + r] = word(of[0], of[1]);
		}
		barrier(CLK_LOCAL_MEM_FENCE);
		for (uint e = t; e < wide; e += ITEMS) {
			uint q = min(col + e, n - 1), left = q % plane, stride = back ? 1 : f->stride, oy = left / width * stride, ox = left % width * stride;
			__global const float *image = x + (ulong)(q / plane) * apart;
			for (uint d = 0; d < STEP; d++) {
				float of[2] = {0, 0};
				#pragma unroll
				for (uint i = 0; i < EACH; i++) {
					uint at = d * EACH + i, iy = oy + taps[at].y, ix = ox + taps[at].z; // below zero is beyond all
					if (thin) {
						iy = (int)iy >= 0 && iy % f->stride == 0 ? iy / f->stride : xh;
						ix = (int)ix >= 0 && ix % f->stride == 0 ? ix / f->stride : xw;
					}
					if (at < steps && iy < xh && ix < xw)
						of[i] = image[taps[at].x + iy * xw + ix];
				}
				as[d * (SIDE * 8 + APART) + e] = word(of[0], of[1]);
			}
		}
		barrier(CLK_LOCAL_MEM_FENCE);
		#pragma unroll
		for (uint i = 0; i < 16; i++) {
			uint left[4], part = first + i, at = mine * (SIDE + APART) + part % high * 8 + g;
			left_words(left, as + mine * (SIDE * 8 + APART) + part / high * 16 + g, SIDE * 8 + APART);
			sum[i] = multiply_words(sum[i], left, bs[at], bs[at + 4 * (SIDE + APART)]);
		}
	}
	#pragma unroll
	for (uint i = 0; i < 16; i++) {
		#pragma unroll 1
		for (uint e = 0; e < 4; e++) {
			uint part = first + i, q = col + part / high * 16 + g + e / 2 * 8, o = row + part % high * 8 + 2 * mine + e % 2;
			if (o >= m || q >= n)
				continue;
			ulong at = z * stepy + ((ulong)(q / plane) * m * f->groups + group * m + o) * plane + q % plane;
			y[at] = passed(which(sum[i], e), biased ? params + p + atb + group * m + o : 0, relu, gated ? gate + at : 0);
		}
	}
}
