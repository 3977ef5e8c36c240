// What OpenCL C has built in and clang's back end for PTX has no library for. Quotients and roots are those of IEEE.
#define OVER static inline __attribute__((overloadable, always_inline))

#define AXIS(name, d) \
	((d) == 0 ? __nvvm_read_ptx_sreg_##name##_x() : (d) == 1 ? __nvvm_read_ptx_sreg_##name##_y() : __nvvm_read_ptx_sreg_##name##_z())
OVER ulong get_local_id(uint d) { return AXIS(tid, d); }
OVER ulong get_group_id(uint d) { return AXIS(ctaid, d); }
OVER ulong get_num_groups(uint d) { return AXIS(nctaid, d); }
OVER ulong get_local_size(uint d) { return AXIS(ntid, d); }
OVER ulong get_global_id(uint d) { return get_group_id(d) * get_local_size(d) + get_local_id(d); }
#define barrier(which) __syncthreads()

OVER uint min(uint a, uint b) { return a < b ? a : b; }
OVER int min(int a, int b) { return a < b ? a : b; }
OVER ulong min(ulong a, ulong b) { return a < b ? a : b; }
OVER uint max(uint a, uint b) { return a > b ? a : b; }
OVER int max(int a, int b) { return a > b ? a : b; }
OVER ulong max(ulong a, ulong b) { return a > b ? a : b; }
OVER uint rotate(uint x, uint n) { return x << n | x >> (32 - n); }
OVER uint mul_hi(uint a, uint b) { return (ulong)a * b >> 32; }
OVER float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
OVER double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
OVER float sqrt(float x) { return __nvvm_sqrt_rn_f(x); }
OVER double sqrt(double x) { return __nvvm_sqrt_rn_d(x); }
OVER float fabs(float x) { return __builtin_fabsf(x); }
OVER double fabs(double x) { return __builtin_fabs(x); }
OVER double rint(double x) { return __builtin_rint(x); }
OVER uint atomic_or(volatile __global uint *p, uint x) { return __sync_fetch_and_or(p, x); }
