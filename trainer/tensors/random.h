/* Random numbers of the run time: batches, made-up inputs. Equal seeds give equal runs on every machine; the state is
 * four words, so that a checkpoint can hold it.
 *
 * xoshiro256++ 1.0 (Blackman, Vigna: Scrambled Linear Pseudorandom Number Generators, 2019), seeded by splitmix64 as
 * its authors advise. Bounded numbers: Lemire, Fast Random Integer Generation in an Interval, 2019. Normal numbers:
 * Marsaglia's polar method, 1964. */
#ifndef AOTH_RANDOM_H
#define AOTH_RANDOM_H

#include <stdint.h>

typedef struct aoth_random {
  uint64_t s[4];
} aoth_random_t;

void aoth_random_seed(aoth_random_t *r, uint64_t seed);
uint64_t aoth_random_u64(aoth_random_t *r);
uint64_t aoth_random_below(aoth_random_t *r, uint64_t bound); /* 0 .. bound-1, unbiased; bound 0 answers 0 */
double aoth_random_unit(aoth_random_t *r);                    /* [0, 1) with 53 bits */
double aoth_random_normal(aoth_random_t *r);

/* The state as 64 hexadecimal digits, and back; 0: the text is no state. */
void aoth_random_print(const aoth_random_t *r, char out[65]);
int aoth_random_parse(const char *text, aoth_random_t *out);

#endif
