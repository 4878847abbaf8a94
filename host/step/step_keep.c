/* What a call was given, as a file: for whoever wants to have it again after a failure. */
#include <step/step_ports.h>

#include <aot/inline.h>
#include <step/safetensors.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct keep_state {
  aoth_arena_t *arena;
  aoth_st_entry_t *at;
  uint32_t n;
} keep_state_t;

/* Nothing is asked of the device: it may be what has failed. What lies there alone is left out. */
static aot_status_t keep(keep_state_t *k, const char *prefix, aot_str_t name, uint32_t number, const aoth_tensor_t *t) {
  aoth_text_t key = {0};
  aoth_tensor_t found = *t;
  if (!t->dtype || !t->resident) return AOT_OK;
  if (t->resident->valid && !(t->resident->valid & AOTH_ON_HOST)) return AOT_OK;
  found.data = t->resident->valid ? t->resident->host : aoth_arena_alloc(k->arena, 64, (size_t)t->resident->nbytes + 1);
  aoth_text_z(&key, prefix);
  if (name.data) aoth_text_str(&key, name);
  else aoth_text_f(&key, "%u", number);
  const char *kept = key.data ? aoth_arena_text(k->arena, key.data, key.size) : NULL;
  aoth_text_deinit(&key);
  if (!kept || !found.data) return AOT_E_EXHAUSTED;
  k->at[k->n++] = (aoth_st_entry_t){kept, found};
  return AOT_OK;
}

static const char *prefix_of(int32_t role) {
  switch (role) {
    case AOT_ROLE_PARAMETER: return "param.";
    case AOT_ROLE_BUFFER: return "buffer.";
    case AOT_ROLE_STATE: return "state.";
    default: return NULL;
  }
}

static aot_status_t keep_all(const aoth_step_t *s, keep_state_t *k) {
  const aoth_step_call_t *backward = &s->call[AOTH_CALL_BACKWARD];
  for (uint32_t i = 0; i < s->n_given; i++) AOT_TRY(keep(k, "input.", (aot_str_t){0}, i, &s->given[i].tensor));
  for (uint32_t i = 0; i < backward->n_in && s->running == AOTH_CALL_BACKWARD; i++)
    if (backward->in[i].role == AOT_ROLE_TANGENT)
      AOT_TRY(keep(k, "tangent.", (aot_str_t){0}, backward->in[i].index, &backward->in[i].tensor));
  for (uint32_t i = 1; i < s->leaves.n; i++) {
    const aoth_leaf_t *leaf = &s->leaves.leaf[i];
    const char *prefix = prefix_of(leaf->info.role);
    if (prefix) AOT_TRY(keep(k, prefix, aoth_leaf_name(leaf), 0, &leaf->tensor));
  }
  return AOT_OK;
}

aot_status_t aoth_step_keep_call(const aoth_step_t *s, const char *path, aoth_sink_t *sink) {
  static const char *const calls[AOTH_N_CALLS] = {"forward", "backward", "update", "step", "apply"};
  const size_t room = (size_t)s->n_given + s->leaves.n + s->call[AOTH_CALL_BACKWARD].n_in + 1;
  keep_state_t k = {.arena = aoth_arena_create(), .at = calloc(room, sizeof *k.at)};
  char seed[32], offset[32];
  snprintf(seed, sizeof seed, "%lld", (long long)s->seed);
  snprintf(offset, sizeof offset, "%lld", (long long)s->offset);
  const aoth_st_meta_t meta[] = {{"call", calls[s->running]}, {"seed", seed}, {"offset", offset}};
  aot_status_t status = k.arena && k.at ? keep_all(s, &k) : AOT_E_EXHAUSTED;
  if (status == AOT_OK)
    status = aoth_st_write_with(path, AOTH_ST_OWN_NAME, k.at, k.n, meta, sizeof meta / sizeof *meta, sink);
  free(k.at);
  aoth_arena_destroy(k.arena);
  return status;
}
