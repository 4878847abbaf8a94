/* aot/ext/encodings.h - extension "aot.encodings/1" of a backend: which memory spaces and encodings it knows.
 *
 * The host asks it about every type of the program that names one, before it has the backend compile. A backend without
 * this extension knows none, and a program that holds one is refused with the node or the input that has it: no kernel
 * reads bytes that it takes for something else. */
#ifndef AOT_EXT_ENCODINGS_H
#define AOT_EXT_ENCODINGS_H

#include <aot/base.h>

#define AOT_EXT_ENCODINGS "aot.encodings/1"

typedef struct aot_ext_encodings {
  aot_table_t head;
  /* 1: a value of this type can be read and written; 0: not. It is a tensor with a memory space or an encoding.
   * [stage-exclusive] */
  int32_t(AOT_CALL *knows)(const struct aot_ext_encodings *x, aot_ctx_t *ctx, aot_prog_t *prog, const aot_type_t *type);
} aot_ext_encodings_t;

#endif
