/* The Rosenbrock function of rosenbrock.c, with parameters through shared memory: cc -O2 -o rosenbrock_shared rosenbrock_shared.c */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static void get(void *p, size_t n) { if (fread(p, 1, n, stdin) != n) exit(0); }  /* brood has left */
static void put(const void *p, size_t n) { fwrite(p, 1, n, stdout); }
static void head(uint32_t body, uint8_t kind) { uint32_t n = body + 1; put(&n, 4); put(&kind, 1); }

int main(void) {
    char *memory = NULL;
    for (;;) {
        uint32_t length; uint8_t kind;
        get(&length, 4); get(&kind, 1);
        char *body = calloc(length, 1);                   /* a byte more than it has: the path ends in 0 */
        get(body, length - 1);
        if (kind == 1) {                                  /* hello: version 1, no metrics, and we wish for 1, memory */
            uint32_t answer[3] = {1, 0, 1};
            head(12, 2); put(answer, 12);
        } else if (kind == 5) {                           /* bytes and path of a file that we may map */
            int f = open(body + 12, O_RDONLY);
            memory = mmap(NULL, *(uint64_t *)body, PROT_READ, MAP_SHARED, f, 0);
            if (f < 0 || memory == MAP_FAILED) { perror(body + 12); exit(1); }
            close(f);
        } else if (kind == 3 || kind == 6) {              /* a batch: its rows follow, or lie in the memory */
            uint32_t count = ((uint32_t *)body)[0], width = ((uint32_t *)body)[1];
            uint64_t *ids = (uint64_t *)(body + (kind == 6 ? 16 : 8));                /* id, seed, id, seed, ... */
            float *x = (float *)(kind == 6 ? memory + ((uint64_t *)body)[1] : body + 8 + 16 * (size_t)count);
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
