// Layer normalisation: sixteen work items take a sample, each every sixteenth value, and add their sums by halves. Mean
// and inverse deviation of a sample are kept for the way back, [entry][sample][2].
#define SAMPLES 4u // of a group

float halves(__local float *lane, float v)
{
	uint t = get_local_id(0), l = t % 16;
	barrier(CLK_LOCAL_MEM_FENCE);
	lane[t] = v;
	for (uint h = 8; h > 0; h /= 2) {
		barrier(CLK_LOCAL_MEM_FENCE);
		if (l < h)
			lane[t] = lane[t] + lane[t + h];
	}
	barrier(CLK_LOCAL_MEM_FENCE);
	return lane[t - l];
}

__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void layer_norm(__global const uint *words, uint sizes, uint most, uint n, __global const float *x, uint listx, ulong stepx,
	__global const float *params, uint list, ulong step, ulong scale, ulong shift, __global float *kept, __global float *y, ulong stepy, ulong epsilon)
{
	__local float lane[64];
	uint t = get_local_id(0), s = get_group_id(0) * SAMPLES + t / 16, last = s < words[sizes + ENTRY] ? n : 0;
	float sum = 0, square = 0;
	x += ROW(words, listx) * stepx + (ulong)s * n;
	for (uint i = t % 16; i < last; i += 16)
		sum = sum + x[i];
	float mean = (float)((double)halves(lane, sum) / (double)n);
	for (uint i = t % 16; i < last; i += 16) {
		float d = x[i] - mean;
		square = square + d * d;
	}
	float inverse = (float)(1 / sqrt((double)halves(lane, square) / (double)n + as_double(epsilon)));
	params += ROW(words, list) * step;
	y += ENTRY * stepy + (ulong)s * n;
	for (uint i = t % 16; i < last; i += 16)
		y[i] = ((x[i] - mean) * inverse) * params[scale + i] + params[shift + i];
	if (last > 0 && t % 16 == 0) {
		kept[2 * ((ulong)ENTRY * most + s)] = mean;
		kept[2 * ((ulong)ENTRY * most + s) + 1] = inverse;
	}
}

// dy = inverse*((g - mean(g)) - xhat*mean(g*xhat)) with g = dy*scale.
__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void layer_norm_back(__global const uint *words, uint sizes, uint most, uint n, __global const float *x, ulong stepx,
	__global const float *params, uint list, ulong step, ulong scale, __global const float *kept, __global float *dy, ulong stepy)
{
	__local float lane[64];
	uint t = get_local_id(0), s = get_group_id(0) * SAMPLES + t / 16, last = s < words[sizes + ENTRY] ? n : 0;
	float sum = 0, product = 0, mean = 0, inverse = 0;
	if (last > 0) {
		mean = kept[2 * ((ulong)ENTRY * most + s)];
		inverse = kept[2 * ((ulong)ENTRY * most + s) + 1];
	}
	x += ENTRY * stepx + (ulong)s * n;
	dy += ENTRY * stepy + (ulong)s * n;
	params += ROW(words, list) * step + scale;
	for (uint i = t % 16; i < last; i += 16) {
		float g = dy[i] * params[i];
		sum = sum + g;
		product = product + g * ((x[i] - mean) * inverse);
	}
	sum = (float)((double)halves(lane, sum) / (double)n);
	product = (float)((double)halves(lane, product) / (double)n);
	for (uint i = t % 16; i < last; i += 16)
		dy[i] = inverse * ((dy[i] * params[i] - sum) - ((x[i] - mean) * inverse) * product);
}

// The gradient of the scale: samples in order. A work item takes a column.
__kernel void layer_norm_scale(__global const uint *words, uint sizes, uint most, uint n, __global const float *x, ulong stepx,
	__global const float *dy, ulong stepy, __global const float *kept, __global float *g, ulong at, ulong step)
{
	uint i = COLUMN;
	if (i >= n)
		return;
	float d = 0;
	for (uint s = 0; s < words[sizes + ENTRY]; s++) {
		__global const float *k = kept + 2 * ((ulong)ENTRY * most + s);
		d = d + dy[ENTRY * stepy + (ulong)s * n + i] * ((x[ENTRY * stepx + (ulong)s * n + i] - k[0]) * k[1]);
	}
	g[at + ENTRY * step + i] = d;
}
