/* The negative of the Rosenbrock function as an objective of brood: cc -O2 -o rosenbrock rosenbrock.c
   It computes what the machine's order of bytes is little-endian for, as those of all common machines are. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static void get(void *p, size_t n) { if (fread(p, 1, n, stdin) != n) exit(0); }  /* brood has left */
static void put(const void *p, size_t n) { fwrite(p, 1, n, stdout); }
static void head(uint32_t body, uint8_t kind) { uint32_t n = body + 1; put(&n, 4); put(&kind, 1); }

int main(void) {
    for (;;) {
        uint32_t length; uint8_t kind;
        get(&length, 4); get(&kind, 1);
        char *body = malloc(length);
        get(body, length - 1);
        if (kind == 1) {                                  /* hello: we speak version 1 */
            uint32_t version = 1;
            head(4, 2); put(&version, 4);
        } else if (kind == 3) {                           /* a batch */
            uint32_t count = ((uint32_t *)body)[0], width = ((uint32_t *)body)[1];
            uint64_t *ids = (uint64_t *)(body + 8);       /* id, seed, id, seed, ... */
            float *x = (float *)(body + 8 + 16 * (size_t)count);
            head(4 + 16 * count, 4); put(&count, 4);
            for (uint32_t i = 0; i < count; i++, x += width) {
                double sum = 0;
                for (uint32_t j = 0; j + 1 < width; j++) {
                    double a = x[j + 1] - (double)x[j] * x[j], b = 1 - (double)x[j];
                    sum += 100 * a * a + b * b;
                }
                double fitness = -sum;
                put(&ids[2 * i], 8); put(&fitness, 8);
            }
        }
        fflush(stdout);
        free(body);
    }
}
