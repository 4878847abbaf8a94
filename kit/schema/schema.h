/* Operator schemas: the text of PyTorch's native_functions.yaml as plain arrays.
 *
 *     "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"   (the name may be left out)
 *
 * Every type, alias mark and default of that grammar is accepted, and what only the run-time registry knows (Dict,
 * Future, tuples, class types: they come out as AOT_STYPE_ANY). Two base types are ours: Graph and Op, for regions of
 * higher-order operators. `...` as the last argument or as the result represents any number of anything: one entry with
 * VARIADIC.
 *
 * What the arrays do not keep: int against SymInt (both AOT_STYPE_INT), which member of a set union (a|b) is meant
 * (AOT_ALIAS_ANY, "may be anything"), the set after the call in (a -> *). */
#ifndef PLUGINS_COMMON_SCHEMA_H
#define PLUGINS_COMMON_SCHEMA_H

#include <aot/base.h>
#include <aot/opset.h>
#include <aot/status.h>
#include <stddef.h>

/* Where the arrays and strings go; zeroed memory, or NULL when there is none left. */
typedef struct sch_memory {
  void *self;
  void *(*alloc)(void *self, uint64_t align, uint64_t nbytes);
} sch_memory_t;

typedef struct sch_schema {
  aot_str_t name;     /* "aten::add" as written; empty when the text starts at its arguments */
  aot_str_t overload; /* "Tensor", or empty */
  aot_schema_arg_t *args, *results;
  uint32_t n_args, n_results;
} sch_schema_t;

typedef struct sch_error {
  uint32_t at; /* byte of the text */
  char message[160];
} sch_error_t;

/* Names and strings of the result point into text or into memory. AOT_E_INVALID with *out_error, AOT_E_EXHAUSTED. */
aot_status_t sch_parse(aot_str_t text, const sch_memory_t *memory, sch_schema_t *out, sch_error_t *out_error);

/* Canonical text, which parses back to equal arrays. Writes at most capacity bytes with the terminator, answers the
 * length that it needs without it, as snprintf does. */
size_t sch_print(const sch_schema_t *s, char *buffer, size_t capacity);

#endif
