// What all kernels share. Products are rounded before they are added: only fma() fuses.
#pragma OPENCL FP_CONTRACT OFF
#pragma OPENCL EXTENSION cl_khr_fp64 : enable

#define NONE 0xFFFFFFFFu

// Work items go along columns, groups of dimension 1 along rows. ROW is the row of a list of the words, or the group's
// own number.
#define COLUMN ((ulong)get_global_id(0))
#define ENTRY ((uint)get_group_id(1))
#define ROW(words, list) ((ulong)((list) == NONE ? ENTRY : (words)[(list) + ENTRY]))
