/* What a call was given, by key: for code that wants to have it again after a failure. */
#include <step/step_ports.h>

#include <aot/inline.h>

typedef struct given_walk {
  aot_status_t (*each)(void *self, const char *key, const aoth_tensor_t *t);
  void *self;
  kit_text_t key;
} given_walk_t;

/* Nothing is requested of the device: it may be what has failed. */
static aot_status_t visit(given_walk_t *w, const char *prefix, aot_str_t name, uint32_t number,
                          const aoth_tensor_t *t) {
  aoth_tensor_t found = *t;
  if (!t->dtype || !t->resident) return AOT_OK;
  if (t->resident->valid && !(t->resident->valid & AOTH_ON_HOST)) return AOT_OK;
  found.data = t->resident->valid ? t->resident->host : NULL;
  found.nbytes = t->resident->nbytes;
  w->key.size = 0;
  kit_text_z(&w->key, prefix);
  if (name.data) kit_text_str(&w->key, name);
  else kit_text_f(&w->key, "%u", number);
  return w->key.failed ? AOT_E_EXHAUSTED : w->each(w->self, w->key.data, &found);
}

static const char *prefix_of(int32_t role) {
  switch (role) {
    case AOT_ROLE_PARAMETER: return "param.";
    case AOT_ROLE_BUFFER: return "buffer.";
    case AOT_ROLE_STATE: return "state.";
    default: return NULL;
  }
}

static aot_status_t visit_all(const aoth_step_t *s, given_walk_t *w) {
  const aoth_step_call_t *backward = &s->call[AOTH_CALL_BACKWARD];
  for (uint32_t i = 0; i < s->n_given; i++) AOT_TRY(visit(w, "input.", (aot_str_t){0}, i, &s->given[i].tensor));
  for (uint32_t i = 0; i < backward->n_in && s->running == AOTH_CALL_BACKWARD; i++)
    if (backward->in[i].role == AOT_ROLE_TANGENT)
      AOT_TRY(visit(w, "tangent.", (aot_str_t){0}, backward->in[i].index, &backward->in[i].tensor));
  for (uint32_t i = 1; i < s->leaves.n; i++) {
    const aoth_leaf_t *leaf = &s->leaves.leaf[i];
    const char *prefix = prefix_of(leaf->info.role);
    if (prefix) AOT_TRY(visit(w, prefix, aoth_leaf_name(leaf), 0, &leaf->tensor));
  }
  return AOT_OK;
}

aot_status_t aoth_step_given(const aoth_step_t *s,
                             aot_status_t (*each)(void *self, const char *key, const aoth_tensor_t *t), void *self) {
  given_walk_t w = {.each = each, .self = self};
  const aot_status_t status = visit_all(s, &w);
  kit_text_deinit(&w.key);
  return status;
}

aoth_given_call_t aoth_step_given_call(const aoth_step_t *s) {
  static const char *const names[AOTH_N_CALLS] = {"forward", "backward", "update", "step", "apply"};
  return (aoth_given_call_t){names[s->running], s->seed, s->offset};
}
