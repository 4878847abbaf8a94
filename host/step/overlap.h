/* Do the inputs of a call share memory, and does it matter to the program?
 *
 *     duplicates    same first element, dtype, sizes, strides, and both or neither require a gradient: one tensor,
 *                   passed twice
 *     overlapping   at least one element in common
 *     independent   all else, also when the elements of one are between those of another
 *
 * A duplicate matters when the program changes one of them, numbers or shape, or gives one a gradient (which both share
 * then). An overlap matters when the program writes the numbers of one. Which elements are shared is counted, element
 * by element, and only where a writer's range meets another's: O(n log n + elements of those ranges). */
#ifndef AOTH_OVERLAP_H
#define AOTH_OVERLAP_H

#include "kit/base/arena.h"
#include <base/sink.h>
#include <ir/aliasing.h>
#include <step/tensor.h>

/* What the program does to a user input. */
#define AOTH_INPUT_WRITTEN 1u  /* its numbers */
#define AOTH_INPUT_RESHAPED 2u /* its sizes and strides */
#define AOTH_INPUT_GRADIENT 4u /* it has a gradient */
#define AOTH_INPUT_REQUIRES 8u /* it requires one */

typedef struct aoth_call_input {
  const aoth_tensor_t *given;    /* checked: inside its storage */
  const aoth_tensor_t *declared; /* as the program was compiled for, under the sizes of this call */
  uint32_t traits;               /* AOTH_INPUT_* */
} aoth_call_input_t;

/* *out: in the arena; no rows when nothing matters. AOT_E_UNIMPLEMENTED, with a complaint, for a written overlap that
 * no one storage of elements can represent: different dtypes, or elements that are not a whole number of elements
 * apart. */
aot_status_t aoth_overlap_find(const aoth_call_input_t *inputs, uint32_t n, kit_arena_t *arena, aoth_sink_t *sink,
                               aoth_aliasing_t *out);

#endif
