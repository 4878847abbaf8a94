/* Two files of results (keys: step.h), element by element. */
#ifndef AOTH_DIFFERENCES_H
#define AOTH_DIFFERENCES_H

#include <trainer/tensors/compare.h>
#include <trainer/tensors/safetensors.h>

/* Every key of either, in order; NULL: that file has none of it. `each` may not keep what it is given. */
void aoth_results_walk(const aoth_st_t *got, const aoth_st_t *wanted,
                       void (*each)(void *self, const char *key, const aoth_tensor_t *got, const aoth_tensor_t *wanted),
                       void *self);

typedef struct aoth_difference {
  uint32_t n_keys, n_differ; /* that both have; of them, beyond tolerance */
  char key[256];             /* the first that differs: outputs before gradients, then what else there is; "": none */
  char place[96];            /* "[1, 3]", of the first element; "": a scalar, or the types differ */
  double got, wanted;        /* the numbers there */
  int64_t n_bad, numel;      /* elements of that key, n_bad 0: the types differ */
} aoth_difference_t;

/* Keys that both have: |a - b| <= tolerance * (|b| + the largest |b| / 10) + 1e-7, sums that cancel being as exact as
 * their terms allow. Answers n_differ. */
uint32_t aoth_results_differ(const aoth_st_t *got, const aoth_st_t *wanted, double tolerance, aoth_difference_t *out);
/* "output.0[1, 3] is 2, was 1.5 (3 of 12 elements)" */
void aoth_difference_print(const aoth_difference_t *d, const char *was, char *out, size_t size);

#endif
