#include "schema_op.h"

#include <aot/inline.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static aot_status_t bad(aot_declare_error_t *e, uint32_t byte, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static aot_status_t bad(aot_declare_error_t *e, uint32_t byte, const char *format, ...) {
  va_list list;
  va_start(list, format);
  vsnprintf(e->message, sizeof e->message, format, list);
  va_end(list);
  e->byte = byte;
  return AOT_E_INVALID;
}

static uint32_t find(aot_str_t text, const char *what) {
  size_t n = strlen(what);
  for (uint32_t i = 0; i + n <= text.size; i++)
    if (memcmp(text.data + i, what, n) == 0) return i;
  return (uint32_t)text.size;
}

/* mylib::split.out -> mylib.split.out */
static aot_status_t full_name(const sch_schema_t *s, aot_str_t text, const sch_memory_t *memory, aot_str_t *out,
                              aot_declare_error_t *e) {
  const aot_str_t overload = s->overload.size ? s->overload : aot_str("default");
  const uint32_t colons = find(s->name, "::"), rest = colons + 2;
  const uint32_t at = s->name.size ? (uint32_t)(s->name.data - text.data) : 0;
  if (!s->name.size) return bad(e, 0, "a declaration begins with the operator's name: mylib::name(..) -> ..");
  if (colons == 0 || rest >= s->name.size)
    return bad(e, at, "'%.*s' has no namespace: write it as mylib::%.*s", (int)s->name.size, s->name.data,
               (int)s->name.size, s->name.data);
  const uint64_t n = s->name.size - 1 + 1 + overload.size;
  char *name = memory->alloc(memory->self, 1, n + 1);
  if (!name) return AOT_E_EXHAUSTED;
  snprintf(name, (size_t)n + 1, "%.*s.%.*s.%.*s", (int)colons, s->name.data, (int)(s->name.size - rest),
           s->name.data + rest, (int)overload.size, overload.data);
  *out = (aot_str_t){name, n};
  return AOT_OK;
}

/* The parts that a backend and the stages can do something with. */
static aot_status_t check_parts(const sch_schema_t *s, aot_str_t text, aot_declare_error_t *e) {
  const uint32_t arrow = find(text, "->");
  for (uint32_t i = 0; i < s->n_args; i++) {
    const aot_schema_arg_t *a = &s->args[i];
    if ((a->flags & AOT_SARG_WRITE) && a->type != AOT_STYPE_TENSOR)
      return bad(e, (uint32_t)(a->name.data - text.data), "argument '%.*s' is written and no tensor: only tensors are",
                 (int)a->name.size, a->name.data);
    if (a->type == AOT_STYPE_GRAPH || (a->flags & AOT_SARG_VARIADIC))
      return bad(e, 0, "an operator that owns graphs, or takes any number of arguments, cannot be declared");
  }
  for (uint32_t r = 0; r < s->n_results; r++) {
    const aot_schema_arg_t *result = &s->results[r];
    uint32_t written = 0;
    if (result->type != AOT_STYPE_TENSOR) return bad(e, arrow, "result %u is no tensor: only tensors are supported", r);
    for (uint32_t i = 0; i < s->n_args; i++)
      written |= s->args[i].alias_set == result->alias_set && (s->args[i].flags & AOT_SARG_WRITE);
    if (result->alias_set != 0 && !written)
      return bad(e, arrow,
                 "result %u is a view of an argument: what the view is cannot be said in a schema, a plugin has to", r);
    if (result->alias_set != 0 && (result->flags & AOT_SARG_LIST))
      return bad(e, arrow, "result %u is a list of written tensors, which is not supported", r);
  }
  return AOT_OK;
}

aot_status_t dc_declare(aot_str_t schema, const sch_memory_t *memory, aot_op_desc_t *out,
                        aot_declare_error_t *out_error) {
  sch_schema_t s;
  sch_error_t wrong;
  const aot_status_t status = sch_parse(schema, memory, &s, &wrong);
  memset(out, 0, sizeof *out);
  if (status == AOT_E_INVALID) return bad(out_error, wrong.at, "%s", wrong.message);
  if (status != AOT_OK) return status;
  AOT_TRY(full_name(&s, schema, memory, &out->name, out_error));
  AOT_TRY(check_parts(&s, schema, out_error));
  const uint32_t open = find(schema, "(");
  out->struct_size = sizeof *out;
  out->flags = AOT_OP_NO_GRAD;
  for (uint32_t i = 0; i < s.n_args; i++)
    if (s.args[i].flags & AOT_SARG_WRITE) out->flags |= AOT_OP_WRITES;
  out->schema = (aot_str_t){schema.data + open, schema.size - open};
  out->group = aot_str("declared");
  out->doc = aot_str("declared by its schema");
  out->args = s.args;
  out->n_args = s.n_args;
  out->results = s.results;
  out->n_results = s.n_results;
  return AOT_OK;
}
