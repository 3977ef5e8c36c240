// Adam: m = b1*m + d1*g; v = b2*v + d2*g^2; x = x - wd*x - eta*(c1*m)/(sqrt(c2*v) + eps), from the left.
// Words are, for each entry, its rows of x, m, v and g, of n columns each, of which some from lo on take the step.
__kernel void adam(__global const uint *words, uint list, uint n, uint lo, uint some, __global float *x, __global float *m, __global float *v,
	__global const float *g, float b1, float b2, float d1, float d2, float c1, float c2, float eta, float eps, float wd)
{
	ulong i = lo + COLUMN;
	__global const uint *rows = words + list + 4 * ENTRY;
	if (COLUMN >= some)
		return;
	x += (ulong)rows[0] * n + i;
	m += (ulong)rows[1] * n + i;
	v += (ulong)rows[2] * n + i;
	float gi = g[(ulong)rows[3] * n + i];
	float mi = b1 * *m + d1 * gi;
	float vi = b2 * *v + d2 * (gi * gi);
	*m = mi;
	*v = vi;
	float step = (eta * (c1 * mi)) / (sqrt(c2 * vi) + eps);
	*x = (*x - wd * *x) - step;
}

// e^t for t in [-86, 86]: 2 to the integer part of t/ln 2 times a polynomial of the fraction. NaN stays NaN.
float power_of_e(float t)
{
	float u = t * 0x1.715476p+0f, e = u + 0x1.8p+23f, f = u - (e - 0x1.8p+23f);
	float p = 0.0001534580806037411f;
	p = p * f + 0.0013399930903688073f;
	p = p * f + 0.009618489071726799f;
	p = p * f + 0.05550328642129898f;
	p = p * f + 0.24022646248340607f;
	p = p * f + 0.6931471824645996f;
	p = p * f + 1.0f;
	return p * as_float((as_uint(e) << 23) + as_uint(1.0f));
}

// x = x + eta*(s*g), with the s from before; s = s*exp(rate*h).
__kernel void natural(__global float *x, ulong atx, __global float *s, ulong ats, __global const float *g, ulong atg,
	__global const float *h, ulong ath, ulong n, float eta, float rate)
{
	ulong i = COLUMN;
	if (i >= n)
		return;
	float si = s[ats + i], t = rate * h[ath + i];
	x[atx + i] = x[atx + i] + eta * (si * g[atg + i]);
	t = t > 86.0f ? 86.0f : t;
	t = t < -86.0f ? -86.0f : t;
	s[ats + i] = si * power_of_e(t);
}
