/* Rules of opsets: rows against schema text, flags against marks. */
#include <sdk/conform/conform_trial.h>

#include <aot/inline.h>
#include <ctype.h>
#include <sandbox/call.h>
#include <string.h>

/* ---- schema text: "(Tensor self, int[2] pad=0, *, bool flag=False) -> (Tensor a, Tensor b)" ---- */

/* The piece from *at to the next comma of the list, or its ')'; empty after the last. */
static aot_str_t next_piece(const char **at, const char *end) {
  int depth = 0, quoted = 0;
  const char *begin = *at;
  for (; *at < end; ++*at) {
    const char c = **at;
    if (c == '"' || c == '\'') quoted = !quoted;
    if (quoted) continue;
    if (c == '(' || c == '[') depth++;
    if (depth == 0 && (c == ',' || c == ')')) break;
    if (c == ')' || c == ']') depth--;
  }
  aot_str_t piece = {begin, (uint64_t)(*at - begin)};
  while (piece.size && isspace((unsigned char)*piece.data)) piece.data++, piece.size--;
  if (*at < end && **at == ',') ++*at;
  return piece;
}

static int has_char(aot_str_t s, char c) { return s.size && memchr(s.data, c, (size_t)s.size); }

/* The last word before the default. */
static aot_str_t name_of(aot_str_t piece) {
  const char *equals = has_char(piece, '=') ? memchr(piece.data, '=', (size_t)piece.size) : piece.data + piece.size;
  const char *begin = equals;
  while (begin > piece.data && (isalnum((unsigned char)begin[-1]) || begin[-1] == '_')) begin--;
  return (aot_str_t){begin, (uint64_t)(equals - begin)};
}

static int wrong_arg(aoth_trial_t *t, const aot_op_desc_t *d, const aot_schema_arg_t *a, aot_str_t piece, int kwonly) {
  const char *wrong = NULL;
  if (!aot_str_eq(name_of(piece), a->name)) wrong = "has another name in the schema";
  else if (has_char(piece, '=') != !!(a->flags & AOT_SARG_HAS_DEFAULT))
    wrong = "has a default in one of schema and row";
  else if (has_char(piece, '!') != !!(a->flags & AOT_SARG_WRITE)) wrong = "is written by one of schema and row";
  else if (kwonly != !!(a->flags & AOT_SARG_KWONLY)) wrong = "is given by keyword in one of schema and row";
  if (wrong)
    aoth_trial_end(t, AOTH_CONFORM_FAILED, "operator %.*s: argument '%.*s' %s", (int)d->name.size, d->name.data,
                   (int)a->name.size, a->name.data, wrong);
  return wrong != NULL;
}

/* 1: it agrees; 0: reported. */
static int check_schema(aoth_trial_t *t, const aot_op_desc_t *d) {
  const char *at = d->schema.data, *end = at + d->schema.size;
  uint32_t n = 0;
  int kwonly = 0;
  if (d->n_args && (d->args[d->n_args - 1].flags & AOT_SARG_VARIADIC)) return 1; /* its text has no form of PyTorch's */
  if (at < end && *at == '(') at++;
  for (aot_str_t piece; (piece = next_piece(&at, end)).size;) {
    if (piece.data[0] == '*') {
      kwonly = 1;
      continue;
    }
    if (n < d->n_args && wrong_arg(t, d, &d->args[n], piece, kwonly)) return 0;
    n++;
  }
  if (n != d->n_args)
    aoth_trial_end(t, AOTH_CONFORM_FAILED, "operator %.*s has %u arguments, its schema %u: %.*s", (int)d->name.size,
                   d->name.data, d->n_args, n, (int)d->schema.size, d->schema.data);
  return n == d->n_args;
}

/* ---- flags and marks ---- */

static int has_set(const aot_schema_arg_t *args, uint32_t n, int32_t set) {
  for (uint32_t i = 0; i < n; i++)
    if (args[i].alias_set == set) return 1;
  return 0;
}

static const char *wrong_marks(const aot_op_desc_t *d) {
  int writes = 0;
  for (uint32_t i = 0; i < d->n_args; i++) {
    const aot_schema_arg_t *a = &d->args[i];
    writes |= (a->flags & AOT_SARG_WRITE) != 0;
    if (a->write_if &&
        (a->write_if < 0 || (uint32_t)a->write_if > d->n_args || d->args[a->write_if - 1].type != AOT_STYPE_BOOL))
      return "writes an argument when another one is true that is no bool";
  }
  if (writes != !!(d->flags & AOT_OP_WRITES)) return "is marked to write, or has a written argument, and not both";
  for (uint32_t i = 0; i < d->n_results; i++) {
    const int32_t set = d->results[i].alias_set;
    if (set && set != AOT_ALIAS_ANY && !has_set(d->args, d->n_args, set))
      return "has a result that shares memory with no argument";
  }
  if (!memchr(d->name.data ? d->name.data : "", '.', (size_t)d->name.size)) return "has no namespace in its name";
  return NULL;
}

/* ---- all of them ---- */

static void each_operator(aoth_trial_t *t, int (*check)(aoth_trial_t *t, const aot_op_desc_t *d)) {
  aoth_instance_t unit;
  aot_op_desc_t d;
  if (!aoth_trial_is_first(t) || !aoth_trial_judge(t, aoth_instance_try(t->s, t->stage, &unit))) return;
  const aot_opset_t *o = &unit.table.opset;
  aoth_trial_about(t, "%llu operators", (unsigned long long)o->n_ops);
  if (!o->n_ops) t->end = AOTH_CONFORM_NOT;
  for (uint64_t i = 0; i < o->n_ops; i++)
    if (aot_import(&d, sizeof d, o->ops[i]) != AOT_OK || !check(t, &d)) return;
}

static int check_marks(aoth_trial_t *t, const aot_op_desc_t *d) {
  const char *wrong = wrong_marks(d);
  if (wrong) aoth_trial_end(t, AOTH_CONFORM_FAILED, "operator %.*s %s", (int)d->name.size, d->name.data, wrong);
  return wrong == NULL;
}

void aoth_rule_schemas(aoth_trial_t *t) { each_operator(t, check_schema); }

void aoth_rule_marks(aoth_trial_t *t) {
  each_operator(t, check_marks);
  if (t->end != AOTH_CONFORM_PASSED) return;
  aoth_ops_t *ops = aoth_ops_create(); /* names: the host's own table refuses one that is there */
  aoth_instance_t unit;
  if (ops && aoth_instance_try(t->s, t->stage, &unit) == AOT_OK &&
      aoth_ops_add(ops, &unit.table.opset, t->stage->use, t->s->config.sink) != AOT_OK) {
    t->end = AOTH_CONFORM_FAILED;
    aoth_trial_complaint(t, t->why, sizeof t->why);
  }
}
