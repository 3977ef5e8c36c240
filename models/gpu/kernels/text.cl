// Models of text. A result over positions is [sample][position][channel] of an entry, and products over positions are
// those of product.cl.

// Windows of a text, which is held once: sample i begins with byte i. Groups go over bytes, samples and entries.
__kernel void gather_text(__global const uint *words, uint ids, uint sizes, uint most, __global const uchar *text, uint context,
	__global float *x)
{
	uint f = get_global_id(0), s = get_group_id(1), z = get_group_id(2);
	if (f < context && s < words[sizes + z])
		x[((ulong)z * most + s) * context + f] = (float)text[(ulong)words[ids + z * most + s] + f];
}

// The row of each byte. A work item takes a value of the result.
__kernel void embed(__global const uint *words, uint sizes, uint context, uint wide, __global const float *x, uint listx, ulong stepx,
	__global const float *params, uint list, ulong step, ulong at, __global float *y, ulong stepy)
{
	ulong i = COLUMN;
	if (i >= (ulong)words[sizes + ENTRY] * context * wide)
		return;
	uint b = (uint)(int)x[ROW(words, listx) * stepx + i / wide];
	y[ENTRY * stepy + i] = params[at + ROW(words, list) * step + (ulong)b * wide + i % wide];
}

// The gradient of the rows: samples, and the places of each, in order. A work item takes a value of a row.
__kernel void embed_back(__global const uint *words, uint sizes, uint context, uint wide, uint rows, __global const float *x, ulong stepx,
	__global const float *dy, ulong stepy, __global float *g, ulong at, ulong step)
{
	ulong i = COLUMN, places = (ulong)words[sizes + ENTRY] * context;
	if (i >= (ulong)rows * wide)
		return;
	uint row = (uint)(i / wide);
	float sum = 0;
	x += ENTRY * stepx;
	dy += ENTRY * stepy + i % wide;
	for (ulong p = 0; p < places; p++)
		if ((uint)(int)x[p] == row)
			sum = sum + dy[p * wide];
	g[at + ENTRY * step + i] = sum;
}

// h[t] = h[t-1] + z[t]*(c[t] - h[t-1]) from zero on, z being the logistic function (1 + tanh(x/2))/2 of what it was.
// A work item takes a unit of a sample.
__kernel void recur(__global const uint *words, uint sizes, uint steps, uint units, uint sequence, __global float *z,
	__global const float *c, __global float *h, ulong step, __global float *y, ulong stepy)
{
	ulong i = COLUMN, s = i / units, at = ENTRY * step + s * steps * units + i % units, to = ENTRY * stepy;
	if (s >= words[sizes + ENTRY])
		return;
	float before = 0;
	for (uint t = 0; t < steps; t++, at += units) {
		float open = 0.5f + 0.5f * tangent(z[at] / 2);
		before = before + open * (c[at] - before);
		z[at] = open;
		h[at] = before;
		if (sequence)
			y[to + (s * steps + t) * units + i % units] = before;
	}
	if (!sequence)
		y[to + i] = before;
}

// The way back, from the last position to the first: the gradients of what the products gave take the places of z and c.
__kernel void recur_back(__global const uint *words, uint sizes, uint steps, uint units, uint sequence, __global float *z,
	__global float *c, __global const float *h, ulong step, __global const float *dy, ulong stepy)
{
	ulong i = COLUMN, s = i / units, first = ENTRY * step + s * steps * units + i % units;
	if (s >= words[sizes + ENTRY])
		return;
	dy += ENTRY * stepy;
	float d = 0;
	for (uint t = steps; t-- > 0;) {
		ulong at = first + (ulong)t * units;
		float asked = sequence ? dy[(s * steps + t) * units + i % units] : dy[i];
		if (t + 1 == steps)
			d = asked;
		else if (sequence)
			d = d + asked;
		float open = z[at], before = t > 0 ? h[at - units] : 0, shut = 1 - open;
		z[at] = (d * (c[at] - before)) * (open * shut);
		c[at] = d * open;
		d = d * shut;
	}
}

// Attention. Of each sample there are q, k and v as [position][3*channels], and of the asked positions, the last ones,
// what the heads give as [asked][channels] and their weights as [head][asked][position].
typedef struct { uint steps, asked, channels, heads; } seen;

// The sum of sixteen lanes by halves.
float folded(float *lane)
{
	for (uint h = 8; h > 0; h /= 2)
		for (uint i = 0; i < h; i++)
			lane[i] = lane[i] + lane[i + h];
	return lane[0];
}

// The weights of an asked position for a head, softmax(q k' * scale) over what it sees and zero elsewhere, and what the
// head gives. A work item takes both.
__kernel void attend(__global const uint *words, uint sizes, uint shape, float scale, __global const float *qkv, __global float *weights,
	__global float *given, uint most)
{
	seen o = *(__global const seen *)(words + shape);
	uint a = o.asked, n = o.steps, c = o.channels, d = c / o.heads;
	ulong at = COLUMN, s = at / a / o.heads;
	uint i = (uint)(at % a), head = (uint)(at / a % o.heads), in = n - a + i + 1;
	if (s >= words[sizes + ENTRY])
		return;
	s += (ulong)ENTRY * most;
	qkv += s * n * 3 * c + head * d;
	weights += ((s * o.heads + head) * a + i) * n;
	given += (s * a + i) * c + head * d;
	__global const float *q = qkv + (ulong)(in - 1) * 3 * c;
	float top = -INFINITY, lane[16];
	for (uint t = 0; t < in; t++) {
		__global const float *k = qkv + (ulong)t * 3 * c + c;
		float x = 0;
		for (uint e = 0; e < d; e++) {
			float qe = q[e] * scale;
			x = fma(qe, k[e], x);
		}
		weights[t] = x;
		if (x > top)
			top = x;
	}
	for (uint l = 0; l < 16; l++)
		lane[l] = 0;
	for (uint t = 0; t < in; t++) {
		float x = weights[t] - top;
		x = x < -86.0f ? -86.0f : x;
		x = power_of_e(x);
		lane[t % 16] = lane[t % 16] + x;
		weights[t] = x;
	}
	float f = 1 / folded(lane);
	for (uint t = 0; t < n; t++)
		weights[t] = t < in ? weights[t] * f : 0;
	for (uint e = 0; e < d; e++) {
		float x = 0;
		for (uint t = 0; t < n; t++)
			x = fma(weights[t], qkv[(ulong)t * 3 * c + 2 * c + e], x);
		given[e] = x;
	}
}

// The gradients of the scores of an asked position for a head, from that g of what the head gave: with p = w*(g v')
// they are p - w*sum(p). A work item takes them.
__kernel void attend_scores(__global const uint *words, uint sizes, uint shape, __global const float *qkv, __global const float *weights,
	__global const float *g, __global float *scores, uint most)
{
	seen o = *(__global const seen *)(words + shape);
	uint a = o.asked, n = o.steps, c = o.channels, d = c / o.heads;
	ulong at = COLUMN, s = at / a / o.heads;
	uint i = (uint)(at % a), head = (uint)(at / a % o.heads), in = n - a + i + 1;
	if (s >= words[sizes + ENTRY])
		return;
	s += (ulong)ENTRY * most;
	qkv += s * n * 3 * c + 2 * c + head * d;
	weights += ((s * o.heads + head) * a + i) * n;
	scores += ((s * o.heads + head) * a + i) * n;
	g += (s * a + i) * c + head * d;
	float lane[16];
	for (uint l = 0; l < 16; l++)
		lane[l] = 0;
	for (uint t = 0; t < in; t++) {
		float x = 0;
		for (uint e = 0; e < d; e++)
			x = fma(g[e], qkv[(ulong)t * 3 * c + e], x);
		x = x * weights[t];
		lane[t % 16] = lane[t % 16] + x;
		scores[t] = x;
	}
	float sum = folded(lane);
	for (uint t = 0; t < n; t++)
		scores[t] = t < in ? scores[t] + -sum * weights[t] : 0;
}

// The gradients of q, k and v, with e those of the scores: q: e k * scale, zero where nobody asks; k: e' (q * scale);
// v: w' g. A work item takes one of the 3*channels of a position.
__kernel void attend_back(__global const uint *words, uint sizes, uint shape, float scale, __global const float *qkv, __global const float *weights,
	__global const float *g, __global const float *scores, __global float *dqkv, uint most)
{
	seen o = *(__global const seen *)(words + shape);
	uint a = o.asked, n = o.steps, c = o.channels, d = c / o.heads;
	ulong at = COLUMN, s = at / (3 * c) / n;
	uint t = (uint)(at / (3 * c) % n), j = (uint)(at % (3 * c)), of = j % c, head = of / d;
	if (s >= words[sizes + ENTRY])
		return;
	s += (ulong)ENTRY * most;
	qkv += s * n * 3 * c;
	weights += (s * o.heads + head) * a * n;
	scores += (s * o.heads + head) * a * n;
	g += s * a * c;
	float x = 0;
	if (j < c && t >= n - a) {
		scores += (ulong)(t - (n - a)) * n;
		for (uint i = 0; i < n; i++)
			x = fma(scores[i], qkv[(ulong)i * 3 * c + c + of], x);
		x = x * scale;
	} else if (j >= 2 * c) {
		for (uint i = 0; i < a; i++)
			x = fma(weights[(ulong)i * n + t], g[(ulong)i * c + of], x);
	} else if (j >= c) {
		for (uint i = 0; i < a; i++) {
			float q = qkv[(ulong)(n - a + i) * 3 * c + of] * scale;
			x = fma(scores[(ulong)i * n + t], q, x);
		}
	}
	dqkv[s * n * 3 * c + (ulong)t * 3 * c + j] = x;
}
