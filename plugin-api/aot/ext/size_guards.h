/* aot/ext/size_guards.h - extension "aot.size-guards/1", offered by the host: conditions on sizes under which a program
 * is valid.
 *
 * A program that was traced for one branch (`if x.numel() > 20`) computes something else for the sizes of the other.
 * A guard is a condition over symbols that the host checks in each call, as soon as its symbols are known: sizes that
 * break it are refused with its text. Equalities among guards are used by the shape environment: dimensions that they
 * make equal are one expression, as far as they can be solved. */
#ifndef AOT_EXT_SIZE_GUARDS_H
#define AOT_EXT_SIZE_GUARDS_H

#include <aot/graph.h>

#define AOT_EXT_SIZE_GUARDS "aot.size-guards/1"

typedef struct aot_guard_info {
  uint32_t struct_size, reserved;
  int64_t condition; /* a dimension: not 0 where the program is valid */
  aot_str_t text;    /* as the model's file has it, for messages; may be empty */
} aot_guard_info_t;

typedef struct aot_ext_size_guards {
  aot_table_t head;
  /* For importers: before the first leaf and the first node, so that every type is made with the guards known. A
   * condition that always holds leaves no guard; one that never holds is AOT_E_INVALID, reported. Undone with the
   * stage's other edits. [stage-exclusive] */
  aot_status_t(AOT_CALL *add)(const struct aot_ext_size_guards *x, aot_ctx_t *ctx, aot_prog_t *prog,
                              const aot_guard_info_t *guard);
  uint32_t(AOT_CALL *count)(const struct aot_ext_size_guards *x, aot_prog_t *prog);
  /* set out->struct_size first; the text lives as long as the program */
  aot_status_t(AOT_CALL *get)(const struct aot_ext_size_guards *x, aot_prog_t *prog, uint32_t i, aot_guard_info_t *out);
} aot_ext_size_guards_t;

#endif
