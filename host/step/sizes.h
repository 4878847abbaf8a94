/* The values of a program's symbols, found from the sizes of the user inputs of a call.
 *
 * A dimension that is a bare symbol binds it; one that is linear in one symbol (2*s0 + 1) is solved; all others, and
 * every further occurrence, are checked. Symbols that only strides or offsets of inputs hold are as the tensors lie
 * that were given. Ranges of the shape environment are checked, then guards (aot/ext/size_guards.h), each as
 * soon as its symbols are known. Linear in dimensions and expressions. */
#ifndef AOTH_SIZES_H
#define AOTH_SIZES_H

#include <ir/program.h>
#include <step/tensor.h>

typedef struct aoth_sizes {
  uint32_t n;     /* symbols of the program */
  int64_t *value; /* n; the hint where not bound */
  unsigned char *bound;
  /* by expression: symbol number + 1 of an unbound symbol in it, 0: none; only while some are unbound */
  uint32_t *open;
  uint32_t n_open, open_capacity;
} aoth_sizes_t;

int aoth_sizes_init(aoth_sizes_t *s, aot_prog_t *prog); /* 0: no memory */
void aoth_sizes_deinit(aoth_sizes_t *s);
void aoth_sizes_clear(aoth_sizes_t *s, aot_prog_t *prog); /* nothing bound */

/* One user input of a call, for matching and for messages. */
typedef struct aoth_given {
  uint32_t ordinal;
  aot_str_t name;
  const aot_type_t *type;      /* expected, may hold symbols */
  const aoth_tensor_t *tensor; /* given */
} aoth_given_t;

/* Check dtype, rank and sizes of every input and bind the symbols. Complaints name the input, what is expected and what
 * was given: AOT_E_INVALID. */
aot_status_t aoth_sizes_bind(aoth_sizes_t *s, aot_prog_t *prog, const aoth_given_t *inputs, uint32_t n,
                             aoth_sink_t *sink);

/* A type with its dimensions evaluated; data NULL, nbytes the extent. SYMINT, SYMFLOAT, SYMBOOL values are 0-dim
 * tensors of i64, f64, bool; NONE and TOKEN have dtype 0. A dimension that needs an unbound symbol is an error that
 * names it; `what` says for whom. */
aot_status_t aoth_sizes_tensor(const aoth_sizes_t *s, aot_prog_t *prog, const aot_type_t *type, const char *what,
                               aoth_sink_t *sink, aoth_tensor_t *out);
/* Does some dimension of the type need an unbound symbol? */
int aoth_sizes_type_is_open(const aoth_sizes_t *s, const aot_type_t *type);
int aoth_sizes_dim_is_open(const aoth_sizes_t *s, int64_t dim);
/* What a run has learned: symbols[i] is a value, or AOT_SYMBOL_UNKNOWN. Unbound symbols are bound, ranges checked. */
aot_status_t aoth_sizes_learn(aoth_sizes_t *s, aot_prog_t *prog, const int64_t *symbols, uint64_t n, aoth_sink_t *sink);
/* One dimension. */
aot_status_t aoth_sizes_dim(const aoth_sizes_t *s, aot_prog_t *prog, int64_t dim, const char *what, aoth_sink_t *sink,
                            int64_t *out);
void aoth_type_print(aot_prog_t *prog, const aot_type_t *type, kit_text_t *out); /* f32[s0, 8] */

#endif
