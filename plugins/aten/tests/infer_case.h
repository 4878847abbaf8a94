/* Calls of operators as text (make_infer_cases.py): a reader, and the world that shape rules see in tests. */
#ifndef AT_INFER_CASE_H
#define AT_INFER_CASE_H

#include "shape.h"

#include <stddef.h>

#define MAX_CASE_VALUES 64
#define MAX_CASE_ARGS 32

typedef struct infer_case {
  uint32_t row; /* of at_rows; AT_N_OPS: the operator is not known */
  const char *text;
  aot_arg_t args[MAX_CASE_ARGS];
  uint32_t n_args;
  aot_type_t values[MAX_CASE_VALUES]; /* what arguments name */
  uint32_t n_values;
  aot_type_t expected[MAX_CASE_VALUES]; /* kind NONE: no tensor */
  uint32_t n_expected;
  aot_type_t got[MAX_CASE_VALUES];
  uint32_t n_got;
  int64_t unknown_min, unknown_max; /* the range of the symbol that the rule has made, if any */
  int64_t pool[4096];
  uint32_t n_pool;
} infer_case_t;

/* The descriptor of a row, parsed once. */
const aot_op_desc_t *case_desc(uint32_t row);
/* 1 when the line could be read. */
int case_read(infer_case_t *c, const char *line);
/* Runs the rule into c->got. */
aot_status_t case_run(infer_case_t *c, at_infer_t *infer);
/* 1 when results agree in kind, dtype, shape, strides; and in offset when `offsets`. */
int case_agrees(const infer_case_t *c, int offsets);
void case_print_type(const aot_type_t *t, char *out, size_t capacity);

#endif
