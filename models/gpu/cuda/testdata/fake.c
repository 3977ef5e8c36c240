// A driver of CUDA without a card, as strict as it can be. Every call but the first few needs the context on its own
// thread. Copies and launches are queued, and done when the stream is waited for: memory that was reused too early, or
// arguments that did not last, show. Of the kernels it has six, in C.
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int32_t result;
enum { INVALID = 1, NO_MEMORY = 2, NOT_READY = 3, BAD_PTX = 218, BAD_CONTEXT = 201, BAD_HANDLE = 400, NOT_FOUND = 500, ILLEGAL = 700 };

static __thread void *current;
static int started, retained, context_object, stream_object, streams, modules;
static char broken[64];
static int until, broken_code;

// A piece of memory of the device; one of the host that is locked in place.
struct piece { char *at; size_t n; struct piece *next; };
static struct piece *pieces, *locked;

struct module { char *text; };
struct kernel { char name[128]; int n, size[64], bf16; };
struct work { int kind; struct kernel *kernel; unsigned groups[3], size; char args[1024]; char *to; const char *from; size_t n; struct exec *of; struct work *next; };

// A node of a graph is what it launches; a graph that is ready has copies of its nodes.
struct params { struct kernel *kernel; unsigned gx, gy, gz, x, y, z, shared; void **each, **all; };
struct node { struct work what; struct node *after; struct graph *of; int done; struct node *next; };
struct graph { struct node *nodes; };
struct exec { struct graph *from; struct node *nodes[64]; struct work what[64]; int n; };
static int graphs, execs, launches, graph_launches, changes;

// fakeCounts says how often kernels were launched alone, graphs were, and nodes of graphs were changed.
void fakeCounts(int *alone, int *whole, int *changed) { *alone = launches, *whole = graph_launches, *changed = changes; }
static struct work *first, **last = &first;

// fails says whether a test wants this call to. Nothing that was queued is done then, as on a card whose context is lost.
static int fails(const char *name)
{
	if (strcmp(name, broken) || --until >= 0)
		return 0;
	for (struct work *w; (w = first); free(w))
		first = w->next;
	last = &first;
	return broken_code;
}
void fakeFail(const char *name, int after, int code) { snprintf(broken, sizeof broken, "%s", name); until = after; broken_code = code; }

// fakeLeft counts what was not given back.
int fakeLeft(void)
{
	int n = retained + streams + modules + graphs + execs;
	for (struct piece *p = pieces; p; p = p->next) n++;
	for (struct piece *p = locked; p; p = p->next) n++;
	return n;
}

#define BEGIN do { int code = fails(__func__); if (!started) return NOT_READY; if (code) return code; } while (0)
#define INSIDE do { BEGIN; if (current != &context_object) return BAD_CONTEXT; } while (0)

static struct piece *within(struct piece *list, const void *at, size_t n)
{
	for (struct piece *p = list; p; p = p->next)
		if ((char *)at >= p->at && (char *)at + n <= p->at + p->n)
			return p;
	return 0;
}

static result drop(struct piece **list, void *at)
{
	for (; *list; list = &(*list)->next)
		if ((*list)->at == at) {
			struct piece *p = *list;
			*list = p->next;
			memset(p->at, 0xdd, p->n);
			free(p->at);
			free(p);
			return 0;
		}
	return INVALID;
}

static void *take(struct piece **list, size_t n)
{
	struct piece *p = malloc(sizeof *p);
	*p = (struct piece){ aligned_alloc(256, (n + 255) / 256 * 256), n, *list };
	memset(p->at, 0xfb, n);
	*list = p;
	return p->at;
}

result cuInit(unsigned flags) { started = 1; return flags ? INVALID : fails(__func__); }
result cuDriverGetVersion(int *v) { BEGIN; *v = 12040; return 0; }
result cuGetErrorName(int code, const char **s)
{
	*s = code == BAD_CONTEXT ? "CUDA_ERROR_INVALID_CONTEXT" : code == INVALID ? "CUDA_ERROR_INVALID_VALUE" :
		code == NO_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : code == BAD_PTX ? "CUDA_ERROR_INVALID_PTX" :
		code == NOT_FOUND ? "CUDA_ERROR_NOT_FOUND" : code == ILLEGAL ? "CUDA_ERROR_ILLEGAL_ADDRESS" : 0;
	return *s ? 0 : INVALID;
}
result cuDeviceGetCount(int *n) { BEGIN; *n = 2; return 0; }
result cuDeviceGet(int *d, int i) { BEGIN; if (i < 0 || i > 1) return INVALID; *d = 10 + i; return 0; }
result cuDeviceGetName(char *s, int n, int d) { BEGIN; snprintf(s, n, d == 10 ? "Fake 100" : "Fake 1"); return d < 10 ? INVALID : 0; }
result cuDeviceTotalMem_v2(size_t *n, int d) { BEGIN; *n = 1u << 30; return d < 10 ? INVALID : 0; }
result cuDeviceGetAttribute(int *v, int what, int d)
{
	BEGIN;
	if (what != 75 && what != 76)
		return INVALID;
	*v = what == 76 ? 0 : d == 10 ? 8 : 7;
	return 0;
}
result cuDeviceGetPCIBusId(char *s, int n, int d) { BEGIN; snprintf(s, n, "0000:%s:00.0", d == 10 ? "3b" : "5e"); return d < 10 ? INVALID : 0; }
result cuDevicePrimaryCtxRetain(void **c, int d) { BEGIN; if (d != 10) return INVALID; retained++; *c = &context_object; return 0; }
result cuDevicePrimaryCtxRelease_v2(int d) { BEGIN; if (d != 10 || !retained) return INVALID; retained--; return 0; }
result cuCtxSetCurrent(void *c) { BEGIN; current = c; return c && !retained ? BAD_CONTEXT : 0; }

result cuMemAlloc_v2(char **at, size_t n) { INSIDE; if (n > 1u << 30) return NO_MEMORY; *at = take(&pieces, n); return 0; }
result cuMemFree_v2(void *at) { INSIDE; return drop(&pieces, at); }
result cuMemHostAlloc(char **at, size_t n, unsigned flags) { INSIDE; *at = take(&locked, n); return 0; }
result cuMemFreeHost(void *at) { INSIDE; return drop(&locked, at); }

static result run(struct work *w);

// wait empties the queue.
static result wait(void)
{
	result code = 0;
	while (first) {
		struct work *w = first;
		if (!code)
			code = run(w);
		first = w->next;
		free(w);
	}
	last = &first;
	return code;
}

static struct work *queue(int kind)
{
	struct work *w = calloc(1, sizeof *w);
	w->kind = kind;
	*last = w;
	last = &w->next;
	return w;
}

result cuMemcpyHtoDAsync_v2(char *to, const char *from, size_t n, void *stream)
{
	INSIDE;
	if (stream != &stream_object)
		return BAD_HANDLE;
	if (!within(pieces, to, n))
		return INVALID;
	struct work *w = queue(1);
	w->to = to, w->n = n, w->from = from;
	return within(locked, from, n) ? 0 : wait(); // other memory is read before the call returns
}
result cuMemcpyDtoHAsync_v2(char *to, const char *from, size_t n, void *stream)
{
	INSIDE;
	if (stream != &stream_object)
		return BAD_HANDLE;
	if (!within(pieces, from, n))
		return INVALID;
	struct work *w = queue(2);
	w->to = to, w->n = n, w->from = from;
	return 0;
}

result cuStreamCreate(void **s, unsigned flags) { INSIDE; if (flags != 1) return INVALID; streams++; *s = &stream_object; return 0; }
result cuStreamDestroy_v2(void *s) { INSIDE; if (s != &stream_object) return BAD_HANDLE; streams--; return 0; }
result cuStreamSynchronize(void *s) { INSIDE; if (s != &stream_object) return BAD_HANDLE; return wait(); }

result cuModuleLoadDataEx(struct module **m, const char *text, unsigned n, int *options, void **values)
{
	INSIDE;
	if (!strstr(text, ".version 7.0") || !strstr(text, ".target sm_80")) {
		for (unsigned i = 0; i < n; i++)
			if (options[i] == 5)
				strcpy(values[i], "ptxas fatal: no version");
		return BAD_PTX;
	}
	*m = malloc(sizeof **m);
	(*m)->text = strdup(text);
	modules++;
	return 0;
}
result cuModuleUnload(struct module *m) { INSIDE; free(m->text); free(m); modules--; return 0; }
result cuModuleGetFunction(struct kernel **out, struct module *m, const char *name)
{
	INSIDE;
	char head[256];
	snprintf(head, sizeof head, ".entry %s(\n", name);
	char *at = strstr(m->text, head);
	if (!at)
		return NOT_FOUND;
	struct kernel *k = calloc(1, sizeof *k);
	snprintf(k->name, sizeof k->name, "%s", name);
	k->bf16 = strstr(m->text, "mma.sync.aligned.m16n8k16") != 0;
	char *end = strchr(at, ')');
	for (at = strstr(at, ".param ."); at && at < end; at = strstr(at + 1, ".param ."))
		k->size[k->n++] = atoi(at + 9) / 8;
	*out = k;
	return 0;
}

static result fill(struct work *w, struct params *p);
result cuLaunchKernel(struct kernel *k, unsigned gx, unsigned gy, unsigned gz, unsigned x, unsigned y, unsigned z, unsigned shared, void *stream, void **each, void **all)
{
	INSIDE;
	if (stream != &stream_object)
		return BAD_HANDLE;
	launches++;
	struct work one = { 0 };
	result code = fill(&one, &(struct params){ k, gx, gy, gz, x, y, z, shared, each, all });
	if (code)
		return code;
	struct work *w = queue(3);
	*w = one;
	return 0;
}

// fill has w be the launch of a kernel; arguments are copied.
static result fill(struct work *w, struct params *p)
{
	if (!p->kernel || p->all || !p->gx || !p->gy || !p->gz || p->gy > 65535 || p->gz > 65535 || !p->x || p->x > 1024 || p->y != 1 || p->z != 1 || p->shared)
		return INVALID;
	w->kind = 3, w->kernel = p->kernel, w->size = p->x;
	memcpy(w->groups, &p->gx, sizeof w->groups);
	for (int i = 0; i < p->kernel->n; i++)
		memcpy(w->args + 8 * i, p->each[i], p->kernel->size[i]);
	return p->each[p->kernel->n] ? INVALID : 0;
}

result cuGraphCreate(struct graph **g, unsigned flags) { INSIDE; if (flags) return INVALID; graphs++; *g = calloc(1, sizeof **g); return 0; }
result cuGraphDestroy(struct graph *g)
{
	INSIDE;
	if (!g)
		return INVALID;
	for (struct node *n; (n = g->nodes); free(n))
		g->nodes = n->next;
	graphs--;
	free(g);
	return 0;
}
result cuGraphAddKernelNode(struct node **out, struct graph *g, struct node **after, size_t n, struct params *p)
{
	INSIDE;
	if (!g || n > 1 || (n && (!after[0] || after[0]->of != g)))
		return INVALID;
	struct node *x = calloc(1, sizeof *x);
	*x = (struct node){ .after = n ? after[0] : 0, .of = g, .next = g->nodes };
	result code = fill(&x->what, p);
	if (code) {
		free(x);
		return code;
	}
	g->nodes = *out = x; // the newest first
	return 0;
}

// A graph that is ready does its nodes in any order that they allow: of those that may come next, the newest first.
result cuGraphInstantiateWithFlags(struct exec **out, struct graph *g, unsigned long long flags)
{
	INSIDE;
	if (!g || flags)
		return INVALID;
	struct exec *e = calloc(1, sizeof *e);
	e->from = g;
	for (struct node *x = g->nodes; x; x = x->next)
		x->done = 0;
	for (struct node *x = g->nodes; x; ) {
		if (x->done || (x->after && !x->after->done)) {
			x = x->next;
			continue;
		}
		x->done = 1;
		x->what.of = e;
		e->nodes[e->n] = x, e->what[e->n++] = x->what;
		x = g->nodes;
	}
	execs++;
	*out = e;
	return 0;
}
result cuGraphExecKernelNodeSetParams(struct exec *e, struct node *x, struct params *p)
{
	INSIDE;
	for (int i = 0; e && i < e->n; i++)
		if (e->nodes[i] == x) {
			if (p->kernel != e->what[i].kernel)
				return INVALID;
			changes++;
			return fill(&e->what[i], p);
		}
	return INVALID;
}
result cuGraphExecDestroy(struct exec *e)
{
	INSIDE;
	for (struct work *w = first; w; w = w->next)
		if (w->of == e)
			return INVALID; // it is queued
	execs--;
	free(e);
	return 0;
}
result cuGraphLaunch(struct exec *e, void *stream)
{
	INSIDE;
	if (!e || stream != &stream_object)
		return BAD_HANDLE;
	graph_launches++;
	for (int i = 0; i < e->n; i++) {
		struct work *w = queue(3), *next = w->next;
		*w = e->what[i];
		w->next = next;
	}
	return 0;
}

#define WORD(i) (*(uint32_t *)(w->args + 8 * (i)))
#define LONG(i) (*(uint64_t *)(w->args + 8 * (i)))
#define REAL(i) (*(float *)(w->args + 8 * (i)))
#define FLOATS(i) (*(float **)(w->args + 8 * (i)))

// rounded is x as an operand of bf16 or tf32.
static double rounded(float x, int bf16)
{
	uint32_t u;
	memcpy(&u, &x, 4);
	u = bf16 ? (u + 0x7fff + (u >> 16 & 1)) & 0xffff0000 : (u + 0x1000) & 0xffffe000;
	memcpy(&x, &u, 4);
	return x;
}

// product is gemm_tensor of one entry without an epilogue.
static result product(struct work *w)
{
	uint32_t *p = *(uint32_t **)w->args + WORD(1), m = p[0], n = p[1], k = p[2];
	float *a = FLOATS(2), *b = FLOATS(3), *c = FLOATS(4);
	if (!within(pieces, a, 4ul * m * k) || !within(pieces, b, 4ul * k * n) || !within(pieces, c, 4ul * m * n) || w->groups[0] != (n + 63) / 64 || w->groups[1] != (m + 63) / 64)
		return ILLEGAL;
	for (uint32_t i = 0; i < m * n; i++) {
		double sum = 0;
		for (uint32_t e = 0; e < k; e++)
			sum += rounded(a[i / n * p[13] + e * p[14]], w->kernel->bf16) * rounded(b[e * p[21] + i % n * p[22]], w->kernel->bf16);
		c[i] = sum;
	}
	return 0;
}

// convolution is conv_tensor of one sample, in one group, without bias and epilogue.
static result convolution(struct work *w)
{
	uint32_t *s = *(uint32_t **)w->args + WORD(1), in = s[0], high = s[1], wide = s[2], side = s[4], stride = s[5], pad = s[6], taps = in * side * side;
	uint32_t down = s[7], across = s[8], all = s[3] * down * across;
	float *x = FLOATS(5), *weights = FLOATS(8), *y = FLOATS(15);
	if (!within(pieces, x, 4ul * in * high * wide) || !within(pieces, weights, 4ul * s[3] * taps) || !within(pieces, y, 4ul * all))
		return ILLEGAL;
	for (uint32_t i = 0; i < all; i++) {
		double sum = 0;
		for (uint32_t t = 0; t < taps; t++) {
			uint32_t row = i / across % down * stride + t / side % side - pad, column = i % across * stride + t % side - pad;
			if (row < high && column < wide) // those before the edge are far beyond it
				sum += rounded(weights[i / (down * across) * taps + t], w->kernel->bf16) * rounded(x[(t / (side * side) * high + row) * wide + column], w->kernel->bf16);
		}
		y[i] = sum;
	}
	return 0;
}

static result run(struct work *w)
{
	if (w->kind != 3) {
		memcpy(w->to, w->from, w->n);
		return 0;
	}
	const char *name = w->kernel->name;
	uint64_t columns = (uint64_t)w->groups[0] * w->size;
	if (!strcmp(name, "singles")) {
		float *in = FLOATS(0), *out = FLOATS(1);
		for (uint64_t n = WORD(2), i = 0; i < n && i < columns; i++) {
			volatile float product = in[i] * in[n + i];
			out[i] = product + in[2 * n + i];
			out[n + i] = fmaf(in[i], in[n + i], in[2 * n + i]);
			out[2 * n + i] = in[i] / in[n + i];
			out[3 * n + i] = sqrtf(fabsf(in[i]));
		}
		return 0;
	}
	if (!strcmp(name, "doubles")) {
		float *in = FLOATS(0);
		double *out = *(double **)(w->args + 8);
		for (uint64_t n = WORD(2), i = 0; i < n && i < columns; i++) {
			volatile double a = in[i] * 1.0000000001, b = in[n + i], product = a * b;
			out[i] = product + in[2 * n + i];
			out[n + i] = a / b;
			out[2 * n + i] = sqrt(fabs(a));
		}
		return 0;
	}
	if (!strcmp(name, "zeros")) {
		if (!within(pieces, FLOATS(0) + LONG(1), 4 * LONG(2)))
			return ILLEGAL;
		memset(FLOATS(0) + LONG(1), 0, 4 * LONG(2));
		return 0;
	}
	if (!strcmp(name, "fill")) {
		for (unsigned row = 0; row < w->groups[1]; row++)
			for (uint64_t i = 0; i < LONG(3) && i < columns; i++)
				FLOATS(0)[LONG(1) + row * LONG(2) + i] = REAL(4);
		return 0;
	}
	if (!strcmp(name, "move")) {
		for (unsigned row = 0; row < w->groups[1]; row++)
			for (uint64_t i = 0; i < LONG(6) && i < columns; i++)
				FLOATS(0)[LONG(1) + row * LONG(2) + i] = FLOATS(3)[LONG(4) + row * LONG(5) + i];
		return 0;
	}
	if (!strcmp(name, "conv_tensor"))
		return convolution(w);
	return strcmp(name, "gemm_tensor") ? ILLEGAL : product(w);
}
