// A program that trains its own model, in C: a line through points. Build and run it with
//
//	cc -O2 -o line line.c -lm
//	brood run --algorithm diloco --members 4 --program ./line
//
// docs/programs.md specifies the frames. Numbers are little-endian, as on the machine that this is for.
#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { HELLO = 1, MEMORY, INIT, GRADIENT, EVALUATE, DESCRIPTION = 65, DONE };

static void all(int fd, void *p, size_t n, ssize_t (*move)(int, void *, size_t)) {
	for (char *at = p; n > 0;) {
		ssize_t k = move(fd, at, n);
		if (k <= 0) exit(0); // brood ended
		at += k, n -= k;
	}
}

static ssize_t put(int fd, void *p, size_t n) { return write(fd, p, n); }

static void answer(uint8_t kind, void *body, uint32_t n) {
	uint32_t length = n + 1;
	all(1, &length, 4, put);
	all(1, &kind, 1, put);
	all(1, body, n, put);
}

static uint64_t number(const char *p, int size) {
	uint64_t x = 0;
	memcpy(&x, p, size);
	return x;
}

// A random number in [-1, 1), a function of its argument.
static double draw(uint64_t x) {
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return (double)(x >> 11) / (1ull << 52) - 1;
}

int main(void) {
	float *params = 0, *gradient = 0; // slope and height
	for (;;) {
		uint32_t length;
		uint8_t kind;
		all(0, &length, 4, read);
		all(0, &kind, 1, read);
		char *body = malloc(length);
		all(0, body, length - 1, read);
		if (kind == HELLO) {
			if (number(body, 4) != 2) return fputs("this program speaks version 2\n", stderr), 1;
			char *text = "{\"name\":\"line\",\"parameters\":[{\"name\":\"slope\",\"shape\":[1]},"
				     "{\"name\":\"height\",\"shape\":[1]}],\"train\":1000,\"test\":100,\"data\":\"points 1\","
				     "\"score\":\"loss\",\"library\":\"C\",\"device\":\"cpu\"}";
			answer(DESCRIPTION, text, strlen(text));
		} else if (kind == MEMORY) {
			char path[256] = {0};
			memcpy(path, body + 68, number(body + 64, 4));
			size_t size = number(body, 8);
			int fd = open(path, O_RDWR);
			char *memory = mmap(0, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
			if (memory == MAP_FAILED) return perror(path), 1;
			params = (float *)(memory + number(body + 8, 8));
			gradient = (float *)(memory + number(body + 24, 8));
		} else {
			struct { uint64_t task; double loss; uint64_t correct; } done = {number(body, 8), 0, 0};
			if (kind == INIT) {
				params[0] = draw(number(body + 8, 8)), params[1] = 0;
			} else { // one batch of samples
				uint32_t n = number(body + 24, 4);
				double slope = 0, height = 0;
				for (uint32_t i = 0; i < n; i++) {
					uint64_t sample = number(body + 28 + 4 * i, 4);
					double x = draw(2 * sample + 1), y = 3 * x + 1 + draw(2 * sample + 2) / 4;
					double d = params[0] * x + params[1] - y;
					done.loss += d * d / 2, slope += d * x, height += d;
				}
				if (kind == GRADIENT) {
					done.loss /= n;
					gradient[0] = slope / n, gradient[1] = height / n;
				}
			}
			answer(DONE, &done, sizeof done);
		}
		free(body);
	}
}
