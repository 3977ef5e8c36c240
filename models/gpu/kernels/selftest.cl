// What a device makes of single operations. See selftest.go.
#pragma OPENCL FP_CONTRACT OFF
#pragma OPENCL EXTENSION cl_khr_fp64 : enable

__kernel void singles(__global const float *in, __global float *out, uint n)
{
	uint i = get_global_id(0);
	if (i >= n)
		return;
	float a = in[i], b = in[n + i], c = in[2 * n + i];
	out[i] = a * b + c;
	out[n + i] = fma(a, b, c);
	out[2 * n + i] = a / b;
	out[3 * n + i] = sqrt(fabs(a));
}

__kernel void doubles(__global const float *in, __global double *out, uint n)
{
	uint i = get_global_id(0);
	if (i >= n)
		return;
	double a = in[i], b = in[n + i], c = in[2 * n + i];
	a = a * 1.0000000001;
	out[i] = a * b + c;
	out[n + i] = a / b;
	out[2 * n + i] = sqrt(fabs(a));
}
