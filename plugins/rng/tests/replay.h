/* Programs over different lists of stages, and what a step of them gives, bit by bit. */
#ifndef RG_REPLAY_H
#define RG_REPLAY_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <step/api.h>

/* model: a path from the root of the tree. Stages with blanks between them; "shuffle:seed=3" gives an option, a comma
 * the next. */
/* compiled; a failure fails the test with what was informed of */
aothost_t *replay_open(const char *model, const char *stages);
aoth_step_t *replay_step(aothost_t *h);

/* Outputs and gradients of the last step as bytes, keys included; grows. */
typedef struct replay_bits {
  char *data;
  size_t size, capacity;
} replay_bits_t;
void replay_keep(aothost_t *h, replay_bits_t *bits);
int replay_same(const replay_bits_t *a, const replay_bits_t *b);
void replay_free(replay_bits_t *bits);

aot_tensor_t replay_tensor(void *data, int32_t dtype, int32_t rank, const int64_t *sizes, const int64_t *strides);
/* An output or gradient, contiguous or not, as doubles in row-major order; free it. */
double *replay_numbers(aothost_t *h, const char *key, int64_t *out_n);

#endif
