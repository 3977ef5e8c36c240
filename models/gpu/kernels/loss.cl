// The natural logarithm of s >= 1 by eight terms of the series of atanh.
double natural_log(double s)
{
	if (!(s < INFINITY))
		return NAN;
	ulong b = as_ulong(s);
	double m = as_double((b & 0xfffffffffffffUL) | 0x3fe0000000000000UL), e = (double)((int)(b >> 52) - 1022);
	if (m < 0.70710678118654752440) {
		m = 2 * m;
		e = e - 1;
	}
	double z = (m - 1) / (m + 1), z2 = z * z, p = 0;
	p = p * z2 + 1.0 / 15;
	p = p * z2 + 1.0 / 13;
	p = p * z2 + 1.0 / 11;
	p = p * z2 + 1.0 / 9;
	p = p * z2 + 1.0 / 7;
	p = p * z2 + 1.0 / 5;
	p = p * z2 + 1.0 / 3;
	p = p * z2 + 1.0;
	return e * 0.693147180559945309417232121458 + 2 * (z * p);
}

// Softmax and cross-entropy of a sample by a work item: its loss, whether the first of the largest logits is its
// label's and, with want, d = scale*(softmax - onehot) with scale = 1/samples. Block z of ids is that of list blocks.
__kernel void cross_entropy(__global const uint *words, uint ids, uint blocks, uint sizes, uint most, __global const ushort *labels, uint classes,
	__global const float *weights, uint weighs,
	__global const float *logits, uint listz, ulong stepz, __global float *d, uint want, __global float *losses, __global uint *hits)
{
	uint s = COLUMN, z = ENTRY, size = words[sizes + z];
	if (s >= size)
		return;
	ulong at = (ulong)z * most + s;
	__global const float *x = logits + ROW(words, listz) * stepz + (ulong)s * classes;
	uint id = words[ids + (uint)ROW(words, blocks) * most + s], label = labels[id], best = 0;
	float top = -INFINITY, lane[16], scale = 1.0f / (float)size;
	for (uint i = 0; i < 16; i++)
		lane[i] = 0;
	for (uint i = 0; i < classes; i++) {
		if (x[i] > top)
			top = x[i];
		if (x[i] > x[best])
			best = i;
	}
	for (uint i = 0; i < classes; i++) {
		float t = x[i] - top;
		t = t < -86.0f ? -86.0f : t;
		t = power_of_e(t);
		lane[i % 16] = lane[i % 16] + t;
		if (want)
			d[at * classes + i] = t;
	}
	for (uint h = 8; h > 0; h /= 2)
		for (uint i = 0; i < h; i++)
			lane[i] = lane[i] + lane[i + h];
	float weight = weighs ? weights[id] : 1.0f;
	losses[at] = (float)(natural_log((double)lane[0]) - (double)(x[label] - top)) * weight;
	hits[at] = best == label;
	if (!want)
		return;
	float f = scale / lane[0];
	for (uint i = 0; i < classes; i++)
		d[at * classes + i] = d[at * classes + i] * f;
	d[at * classes + label] = d[at * classes + label] - scale;
	for (uint i = 0; weighs && i < classes; i++)
		d[at * classes + i] = d[at * classes + i] * weight;
}

// Losses and hits of an entry are added to its sums: pieces of samples in order, in each from zero, in float64. A work
// item takes an entry.
__kernel void tally(__global const uint *words, uint sizes, uint entries, uint most, uint piece, __global const float *losses,
	__global const uint *hits, uint targets, __global double *sums, ulong at, __global ulong *right, ulong atr)
{
	uint z = get_global_id(0);
	if (z >= entries)
		return;
	uint size = words[sizes + z], target = words[targets + z];
	double sum = sums[at + target];
	ulong ok = right[atr + target];
	for (uint lo = 0; lo < size; lo += piece) {
		double part = 0;
		for (uint s = lo; s < min(size, lo + piece); s++) {
			part = part + (double)losses[(ulong)z * most + s];
			ok += hits[(ulong)z * most + s];
		}
		sum = sum + part;
	}
	sums[at + target] = sum;
	right[atr + target] = ok;
}

// The squared distance of results to samples, summed in float64, and with want d = 2*scale*(result - sample). A work
// item takes a sample.
__kernel void squared_distance(__global const uint *words, uint sizes, uint most, uint n, __global const float *x, uint listx, ulong stepx,
	__global const float *y, uint listy, ulong stepy, __global float *d, uint want, __global float *losses, __global uint *hits)
{
	uint s = COLUMN, z = ENTRY, size = words[sizes + z];
	if (s >= size)
		return;
	ulong at = (ulong)z * most + s;
	x += ROW(words, listx) * stepx + (ulong)s * n;
	y += ROW(words, listy) * stepy + (ulong)s * n;
	float scale = 2 * (1.0f / (float)size);
	double sum = 0;
	for (uint i = 0; i < n; i++) {
		float e = y[i] - x[i];
		sum = sum + (double)e * (double)e;
		if (want)
			d[at * n + i] = scale * e;
	}
	losses[at] = (float)sum;
	hits[at] = 0;
}

// The loss of a regression of a sample by a work item, its squared error, both means over the outputs in float64, and
// with want d = scale*slope with scale = 1/samples/outputs. Where huber, errors beyond 1 count in a line. Block z of ids
// is that of list blocks.
__kernel void regression(__global const uint *words, uint ids, uint blocks, uint sizes, uint most, __global const float *targets, uint outputs, uint huber,
	__global const float *y, uint listy, ulong stepy, __global float *d, uint want, __global float *losses, __global uint *hits, __global double *squares)
{
	uint s = COLUMN, z = ENTRY, size = words[sizes + z];
	if (s >= size)
		return;
	ulong at = (ulong)z * most + s;
	y += ROW(words, listy) * stepy + (ulong)s * outputs;
	targets += (ulong)words[ids + (uint)ROW(words, blocks) * most + s] * outputs;
	float scale = 1.0f / (float)size / (float)outputs;
	double loss = 0, all = 0;
	for (uint i = 0; i < outputs; i++) {
		float e = y[i] - targets[i], slope = 2 * e;
		double square = (double)e * (double)e;
		all = all + square;
		if (huber) {
			slope = e < -1.0f ? -1.0f : e > 1.0f ? 1.0f : e;
			loss = loss + (e < -1.0f || e > 1.0f ? fabs((double)e) - 0.5 : square / 2);
		} else
			loss = loss + square;
		if (want)
			d[at * outputs + i] = scale * slope;
	}
	losses[at] = (float)(loss / (double)outputs);
	squares[at] = all / (double)outputs;
	hits[at] = 0;
}

// Several classes of a sample, which may be in each of them, by a work item: the mean over the classes of the
// cross-entropy of the softmax of (0, y), as cross_entropy has it of two classes; the share of them that is wrong, where
// one is predicted with y above 0; a hit where none is; and with want d = scale*(sigmoid - target) with scale =
// 1/samples/classes. Block z of ids is that of list blocks.
__kernel void independent(__global const uint *words, uint ids, uint blocks, uint sizes, uint most, __global const float *targets, uint classes,
	__global const float *y, uint listy, ulong stepy, __global float *d, uint want, __global float *losses, __global uint *hits, __global double *shares)
{
	uint s = COLUMN, z = ENTRY, size = words[sizes + z], wrong = 0;
	if (s >= size)
		return;
	ulong at = (ulong)z * most + s;
	y += ROW(words, listy) * stepy + (ulong)s * classes;
	targets += (ulong)words[ids + (uint)ROW(words, blocks) * most + s] * classes;
	float scale = 1.0f / (float)size / (float)classes;
	double loss = 0;
	for (uint i = 0; i < classes; i++) {
		float x = y[i], top = -INFINITY;
		uint in = targets[i] == 1.0f;
		if (0.0f > top)
			top = 0.0f;
		if (x > top)
			top = x;
		float none = 0.0f - top, some = x - top;
		none = power_of_e(none < -86.0f ? -86.0f : none);
		some = power_of_e(some < -86.0f ? -86.0f : some);
		float sum = none + some;
		loss = loss + (double)(float)(natural_log((double)sum) - (double)((in ? x : 0.0f) - top));
		if ((x > 0.0f) != in)
			wrong++;
		if (want) {
			float f = scale / sum, g = some * f;
			d[at * classes + i] = in ? g - scale : g;
		}
	}
	losses[at] = (float)(loss / (double)classes);
	shares[at] = (double)wrong / (double)classes;
	hits[at] = wrong == 0;
}

// Squared errors of an entry are added to its sum as losses are by tally.
__kernel void tally_squares(__global const uint *words, uint sizes, uint entries, uint most, uint piece, __global const double *squares, uint targets,
	__global double *sums, ulong at)
{
	uint z = get_global_id(0);
	if (z >= entries)
		return;
	uint size = words[sizes + z], target = words[targets + z];
	double sum = sums[at + target];
	for (uint lo = 0; lo < size; lo += piece) {
		double part = 0;
		for (uint s = lo; s < min(size, lo + piece); s++)
			part = part + squares[(ulong)z * most + s];
		sum = sum + part;
	}
	sums[at + target] = sum;
}
