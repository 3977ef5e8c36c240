// A management library without a card. It answers nothing before it was started, and knows two cards: one at
// 0000:3b:00.0, which answers everything, and one at 0000:5e:00.0, which answers what a test wants.
#include <stdint.h>
#include <string.h>

enum { UNINITIALIZED = 1, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, LOST = 15 };

typedef struct { unsigned long long total, free, used; } memory;
typedef struct { unsigned int card, memory; } utilization;

static int started, broken, cards[2], nonsense;

// fakeCard has the second card answer every question with a code, or with what cannot be.
void fakeCard(int code, int odd) { broken = code, nonsense = odd; }

static int ask(int *card)
{
	if (!started)
		return UNINITIALIZED;
	if (card == &cards[1])
		return broken;
	return card == &cards[0] ? 0 : INVALID;
}

int nvmlInit_v2(void) { started = 1; return 0; }
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, int **card)
{
	if (!started)
		return UNINITIALIZED;
	int i = !strcmp(bus, "0000:3b:00.0") ? 0 : !strcmp(bus, "0000:5e:00.0") ? 1 : -1;
	if (i < 0)
		return NOT_FOUND;
	*card = &cards[i];
	return 0;
}
int nvmlDeviceGetMemoryInfo(int *card, memory *m)
{
	int code = ask(card);
	if (!code)
		*m = nonsense ? (memory){ 1, 0, 1ull << 62 } : (memory){ 1u << 30, 700u << 20, 324u << 20 };
	return code;
}
int nvmlDeviceGetUtilizationRates(int *card, utilization *u)
{
	int code = ask(card);
	if (!code)
		*u = (utilization){ nonsense ? 101 : 87, 12 };
	return code;
}
int nvmlDeviceGetTemperature(int *card, int sensor, unsigned int *celsius)
{
	int code = sensor ? INVALID : ask(card);
	if (!code)
		*celsius = nonsense ? 0xffffffffu : 61;
	return code;
}
