// Samples of many entries: groups go over features, samples and entries. Words hold for each entry its number of
// samples, and their ids.

__kernel void gather_bytes(__global const uint *words, uint ids, uint sizes, uint most, __global const uchar *pixels,
	__global const float *tables, uint features, uint plane, __global float *x)
{
	uint f = get_global_id(0), s = get_group_id(1), z = get_group_id(2);
	if (f < features && s < words[sizes + z])
		x[((ulong)z * most + s) * features + f] = tables[f / plane * 256 + pixels[(ulong)words[ids + z * most + s] * features + f]];
}

__kernel void gather_values(__global const uint *words, uint ids, uint sizes, uint most, __global const float *values, uint features,
	__global float *x)
{
	uint f = get_global_id(0), s = get_group_id(1), z = get_group_id(2);
	if (f < features && s < words[sizes + z])
		x[((ulong)z * most + s) * features + f] = values[(ulong)words[ids + z * most + s] * features + f];
}

// The bytes of samples as they are drawn, see data.Augment: cropped at a random place from the image with pixels around
// it that are black or reflected at its border, and mirrored, by chance or where it was not in the pass before. Keys are
// twelve words for each entry: whether its samples change at all, the cipher key, that behind the next multiple of 2^32,
// stream, member, the two halves of the position of the first sample, the samples of a pass, and the cipher key of
// samples' own coins.
__kernel void draw_samples(__global const uint *words, uint ids, uint sizes, uint keys, uint most, __global const uchar *pixels, uint features,
	uint height, uint width, uint pad, uint reflect, uint flip, uint alternate, __global uchar *drawn)
{
	uint f = get_global_id(0), s = get_group_id(1), z = get_group_id(2);
	if (f >= features || s >= words[sizes + z])
		return;
	__global const uint *k = words + keys + 12 * z;
	uint id = words[ids + z * most + s];
	__global const uchar *image = pixels + (ulong)id * features;
	uint at = k[7] + s, later = at < s ? 2 : 0, row = f / width % height, column = f % width;
	uchar v = image[f];
	if (k[0]) {
		uint4 w = philox((uint4)(0, k[5], k[6], at), k[1 + later], k[2 + later]);
		uint mirrored = flip && w.z > 0x7fffffffu;
		if (alternate) {
			ulong pass = (((ulong)k[8] << 32 | k[7]) + s) / k[9];
			mirrored = (philox((uint4)(0, 2, k[6], id), k[10], k[11]).x > 0x7fffffffu) != (pass & 1);
		}
		if (mirrored)
			column = width - 1 - column;
		uint y = row + mul_hi(w.x, 2 * pad + 1) - pad, x = column + mul_hi(w.y, 2 * pad + 1) - pad; // below zero is beyond all
		if (reflect) {
			y = y < height ? y : min(-y, 2 * height - 2 - y);
			x = x < width ? x : min(-x, 2 * width - 2 - x);
		}
		v = y < height && x < width ? image[(f / (height * width) * height + y) * width + x] : 0;
	}
	drawn[((ulong)z * most + s) * features + f] = v;
}

// y = x times 0 or keep: word e of an entry's stream decides on element e. A work item takes a block of the stream, four
// elements. Keys are as noise has them.
__kernel void dropout(__global const uint *words, uint keys, uint sizes, uint features, uint layer, __global const float *x, __global float *y,
	ulong step, float keep, uint limit)
{
	ulong first = COLUMN * 4, n = (ulong)words[sizes + ENTRY] * features;
	if (first >= n)
		return;
	__global const uint *k = words + keys + 5 * ENTRY;
	uint4 w = philox((uint4)((uint)COLUMN, layer, k[2], k[3]), k[0], k[1]);
	uint of[4] = {w.x, w.y, w.z, w.w};
	for (uint i = 0; i < 4; i++)
		if (first + i < n)
			y[ENTRY * step + first + i] = x[ENTRY * step + first + i] * ((of[i] >> 8) < limit ? 0.0f : keep);
}

// y = max(0, x), whose rows are of a list.
__kernel void relu(__global const uint *words, uint list, __global float *y, ulong step, __global const float *x, ulong stepx)
{
	if (COLUMN >= step)
		return;
	float v = x[ROW(words, list) * stepx + COLUMN];
	y[ENTRY * step + COLUMN] = v < 0 ? 0 : v;
}

// d = 0 where y is not above zero.
__kernel void gate(__global float *d, __global const float *y, ulong n)
{
	if (COLUMN < n && !(y[COLUMN] > 0))
		d[COLUMN] = 0;
}
