/* An objective whose every candidate takes a millisecond: it sleeps, or with an argument is busy. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void get(void *p, size_t n) {
    for (char *q = p; n > 0;) {
        ssize_t k = read(0, q, n);
        if (k <= 0) exit(0); /* brood has left */
        q += k, n -= k;
    }
}

static void put(const void *p, size_t n) { if (write(1, p, n) != (ssize_t)n) exit(1); }

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int main(int argc, char **argv) {
    static char in[8 << 20], out[1 << 17];
    for (;;) {
        uint32_t length, count, said;
        get(&length, 4);
        get(in, length);
        if (in[0] == 1) put("\5\0\0\0\2\1\0\0\0", 9);
        if (in[0] != 3) continue;
        memcpy(&count, in + 1, 4);
        int64_t takes = 1000000LL * count, until = now() + takes;
        if (argc > 1) while (now() < until) {}
        else nanosleep(&(struct timespec){takes / 1000000000, takes % 1000000000}, NULL);
        said = 5 + 16 * count;
        memcpy(out, &said, 4);
        out[4] = 4;
        memcpy(out + 5, &count, 4);
        for (uint32_t i = 0; i < count; i++) {
            double fitness = 0;
            memcpy(out + 9 + 16 * i, in + 9 + 16 * i, 8);
            memcpy(out + 17 + 16 * i, &fitness, 8);
        }
        put(out, 4 + said);
    }
}
