// Batch normalisation. Of each of 32 samples of a block there is a float32 sum over pixels, then over blocks; the 32
// are added in float64. Seven numbers of each channel are kept: mean, inverse deviation, a and b of y = a*x + b, and k,
// c, d of the way back.

#define KEPT 7

// Sums of lanes: of x, of (x-mean)^2, or of g and of g*(x-mean). A work item takes a lane of a channel; lanes are
// [entry][2][channel][32].
__kernel void norm_lanes(__global const uint *words, uint sizes, uint channels, uint plane, uint what, uint rectified, __global const float *x,
	uint listx, ulong stepx, __global const float *dy, ulong stepy, __global const float *kept, __global float *lanes)
{
	uint c = get_global_id(0) / 32, l = get_global_id(0) % 32, n = words[sizes + ENTRY];
	if (c >= channels)
		return;
	kept += (ulong)ENTRY * KEPT * channels + c;
	float mean = kept[0], a = kept[2 * channels], b = kept[3 * channels], floor = rectified ? 0 : -INFINITY, s = 0, t = 0;
	for (uint i = l; i < n; i += 32)
		for (uint q = 0; q < plane; q++) {
			ulong at = ((ulong)i * channels + c) * plane + q;
			float v = x[ROW(words, listx) * stepx + at];
			if (what == 0)
				s = s + v;
			if (what == 1) {
				float d = v - mean;
				s = s + d * d;
			}
			if (what == 2) {
				float g = a * v + b > floor ? dy[ENTRY * stepy + at] : 0;
				s = s + g;
				t = t + g * (v - mean);
			}
		}
	lanes[((ulong)ENTRY * 2 * channels + c) * 32 + l] = s;
	lanes[((ulong)ENTRY * 2 * channels + channels + c) * 32 + l] = t;
}

double fold(__global const float *lanes)
{
	double t = 0;
	for (uint l = 0; l < 32; l++)
		t = t + (double)lanes[l];
	return t;
}

__kernel void norm_mean(__global const uint *words, uint sizes, uint channels, uint plane, __global const float *lanes, __global float *kept)
{
	uint c = COLUMN;
	if (c < channels)
		kept[(ulong)ENTRY * KEPT * channels + c] = (float)(fold(lanes + ((ulong)ENTRY * 2 * channels + c) * 32) / (double)(words[sizes + ENTRY] * plane));
}

// The inverse deviation, of the batch's own squares or of given statistics, which own ones are brought into with a
// momentum; and a and b.
__kernel void norm_factors(__global const uint *words, uint sizes, uint channels, uint plane, __global const float *lanes, __global float *kept,
	__global const float *params, uint list, ulong step, ulong atscale, ulong atshift, __global float *stats, ulong ats, uint lists, ulong steps,
	uint mean, uint variance, uint given, uint kept_running, float momentum, ulong epsilon)
{
	uint c = COLUMN;
	if (c >= channels)
		return;
	kept += (ulong)ENTRY * KEPT * channels + c;
	__global float *m = stats + ats + ROW(words, lists) * steps + mean + c, *v = stats + ats + ROW(words, lists) * steps + variance + c;
	float inverse;
	if (given) {
		kept[0] = *m;
		inverse = (float)(1 / sqrt((double)*v + as_double(epsilon)));
	} else {
		double square = fold(lanes + ((ulong)ENTRY * 2 * channels + c) * 32), count = (double)(words[sizes + ENTRY] * plane);
		inverse = (float)(1 / sqrt(square / count + as_double(epsilon)));
		if (kept_running) {
			float unbiased = (float)(square / (count - 1));
			*m = (1 - momentum) * *m + momentum * kept[0];
			*v = (1 - momentum) * *v + momentum * unbiased;
		}
	}
	__global const float *p = params + ROW(words, list) * step;
	float a = p[atscale + c] * inverse;
	kept[channels] = inverse;
	kept[2 * channels] = a;
	kept[3 * channels] = p[atshift + c] - a * kept[0];
}

__kernel void norm_apply(__global const uint *words, uint channels, uint plane, uint rectified, __global const float *x, uint listx, ulong stepx,
	__global const float *kept, __global float *y, ulong stepy)
{
	if (COLUMN >= stepy)
		return;
	kept += (ulong)ENTRY * KEPT * channels + COLUMN / plane % channels;
	float v = kept[2 * channels] * x[ROW(words, listx) * stepx + COLUMN] + kept[3 * channels];
	y[ENTRY * stepy + COLUMN] = rectified && v < 0 ? 0 : v;
}

// Gradients of scale and shift, and k, c, d: with g = dy*scale and xhat = (x-mean)*inverse, dx = inverse*(g - mean(g) -
// xhat*mean(g*xhat)).
__kernel void norm_back_factors(__global const uint *words, uint sizes, uint channels, uint plane, __global const float *lanes, __global float *kept,
	__global const float *params, uint list, ulong step, ulong atscale, __global float *g, ulong atg, ulong stepg, ulong gscale, ulong gshift)
{
	uint c = COLUMN;
	if (c >= channels)
		return;
	kept += (ulong)ENTRY * KEPT * channels + c;
	float inverse = kept[channels], weight = params[ROW(words, list) * step + atscale + c];
	double count = (double)(words[sizes + ENTRY] * plane), sd = fold(lanes + ((ulong)ENTRY * 2 * channels + c) * 32);
	double sx = fold(lanes + ((ulong)ENTRY * 2 * channels + channels + c) * 32) * (double)inverse, factor = (double)weight * (double)inverse;
	g[atg + ENTRY * stepg + gshift + c] = (float)sd;
	g[atg + ENTRY * stepg + gscale + c] = (float)sx;
	kept[4 * channels] = weight * inverse;
	kept[5 * channels] = (float)(-factor * (double)inverse * sx / count);
	kept[6 * channels] = (float)(-factor * sd / count);
}

__kernel void norm_back(__global const uint *words, uint sizes, uint channels, uint plane, uint rectified, __global const float *x, ulong stepx,
	__global float *dy, ulong stepy, __global const float *kept)
{
	ulong e = COLUMN;
	if (e >= (ulong)words[sizes + ENTRY] * channels * plane)
		return;
	kept += (ulong)ENTRY * KEPT * channels + e / plane % channels;
	float v = x[ENTRY * stepx + e], floor = rectified ? 0 : -INFINITY;
	float g = kept[2 * channels] * v + kept[3 * channels] > floor ? dy[ENTRY * stepy + e] : 0;
	dy[ENTRY * stepy + e] = kept[4 * channels] * g + kept[5 * channels] * (v - kept[0]) + kept[6 * channels];
}

// sums = sums + x in float64; d = sums/n.
__kernel void stats_add(__global double *sums, ulong at, __global const float *x, ulong n)
{
	if (COLUMN < n)
		sums[at + COLUMN] = sums[at + COLUMN] + (double)x[COLUMN];
}

__kernel void stats_mean(__global float *d, ulong at, __global const double *sums, ulong n, uint batches)
{
	if (COLUMN < n)
		d[at + COLUMN] = (float)(sums[COLUMN] / (double)batches);
}
