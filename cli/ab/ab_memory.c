/* The memory that an arm's program takes, as its units report it (aot.memory/1): queried in the arm's process, where
 * the program is, and drawn in the parent's, where the arms come together. Between them it is JSON: numbers, and the
 * view with names for everything. */
#include <cli/ab/ab.h>

#include <aot/inline.h>
#include <trainer/trial/memory_plan.h>
#include <config/pipeline.h>
#include <plugin/registry.h>
#include <string.h>

/* ---- asking ---- */

static json_t *holder_json(const aoth_holder_t *h) {
  json_t *place = h->place == UINT64_MAX ? json_null() : json_integer((json_int_t)h->place);
  return json_pack("[i, I, I, I, o, s, s, s, s]", h->kind, (json_int_t)h->first, (json_int_t)h->last,
                   (json_int_t)h->nbytes, place, h->name, h->type, h->op, h->module);
}

static json_t *view_json(const aoth_memory_view_t *v) {
  json_t *holders = json_array(), *largest = json_array(), *alive = json_array();
  for (uint64_t i = 0; i < v->plan.n_buffers; i++) json_array_append_new(holders, holder_json(&v->holders[i]));
  for (uint32_t i = 0; i < v->n_largest; i++) json_array_append_new(largest, json_integer(v->largest[i]));
  for (uint64_t i = 0; i < v->plan.n_steps; i++) json_array_append_new(alive, json_integer((json_int_t)v->alive[i]));
  return json_pack("{s:o, s:o, s:o, s:I, s:s}", "holders", holders, "largest", largest, "alive", alive, "peak_alive",
                   (json_int_t)v->peak_alive, "peak_at", v->peak_at);
}

static json_t *numbers_json(const aoth_stage_t *stage, const aot_memory_plan_t *p) {
  return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I}", "unit", stage->use, "peak_bytes", (json_int_t)p->peak_nbytes,
                   "arena_bytes", (json_int_t)p->arena_nbytes, "steps", (json_int_t)p->n_steps, "forward_steps",
                   (json_int_t)p->n_forward_steps, "peak_step", (json_int_t)p->peak_step);
}

/* AOT_OK also when the unit does not report: then nothing is added. */
static aot_status_t ask(aoth_session_t *s, const aoth_stage_t *stage, const aoth_stage_t *backend, const char *key,
                        kit_arena_t *arena, json_t *answer, json_t *views) {
  aot_memory_plan_t plan;
  aoth_memory_view_t view;
  if (!stage || !aoth_unit_offers_memory(s, stage)) return AOT_OK;
  const aot_status_t status = aoth_session_memory(s, stage, backend, arena, &plan);
  if (status == AOTH_E_PLUGIN) return status;
  if (status != AOT_OK) return AOT_OK; /* it knows no answer for this program; reported */
  AOT_TRY(aoth_memory_view_make(aoth_session_prog(s), &plan, stage->use, arena, &view));
  json_object_set_new(answer, key, numbers_json(stage, &plan));
  json_object_set_new(views, key, view_json(&view));
  return AOT_OK;
}

aot_status_t aoth_ab_tell_memory(aoth_session_t *s, const aoth_pipeline_t *p, json_t *answer) {
  const aoth_stage_t *partition = NULL, *backend = NULL;
  kit_arena_t *arena = kit_arena_create();
  json_t *views = json_object();
  if (!arena || !views) return AOT_E_EXHAUSTED;
  for (uint32_t i = 0; i < p->n_stages; i++) {
    if (strcmp(p->stages[i].unit->kind, "partition/1") == 0) partition = &p->stages[i];
    if (strcmp(p->stages[i].unit->kind, "backend/2") == 0) backend = &p->stages[i];
  }
  aot_status_t status = ask(s, partition, backend, "simulated", arena, answer, views);
  if (status == AOT_OK) status = ask(s, backend, NULL, "planned", arena, answer, views);
  json_object_set_new(answer, "views", views);
  kit_arena_destroy(arena);
  return status;
}

/* ---- drawing ---- */

static const char *text_at(const json_t *row, size_t i) {
  const char *t = json_string_value(json_array_get(row, i));
  return t ? t : "";
}

static uint64_t number_at(const json_t *row, size_t i) { return (uint64_t)json_integer_value(json_array_get(row, i)); }

static uint64_t number(const json_t *o, const char *key) {
  return (uint64_t)json_integer_value(json_object_get(o, key));
}

static aot_status_t read_rows(const json_t *view, kit_arena_t *arena, aoth_memory_view_t *out) {
  const json_t *holders = json_object_get(view, "holders"), *largest = json_object_get(view, "largest"),
               *alive = json_object_get(view, "alive");
  aoth_holder_t *h = kit_arena_alloc(arena, sizeof(uint64_t), (json_array_size(holders) + 1) * sizeof *h);
  uint32_t *order = kit_arena_alloc(arena, sizeof *order, (json_array_size(largest) + 1) * sizeof *order);
  uint64_t *bytes = kit_arena_alloc(arena, sizeof *bytes, (json_array_size(alive) + 1) * sizeof *bytes);
  if (!h || !order || !bytes) return AOT_E_EXHAUSTED;
  for (size_t i = 0; i < json_array_size(holders); i++) {
    const json_t *r = json_array_get(holders, i);
    const uint64_t place = json_is_null(json_array_get(r, 4)) ? UINT64_MAX : number_at(r, 4);
    h[i] = (aoth_holder_t){(int32_t)number_at(r, 0),
                           (uint32_t)number_at(r, 1),
                           (uint32_t)number_at(r, 2),
                           number_at(r, 3),
                           place,
                           text_at(r, 5),
                           text_at(r, 6),
                           text_at(r, 7),
                           text_at(r, 8)};
  }
  for (size_t i = 0; i < json_array_size(largest); i++) order[i] = (uint32_t)number_at(largest, i);
  for (size_t i = 0; i < json_array_size(alive); i++) bytes[i] = number_at(alive, i);
  out->holders = h;
  out->largest = order;
  out->alive = bytes;
  out->plan.n_buffers = json_array_size(holders);
  out->n_largest = (uint32_t)json_array_size(largest);
  return AOT_OK;
}

static aot_status_t read_view(const aoth_ab_arm_run_t *a, const char *key, kit_arena_t *arena,
                              aoth_memory_view_t *out) {
  const json_t *numbers = json_object_get(a->memory, key),
               *view = json_object_get(json_object_get(a->memory, "views"), key);
  kit_text_t title = {0};
  *out = (aoth_memory_view_t){
      .plan =
          {
              .struct_size = sizeof out->plan,
              .n_steps = number(numbers, "steps"),
              .n_forward_steps = number(numbers, "forward_steps"),
              .peak_nbytes = number(numbers, "peak_bytes"),
              .arena_nbytes = number(numbers, "arena_bytes"),
              .peak_step = number(numbers, "peak_step"),
          },
      .peak_alive = number(view, "peak_alive"),
  };
  kit_text_f(&title, "%s, %s by %s", a->arm.name, key, json_string_value(json_object_get(numbers, "unit")));
  out->title = title.data ? kit_arena_text(arena, title.data, title.size) : a->arm.name;
  kit_text_deinit(&title);
  const char *at = json_string_value(json_object_get(view, "peak_at"));
  out->peak_at = at ? at : "";
  return read_rows(view, arena, out);
}

aot_status_t aoth_ab_views(const aoth_ab_t *ab, kit_arena_t *arena, aoth_memory_view_t *out, uint32_t *out_n) {
  *out_n = 0;
  for (uint32_t i = 0; i < ab->n_arms; i++) {
    const aoth_ab_arm_run_t *a = &ab->arms[i];
    const char *key = a->memory && json_object_get(a->memory, "planned") ? "planned" : "simulated";
    if (!a->memory || !json_object_get(a->memory, key) || number(json_object_get(a->memory, key), "steps") == 0)
      continue;
    AOT_TRY(read_view(a, key, arena, &out[(*out_n)++]));
  }
  return AOT_OK;
}
