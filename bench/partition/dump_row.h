/* One row of a dumped joint graph. */
#ifndef BENCH_DUMP_ROW_H
#define BENCH_DUMP_ROW_H

#include <aot/base.h>
#include <jansson.h>

enum { JD_INPUT, JD_CALL, JD_OUTPUT, JD_MERGED };

typedef struct jd_row {
  int32_t kind; /* JD_* */
  const char *name, *target;
  const json_t *inputs; /* n_inputs numbers of earlier rows */
  uint32_t n_inputs;
  uint64_t nbytes; /* 0 without a value */
  uint32_t tag;    /* AOT_NODE_* */
  int has_value, is_getitem, is_late, is_seed;
  /* found out by looking at all rows */
  int is_element, read_whole;
  uint32_t n_elements;
} jd_row_t;

/* i: the row's number. 0, or -1 with what is wrong in *out_what (static text). */
int jd_read_row(const json_t *json, uint32_t i, jd_row_t *out, const char **out_what);
static inline uint32_t jd_input(const jd_row_t *row, uint32_t k) {
  return (uint32_t)json_integer_value(json_array_get(row->inputs, k));
}
/* What PyTorch's lists say of an operator, as AOT_OP_* flags; 0: it stands in none. */
uint32_t jd_flags(aot_str_t name);

#endif
