/* Where the user inputs of each call come from: made up, a safetensors file, or windows of a file of tokens.
 *
 *     random        floats are normal; integers are uniform over the range of the model's sample input, or 0 and 1
 *                   when the archive has no sample; bool is a fair coin. New numbers at every call.
 *     safetensors   key input.K for user input K; or, when no key has this form, as many tensors as inputs, named 0,
 *                   1, .. A tensor with one more dimension than the input holds one batch a step, used in turn and
 *                   again from the start; otherwise the same tensor serves every call.
 *     tokens        numbers in a row. A batch is `batch` windows that start anywhere with equal chance; one input gets
 *                   tokens[i .. i+block), the other the tokens that follow each, tokens[i+1 .. i+block+1).
 *
 * Symbolic sizes of the model take the values of its export, or the feed's own batch and block. */
#ifndef AOTH_FEED_H
#define AOTH_FEED_H

#include <base/sink.h>
#include <config/pipeline.h>
#include <trainer/tensors/random.h>
#include <step/step.h>

typedef struct aoth_feed aoth_feed_t;

/* Several ranks share the batches out: of n in a row rank r has the r-th, as if one rank took them as micro steps. A
 * `batch` of the spec is what all ranks have together. */
typedef struct aoth_feed_ranks {
  uint32_t rank, n;
  int64_t first_draw; /* of the random numbers that the program draws on this rank, where the run begins at 0 */
} aoth_feed_ranks_t;

/* spec and step are borrowed. Errors are located at the spec. */
aot_status_t aoth_feed_open(const aoth_data_spec_t *spec, const aoth_feed_ranks_t *ranks, const aoth_step_t *step,
                            aot_prog_t *prog, aoth_sink_t *sink, aoth_feed_t **out);
void aoth_feed_close(aoth_feed_t *f); /* NULL is fine */
/* The inputs of call number `step` (from 0). Draws from r alone, so that r and step say where a run is. The tensors
 * are valid until the next call. */
aot_status_t aoth_feed_next(aoth_feed_t *f, aoth_random_t *r, int64_t step, const aoth_tensor_t **out, uint32_t *out_n);
uint64_t aoth_feed_items(const aoth_feed_t *f);   /* per call of all ranks: tokens, or rows of the first input */
const char *aoth_feed_unit(const aoth_feed_t *f); /* "tokens" or "rows" */

#endif
