// BLAKE3 (O'Connor, Aumasson, Neves, Wilcox-O'Hearn 2020) of rows of little-endian words: leaves are chunks of 1,024
// bytes, and neighbours are joined until one is left, one without a neighbour going on as it is, which is BLAKE3's
// tree.

#define CHUNK_START 1u
#define CHUNK_END 2u
#define PARENT 4u
#define ROOT 8u

__constant uint blake_iv[8] = {0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19};
__constant uchar blake_order[16] = {2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8};

void blake_mix(uint *s, uint a, uint b, uint c, uint d, uint x, uint y)
{
	s[a] = s[a] + s[b] + x;
	s[d] = rotate(s[d] ^ s[a], 16u);
	s[c] = s[c] + s[d];
	s[b] = rotate(s[b] ^ s[c], 20u);
	s[a] = s[a] + s[b] + y;
	s[d] = rotate(s[d] ^ s[a], 24u);
	s[c] = s[c] + s[d];
	s[b] = rotate(s[b] ^ s[c], 25u);
}

// cv becomes the chaining value of block m behind it.
void blake_block(uint *cv, const uint *block, ulong counter, uint bytes, uint flags)
{
	uint s[16], m[16], t[16];
	for (uint i = 0; i < 8; i++)
		s[i] = cv[i];
	for (uint i = 0; i < 4; i++)
		s[8 + i] = blake_iv[i];
	s[12] = (uint)counter;
	s[13] = (uint)(counter >> 32);
	s[14] = bytes;
	s[15] = flags;
	for (uint i = 0; i < 16; i++)
		m[i] = block[i];
	for (uint r = 0; r < 7; r++) {
		blake_mix(s, 0, 4, 8, 12, m[0], m[1]);
		blake_mix(s, 1, 5, 9, 13, m[2], m[3]);
		blake_mix(s, 2, 6, 10, 14, m[4], m[5]);
		blake_mix(s, 3, 7, 11, 15, m[6], m[7]);
		blake_mix(s, 0, 5, 10, 15, m[8], m[9]);
		blake_mix(s, 1, 6, 11, 12, m[10], m[11]);
		blake_mix(s, 2, 7, 8, 13, m[12], m[13]);
		blake_mix(s, 3, 4, 9, 14, m[14], m[15]);
		for (uint i = 0; i < 16; i++)
			t[i] = m[blake_order[i]];
		for (uint i = 0; i < 16; i++)
			m[i] = t[i];
	}
	for (uint i = 0; i < 8; i++)
		cv[i] = s[i] ^ s[8 + i];
}

// A work item hashes a chunk of 256 words of a row of n. root is ROOT where a row is one chunk.
__kernel void blake_chunks(__global const uint *x, ulong at, ulong n, uint chunks, __global uint *cvs, ulong first, uint root)
{
	ulong chunk = COLUMN, lo = chunk * 256, left = n - min(n, lo);
	if (chunk >= chunks)
		return;
	uint cv[8], m[16], blocks = max(1u, (uint)((min((ulong)256, left) + 15) / 16));
	for (uint i = 0; i < 8; i++)
		cv[i] = blake_iv[i];
	for (uint b = 0; b < blocks; b++) {
		uint many = (uint)min((ulong)16, left - min(left, (ulong)(16 * b)));
		for (uint i = 0; i < 16; i++)
			m[i] = i < many ? x[at + ENTRY * n + lo + 16 * b + i] : 0;
		blake_block(cv, m, chunk, 4 * many, (b == 0 ? CHUNK_START : 0) | (b == blocks - 1 ? CHUNK_END | root : 0));
	}
	for (uint i = 0; i < 8; i++)
		cvs[first + (ENTRY * (ulong)chunks + chunk) * 8 + i] = cv[i];
}

// A work item joins two of the n values of a row.
__kernel void blake_parents(__global const uint *from, uint n, __global uint *cvs, ulong first, uint root)
{
	ulong i = COLUMN, m = (n + 1) / 2;
	if (i >= m)
		return;
	__global const uint *pair = from + (ENTRY * (ulong)n + 2 * i) * 8;
	__global uint *out = cvs + first + (ENTRY * m + i) * 8;
	uint cv[8], block[16];
	if (2 * i + 1 == n) {
		for (uint j = 0; j < 8; j++)
			out[j] = pair[j];
		return;
	}
	for (uint j = 0; j < 16; j++)
		block[j] = pair[j];
	for (uint j = 0; j < 8; j++)
		cv[j] = blake_iv[j];
	blake_block(cv, block, 0, 64, PARENT | root);
	for (uint j = 0; j < 8; j++)
		out[j] = cv[j];
}
