#include <sdk/conform/conform_calls.h>

#include <aot/inline.h>
#include <base/file.h>
#include <sandbox/session.h>
#include <string.h>

/* Types of the first two tensors, and of the others: one shape, matrices that can be multiplied, images with weights,
 * images with rows of five numbers (a box of one image). */
static const struct way {
  const char *types[3];
  int is_float, is_f64;
} ways[AOTH_CALL_WAYS] = {
    {{"f64[3, 4]", "f64[3, 4]", "f64[3, 4]"}, 1, 1},    {{"f32[3, 4]", "f32[3, 4]", "f32[3, 4]"}, 1, 0},
    {{"f32[4, 4]", "f32[4, 4]", "f32[4]"}, 1, 0},       {{"f32[1, 4, 6, 6]", "f32[4, 4, 3, 3]", "f32[4]"}, 1, 0},
    {{"f32[1, 4, 8, 8]", "f32[3, 5]", "f32[3]"}, 1, 0}, {{"i64[3, 4]", "i64[3, 4]", "i64[3, 4]"}, 0, 0},
};

static int is_given(const aot_schema_arg_t *a) {
  return !(a->flags & (AOT_SARG_HAS_DEFAULT | AOT_SARG_OPTIONAL)) || (a->flags & AOT_SARG_WRITE);
}

int aoth_call_is_tensor(const aot_op_desc_t *d, uint32_t arg) {
  return d->args[arg].type == AOT_STYPE_TENSOR && is_given(&d->args[arg]);
}

uint32_t aoth_call_tensor(const aot_op_desc_t *d, uint32_t arg) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < arg; i++) n += aoth_call_is_tensor(d, i) != 0;
  return n;
}

int aoth_call_is_float(uint32_t way) { return ways[way].is_float; }
int aoth_call_is_f64(uint32_t way) { return ways[way].is_f64; }

/* What represents an argument that is no tensor. NULL: nothing is known that would. */
static const char *other_argument(const aot_schema_arg_t *a) {
  switch (a->type) {
    case AOT_STYPE_SCALAR:
    case AOT_STYPE_INT: return "1";
    case AOT_STYPE_FLOAT: return "0.5";
    case AOT_STYPE_BOOL: return "true";
    case AOT_STYPE_DTYPE: return "f32";
    default: return NULL;
  }
}

static int can_be_called(const aot_op_desc_t *d) {
  for (uint32_t i = 0; i < d->n_args; i++) {
    const aot_schema_arg_t *a = &d->args[i];
    if (a->flags & AOT_SARG_VARIADIC) return 0;
    if (is_given(a) && !aoth_call_is_tensor(d, i) && !other_argument(a)) return 0;
  }
  for (uint32_t i = 0; i < d->n_results; i++)
    if (d->results[i].type != AOT_STYPE_TENSOR || d->results[i].flags & AOT_SARG_LIST) return 0;
  return 1;
}

static int put_head(const aot_op_desc_t *d, uint32_t way, int is_trained, kit_text_t *out) {
  const char *grad = is_trained && ways[way].is_float ? " grad" : "";
  if (!can_be_called(d)) return 0;
  kit_text_z(out, "aot 1\nproperties imported\n");
  for (uint32_t pass = 0; pass < 2; pass++) { /* leaves, then inputs */
    if (pass) kit_text_z(out, "graph @main forward {\n");
    for (uint32_t i = 0; i < d->n_args; i++) {
      if (!aoth_call_is_tensor(d, i)) continue;
      const uint32_t n = aoth_call_tensor(d, i);
      const char *type = ways[way].types[n < 2 ? n : 2], *role = is_trained ? "parameter" : "user_input";
      if (pass) kit_text_f(out, "  in %%a%u = %s %u : %s%s\n", n, role, n, type, grad);
      else if (is_trained) kit_text_f(out, "leaf %u parameter \"a%u\" : %s%s\n", n, n, type, grad);
      else kit_text_f(out, "leaf %u user_input %u \"a%u\" : %s\n", n, n, n, type);
    }
  }
  return 1;
}

/* One tensor, or a list of it alone. */
static void put_argument(const aot_op_desc_t *d, uint32_t arg, const char *prefix, kit_text_t *out) {
  const aot_schema_arg_t *a = &d->args[arg];
  const int is_list = (a->flags & AOT_SARG_LIST) != 0;
  const int32_t n = is_list && a->list_size > 0 ? a->list_size : 1;
  if (a->flags & AOT_SARG_KWONLY) kit_text_f(out, "%.*s=", (int)a->name.size, a->name.data);
  if (is_list) kit_text_z(out, "[");
  for (int32_t k = 0; k < n; k++) {
    if (k) kit_text_z(out, ", ");
    if (aoth_call_is_tensor(d, arg)) kit_text_f(out, "%%%s%u", prefix, aoth_call_tensor(d, arg));
    else kit_text_z(out, other_argument(a));
  }
  if (is_list) kit_text_z(out, "]");
}

static void put_call(const aot_op_desc_t *d, const char *results, uint64_t other, const char *prefix, kit_text_t *out) {
  const char *between = " ";
  kit_text_z(out, "  ");
  for (uint32_t i = 0; i < d->n_results; i++) kit_text_f(out, "%s%%%s%u", i ? ", " : "", results, i);
  kit_text_f(out, "%s%.*s", d->n_results ? " = " : "", (int)d->name.size, d->name.data);
  for (uint32_t i = 0; i < d->n_args; i++) {
    const int is_left_out = d->args[i].flags & (AOT_SARG_HAS_DEFAULT | AOT_SARG_KWONLY) && !is_given(&d->args[i]);
    if (is_left_out) continue;
    kit_text_z(out, between);
    if (is_given(&d->args[i])) put_argument(d, i, i < 64 && other >> i & 1 ? prefix : "a", out);
    else kit_text_z(out, "none");
    between = ", ";
  }
  kit_text_z(out, "\n");
}

/* ---- programs around calls ---- */

/* A piece of a line with $N, $MORE and $LESS filled in. */
static void put_filled(const char *at, size_t n, const aoth_call_about_t *a, uint32_t number, kit_text_t *out) {
  for (const char *end = at + n; at < end; at++) {
    const size_t left = (size_t)(end - at);
    if (left >= 5 && strncmp(at, "$MORE", 5) == 0) kit_text_f(out, "%.17g", 1 + a->step), at += 4;
    else if (left >= 5 && strncmp(at, "$LESS", 5) == 0) kit_text_f(out, "%.17g", 1 - a->step), at += 4;
    else if (left >= 2 && strncmp(at, "$N", 2) == 0) kit_text_f(out, "%u", number), at += 1;
    else kit_text_add(out, at, 1);
  }
}

static void put_outputs(const aoth_call_about_t *a, kit_text_t *out) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < a->d->n_results; i++) kit_text_f(out, "  out user_output %u = %%r%u\n", n++, i);
  for (uint32_t i = 0; i < a->d->n_args && i < 64; i++)
    if (a->other >> i & 1) kit_text_f(out, "  out user_output %u = %%c%u\n", n++, aoth_call_tensor(a->d, i));
}

static void put_line(const char *line, size_t n, const aoth_call_about_t *a, kit_text_t *out) {
  static const char head[] = "$HEAD", call[] = "$CALL ", each[] = "$EACH", outputs[] = "$OUT";
  uint32_t number = 0;
  for (uint32_t i = 0; i < a->d->n_args && i < 64; i++) {
    if (!(a->other >> i & 1)) continue;
    number = aoth_call_tensor(a->d, i);
    if (strncmp(line, each, strlen(each)) == 0) put_filled(line + strlen(each), n - strlen(each), a, number, out);
  }
  if (*line == ';' || strncmp(line, each, strlen(each)) == 0) return;
  if (strncmp(line, head, strlen(head)) == 0) put_head(a->d, a->way, a->is_trained, out);
  else if (strncmp(line, outputs, strlen(outputs)) == 0) put_outputs(a, out);
  else if (strncmp(line, call, strlen(call)) == 0) { /* names of one letter each */
    const char results[] = {line[strlen(call)], 0}, prefix[] = {line[strlen(call) + 2], 0};
    put_call(a->d, results, a->other, prefix, out);
  } else put_filled(line, n, a, number, out);
}

aot_status_t aoth_call_program(aoth_trial_t *t, const char *name, const aoth_call_about_t *a) {
  char path[1024];
  aoth_map_t map;
  kit_text_t text = {0};
  snprintf(path, sizeof path, "%s/%s.call", t->c->programs.folder, name);
  AOT_TRY(aoth_file_map(path, t->s->config.sink, &map));
  const char *all = kit_arena_text(t->c->arena, map.data, (size_t)map.nbytes);
  aoth_file_unmap(&map);
  for (const char *line = all; line && *line;) {
    const size_t n = strcspn(line, "\n") + 1;
    put_line(line, n, a, &text);
    line += n;
  }
  const aot_status_t status = aoth_trial_text(t, text.data ? text.data : "", text.size);
  kit_text_deinit(&text);
  return status;
}

uint32_t aoth_call_accepted(aoth_trial_t *t, const aot_op_desc_t *d, uint32_t way) {
  aoth_session_t *s = t->s;
  aoth_sink_t *own = s->config.sink;
  for (; way < AOTH_CALL_WAYS; way++) {
    kit_text_t text = {0};
    if (!put_head(d, way, 0, &text)) break;
    put_call(d, "r", 0, "", &text);
    for (uint32_t i = 0; i < d->n_results; i++) kit_text_f(&text, "  out user_output %u = %%r%u\n", i, i);
    kit_text_z(&text, "}\n");
    s->config.sink = s->ctx.sink = aoth_sink_create(NULL);
    const aot_status_t status = aoth_trial_text(t, text.data ? text.data : "", text.size);
    aoth_sink_destroy(s->config.sink);
    s->config.sink = s->ctx.sink = own;
    kit_text_deinit(&text);
    if (status == AOT_OK) return way;
  }
  return AOTH_CALL_WAYS;
}
