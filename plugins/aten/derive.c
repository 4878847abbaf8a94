#include "derive.h"

#include <aot/inline.h>

#include <string.h>

/* Arguments of a factory that the given tensor answers. All of them are there, or none is one. */
static int is_factory_argument(const aot_schema_arg_t *a) {
  static const char *const names[] = {"dtype", "layout", "device", "pin_memory"};
  size_t i;
  for (i = 0; i < sizeof names / sizeof names[0]; i++)
    if (aot_str_eq(a->name, aot_str(names[i]))) return 1;
  return 0;
}

static int is_factory(const sch_schema_t *s) {
  uint32_t i, n = 0;
  for (i = 0; i < s->n_args; i++) n += (uint32_t)is_factory_argument(&s->args[i]);
  return n == 4;
}

static void mark_written(aot_schema_arg_t *a, uint32_t set) {
  a->flags |= AOT_SARG_WRITE;
  a->alias_set = (int32_t)set + 1;
}

static void forget_aliases(sch_schema_t *s) {
  uint32_t i;
  for (i = 0; i < s->n_args; i++) s->args[i].alias_set = 0;
  for (i = 0; i < s->n_results; i++) {
    s->results[i].alias_set = 0;
    s->results[i].name.size = 0;
  }
}

/* The next word of *at; it moves on. */
static aot_str_t next_word(const char **at) {
  aot_str_t word;
  while (**at == ' ') (*at)++;
  word.data = *at;
  word.size = strcspn(*at, " ");
  *at += word.size;
  return word;
}

static aot_status_t add_outs(sch_schema_t *s, const char *names, const sch_memory_t *memory) {
  aot_schema_arg_t *args = memory->alloc(memory->self, sizeof(void *), (s->n_args + s->n_results) * sizeof *args);
  int factory = is_factory(s), lists = 0;
  uint32_t i, n = 0;
  if (args == NULL) return AOT_E_EXHAUSTED;
  for (i = 0; i < s->n_args; i++)
    if (!factory || !is_factory_argument(&s->args[i])) args[n++] = s->args[i];
  for (i = 0; i < s->n_results; i++) {
    aot_schema_arg_t *a = &args[n++];
    *a = s->results[i];
    a->name = next_word(&names);
    a->flags |= AOT_SARG_KWONLY;
    mark_written(a, i);
    mark_written(&s->results[i], i);
    lists |= (a->flags & AOT_SARG_LIST) != 0;
  }
  s->args = args;
  s->n_args = n;
  if (lists) s->n_results = 0;
  return AOT_OK;
}

static void write_first(sch_schema_t *s) {
  uint32_t i;
  for (i = 0; i < s->n_results && i < s->n_args; i++) mark_written(&s->args[i], i);
  if (s->args[0].flags & AOT_SARG_LIST) s->n_results = 0;
  if (s->n_results == 0) return;
  s->n_results = 1;
  mark_written(&s->results[0], 0);
}

static aot_status_t print_text(const sch_schema_t *s, const sch_memory_t *memory, aot_str_t *out) {
  char few[1024], *text;
  size_t size = sch_print(s, few, sizeof few);
  text = memory->alloc(memory->self, 1, size + 1);
  if (text == NULL) return AOT_E_EXHAUSTED;
  if (size < sizeof few) memcpy(text, few, size + 1);
  else sch_print(s, text, size + 1);
  *out = aot_str(text);
  return AOT_OK;
}

static aot_schema_arg_t *copy_args(const aot_schema_arg_t *args, uint32_t n, const sch_memory_t *memory) {
  aot_schema_arg_t *out = memory->alloc(memory->self, sizeof(void *), (n + 1) * sizeof *out);
  if (out != NULL && n > 0) memcpy(out, args, n * sizeof *out);
  return out;
}

/* The schema that a derived row starts from: a copy of its operator's. */
static aot_status_t copy_schema(const aot_op_desc_t *of, const sch_memory_t *memory, sch_schema_t *out) {
  memset(out, 0, sizeof *out);
  out->n_args = of->n_args;
  out->n_results = of->n_results;
  out->args = copy_args(of->args, of->n_args, memory);
  out->results = copy_args(of->results, of->n_results, memory);
  return out->args != NULL && out->results != NULL ? AOT_OK : AOT_E_EXHAUSTED;
}

aot_status_t at_row_schema(const at_row_t *row, const aot_op_desc_t *descs, const sch_memory_t *memory,
                           sch_schema_t *out, aot_str_t *out_text, sch_error_t *out_error) {
  memset(out_error, 0, sizeof *out_error);
  if (row->form != AT_OUT && row->form != AT_IN_PLACE) {
    *out_text = aot_str(row->schema);
    return sch_parse(*out_text, memory, out, out_error);
  }
  *out_text = aot_str(row->of->schema);
  AOT_TRY(copy_schema(&descs[row->of - at_rows], memory, out));
  forget_aliases(out);
  if (row->form == AT_OUT) AOT_TRY(add_outs(out, row->outs, memory));
  else write_first(out);
  return print_text(out, memory, out_text);
}

uint32_t at_row_flags(const at_row_t *row) {
  if (row->form != AT_OUT && row->form != AT_IN_PLACE) return row->flags;
  return row->flags | (row->of->flags & ~(uint32_t)(AOT_OP_COMPOSITE | AOT_OP_CREATION | AOT_OP_NO_GRAD | AOT_OP_COPY));
}
