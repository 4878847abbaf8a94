#include <sandbox/worker_result.h>

#include <string.h>

/* A terminated text, or NULL. What is read is where the other process had it, so nothing but its bytes are looked
 * at. */
static const char *wire_z(kit_wire_t *w, const char *text) {
  uint64_t copy, n = w->out && text ? strlen(text) + 1 : 0, *size = kit_wire_record(w, &n, &copy, sizeof copy);
  const char *at = kit_wire_block(w, text, *size, 1);
  if (!w->failed && *size) w->failed |= at[*size - 1] != 0;
  return w->failed || *size == 0 ? NULL : at;
}

static void wire_number(kit_wire_t *w, aoth_number_t *n) {
  n->name = wire_z(w, n->name);
  n->unit = wire_z(w, n->unit);
  n->text = wire_z(w, n->text);
  w->failed |= !n->name || !n->unit;
}

static void wire_env(kit_wire_t *w, aoth_env_read_t *e) {
  e->name = wire_z(w, e->name);
  e->value = wire_z(w, e->value);
  w->failed |= !e->name;
}

const aot_cut_t *aoth_wire_cut(kit_wire_t *w, const aot_cut_t *at) {
  static const aot_cut_t none;
  aot_cut_t copy, *cut = kit_wire_record(w, at, &copy, sizeof copy);
  cut->saved = kit_wire_block(w, cut->saved, cut->n_saved, sizeof *cut->saved);
  cut->recomputed = kit_wire_block(w, cut->recomputed, cut->n_recomputed, sizeof *cut->recomputed);
  if (w->out) return NULL;
  return w->failed ? &none : cut;
}

void aoth_wire_result(kit_wire_t *w, aoth_worker_result_t *result) {
  aoth_worker_result_t copy, *r = kit_wire_record(w, result, &copy, sizeof copy);
  kit_wire_text(w, &r->told);
  r->left = wire_z(w, r->left);
  r->why_not = wire_z(w, r->why_not);
  r->numbers = kit_wire_block(w, r->numbers, r->n_numbers, sizeof *r->numbers);
  for (uint32_t i = 0; i < r->n_numbers && !w->failed; i++) {
    aoth_number_t number = r->numbers[i];
    wire_number(w, w->out ? &number : &r->numbers[i]);
  }
  r->env = kit_wire_block(w, r->env, r->n_env, sizeof *r->env);
  for (uint32_t i = 0; i < r->n_env && !w->failed; i++) {
    aoth_env_read_t env = r->env[i];
    wire_env(w, w->out ? &env : &r->env[i]);
  }
  if (!w->out) *result = *r;
}
