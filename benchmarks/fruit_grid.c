/* The fruit collection experiment as a plain C loop: the same work as esbas.kernels.fruit_grid.whole_run with four learners under SSBAS,
   from the same random numbers. benchmarks/fruit_grid.py compiles it and hands it the map and the tables of the normal draws. */

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { K = 4, A = 4, MAX_STEPS = 100, FAILURE = 200, HALF = 1 << 24, CHANCE_BITS = 29 };
static const double RIGHT = 3.6541528853610088;

typedef float Row __attribute__((vector_size(sizeof(float) * K))); /* one value per learner: what one instruction handles */
typedef int32_t Mask __attribute__((vector_size(sizeof(int32_t) * K)));

typedef struct { uint64_t a, b, c, counter; } Stream;

typedef struct {
    const float *width;     /* (256,) of a unit of abscissa */
    const int32_t *inside;  /* (256,) abscissas below lie inside the layer */
    const double *density;  /* (257,) at the right edge */
} Ziggurat;

static inline uint64_t next_word(Stream *s) {
    uint64_t word = s->a + s->b + s->counter;
    s->a = s->b ^ (s->b >> 11);
    s->b = s->c + (s->c << 3);
    s->c = ((s->c << 24) | (s->c >> 40)) + word;
    s->counter += 1;
    return word;
}

static inline double uniform(uint64_t word) { return ((double)(word >> 11) + 0.5) * 0x1p-53; }

static __attribute__((noinline)) float normal_beyond(Stream *s, const Ziggurat *z, uint64_t word) {
    for (;;) {
        int layer = word & 255;
        int32_t abscissa = (int32_t)((word >> 8) & 0x1FFFFFF) - HALF;
        float x = (float)abscissa * z->width[layer];
        if (abs(abscissa) < z->inside[layer]) return x;
        if (layer == 0) {
            for (;;) {
                double beyond = -log(uniform(next_word(s))) / RIGHT, y = -log(uniform(next_word(s)));
                if (y + y > beyond * beyond) return (float)(abscissa < 0 ? -RIGHT - beyond : RIGHT + beyond);
            }
        }
        double height = z->density[layer] + uniform(next_word(s)) * (z->density[layer + 1] - z->density[layer]);
        if (height < exp(-0.5 * (double)x * (double)x)) return x;
        word = next_word(s);
    }
}

static inline float normal(Stream *s, const Ziggurat *z, uint64_t word) {
    int layer = word & 255;
    int32_t abscissa = (int32_t)((word >> 8) & 0x1FFFFFF) - HALF;
    if (abs(abscissa) < z->inside[layer]) return (float)abscissa * z->width[layer];
    return normal_beyond(s, z, word);
}

static int choose(const int64_t *counts, const int64_t *sums, int64_t total, double xi) {
    double best = -INFINITY;
    int arm = 0;
    for (int k = 0; k < K; k++) {
        if (counts[k] == 0) return k;
        double index = -(double)sums[k] / (double)counts[k] + sqrt(xi * log((double)total) / (double)counts[k]);
        if (index > best) {
            best = index;
            arm = k;
        }
    }
    return arm;
}

static inline Row largest(Row x, Row y) {
    Mask above = x > y;
    return (Row)((above & (Mask)x) | (~above & (Mask)y));
}

static inline int greedy(const Row *values, int arm) {
    int action = 0;
    float best = values[0][arm];
    if (values[1][arm] > best) { action = 1; best = values[1][arm]; }
    if (values[2][arm] > best) { action = 2; best = values[2][arm]; }
    return values[3][arm] > best ? 3 : action;
}

void whole_run(const uint64_t *seed, const uint32_t *following, const float *fruits, int64_t states, const uint32_t *starts,
               int64_t n_starts, const double *rates, double gamma, double epsilon, double horizon, double xi, const int64_t *edges,
               int64_t bins, const float *width, const int32_t *inside, const double *density, int64_t *restrict transitions,
               int64_t *restrict objective, int64_t *restrict selections) {
    Stream stream = {seed[0], seed[1], seed[2], seed[3]};
    const Ziggurat ziggurat = {width, inside, density};
    Row (*restrict table)[A] = aligned_alloc(sizeof(Row), (size_t)states * sizeof *table);
    memset(table, 0, (size_t)states * sizeof *table);
    const int64_t length = edges[bins - 1] / 2 + 1;
    uint16_t *restrict window = calloc((size_t)length, sizeof *window);
    int64_t counts[K] = {0}, sums[K] = {0}, total = 0, newest = 0, oldest = 0, number = 0;
    Row rate;
    for (int k = 0; k < K; k++) rate[k] = (float)rates[k];
    for (int64_t b = 0; b < bins; b++) {
        while (number < edges[b]) {
            number++;
            double now = epsilon * fmax(0.0, 1 - (double)(number - 1) / horizon);
            int64_t explore_below = (int64_t)ceil(now * (1 << CHANCE_BITS));
            int arm = choose(counts, sums, total, xi);
            uint32_t state = starts[((int64_t)(next_word(&stream) >> 35) * n_starts) >> CHANCE_BITS];
            int steps = 0;
            do {
                uint64_t word = next_word(&stream);
                int action = (int64_t)(word >> 35) < explore_below ? (int)((word >> 33) & 3) : greedy(table[state], arm);
                uint32_t next = following[state * A + action];
                float reward = fruits[state * A + action] + normal(&stream, &ziggurat, word);
                const Row *ahead = table[next];
                Row q = table[state][action];
                Row best = largest(largest(ahead[0], ahead[1]), largest(ahead[2], ahead[3]));
                table[state][action] = q + rate * (reward + (float)gamma * best - q);
                state = next;
                steps++;
            } while (state != states - 1 && steps < MAX_STEPS);
            int value = state == states - 1 ? steps : FAILURE;
            transitions[b] += steps;
            objective[b] += value;
            selections[b * K + arm]++;
            counts[arm]++;
            sums[arm] += value;
            total++;
            window[newest] = (uint16_t)(value * K + arm);
            newest = newest + 1 < length ? newest + 1 : 0;
            if (number % 2 == 0) {
                int old = window[oldest];
                oldest = oldest + 1 < length ? oldest + 1 : 0;
                counts[old % K]--;
                sums[old % K] -= old / K;
                total--;
            }
        }
    }
    free(table);
    free(window);
}
