// Activations, as models/native/kernel has them: the same operations in the same order.
#define LEAKY 0u
#define TANH 1u
#define SILU 2u
#define GELU 3u
#define SCALE 4u

float magnitude(float x) { return as_float(as_uint(x) & 0x7fffffffu); }

float held(float x)
{
	x = x > 86.0f ? 86.0f : x;
	return x < -86.0f ? -86.0f : x;
}

float sigmoid(float x)
{
	return 1.0f / (power_of_e(held(-x)) + 1.0f);
}

// Below 5/8 x + x^3 P(x^2), elsewhere 1 - 2/(e^2x + 1) with the sign of x.
float tangent(float x)
{
	float a = magnitude(x);
	if (a < 0.625f) {
		float z = x * x, p = -0.005717025604099035f;
		p = p * z + 0.02065056934952736f;
		p = p * z + -0.05374349281191826f;
		p = p * z + 0.13331490755081177f;
		p = p * z + -0.3333328366279602f;
		return x + (p * z) * x;
	}
	a = a + a;
	a = a > 86.0f ? 86.0f : a;
	a = 1.0f - 2.0f / (power_of_e(a) + 1.0f);
	return as_float(as_uint(a) | (as_uint(x) & 0x80000000u));
}

// The distribution function of the normal distribution; q is e^(-x^2/2).
float phi(float x, float *q)
{
	float u = (x * x) * -0.5f;
	u = u < -86.0f ? -86.0f : u;
	*q = power_of_e(u);
	float t = 1.0f / (magnitude(x) * 0.28125f + 1.0f), p = 0.021294107660651207f;
	p = p * t + -0.07481034100055695f;
	p = p * t + 0.05165994167327881f;
	p = p * t + 0.03796470910310745f;
	p = p * t + 0.04247264191508293f;
	p = p * t + 0.09624698013067245f;
	p = p * t + 0.10037834197282791f;
	p = p * t + 0.11261438578367233f;
	p = p * t + 0.11217926442623138f;
	p = (p * t) * *q;
	return as_uint(x) >> 31 ? p : 1.0f - p;
}

__kernel void activation(__global const uint *words, uint kind, float slope, uint list, __global float *y, ulong step, __global const float *x, ulong stepx)
{
	if (COLUMN >= step)
		return;
	float v = x[ROW(words, list) * stepx + COLUMN], q;
	if (kind == LEAKY)
		v = as_uint(v) >> 31 ? slope * v : v;
	else if (kind == TANH)
		v = tangent(v);
	else if (kind == SCALE)
		v = slope * v;
	else if (kind == SILU)
		v = (v < -86.0f ? -86.0f : v) * sigmoid(v);
	else
		v = v * phi(v, &q);
	y[ENTRY * step + COLUMN] = v;
}

// d = d times the derivative at x, which for the tangent is its result.
__kernel void activation_back(uint kind, float slope, __global float *d, __global const float *x, ulong n)
{
	if (COLUMN >= n)
		return;
	float v = x[COLUMN], q;
	if (kind == LEAKY)
		v = v > 0 ? 1.0f : slope;
	else if (kind == TANH)
		v = 1.0f - v * v;
	else if (kind == SCALE)
		v = slope;
	else if (kind == SILU) {
		float s = sigmoid(v);
		v = s * (1.0f + held(v) * (1.0f - s));
	} else {
		float p = phi(v, &q);
		v = p + held(v) * (q * 0.3989422804014327f);
	}
	d[COLUMN] = d[COLUMN] * v;
}
