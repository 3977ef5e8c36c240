// What all kernels share. Products are rounded before they are added: only fma() fuses.
#pragma OPENCL FP_CONTRACT OFF
#pragma OPENCL EXTENSION cl_khr_fp64 : enable

#define NONE 0xFFFFFFFFu

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
