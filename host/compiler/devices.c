/* The devices that a session's executables run on: the host (host_device.h), or units of kind device/1. */
#include <compiler/devices.h>

#include <device/host_device.h>
#include <sandbox/call.h>
#include <config/run_section.h>
#include <stdlib.h>
#include <string.h>

aot_status_t aoth_session_take_device(aoth_session_t *s, const aoth_stage_t *device) {
  if (!device->unit) {
    s->device = aoth_host_device();
    return AOT_OK;
  }
  if (s->device_unit.unit && s->device_unit.unit != device->unit) {
    aoth_sink_report(s->config.sink, AOT_SEVERITY_ERROR, &device->where, "run.device",
                     "the session runs on the device %s already", s->device_unit.unit->id);
    return AOT_E_PRECONDITION;
  }
  if (!s->device_unit.unit) AOT_TRY(aoth_instance_create(s, device, &s->device_unit));
  s->device = s->device_unit.self;
  return AOT_OK;
}

/* ---- next to it ---- */

static aot_status_t take_other(aoth_session_t *s, const aoth_stage_t *device, const char *own, uint32_t *out_lane) {
  aoth_other_device_t **at = &s->others;
  const char *name = aoth_device_name(s->arena, device);
  if (!name) return aoth_sink_no_memory(s->config.sink, NULL, "run.memory", "for the devices of a session");
  *out_lane = 0;
  if (strcmp(name, own) == 0) return AOT_OK;
  for (*out_lane = 1; *at && strcmp((*at)->name, name) != 0; ++*out_lane) at = &(*at)->next;
  if (*at) return AOT_OK;
  if (s->lanes.n) {
    aoth_sink_report(s->config.sink, AOT_SEVERITY_ERROR, &device->where, "run.device",
                     "the session runs on other devices already");
    return AOT_E_PRECONDITION;
  }
  aoth_other_device_t *other = kit_arena_alloc(s->arena, sizeof(void *), sizeof *other);
  if (!other) return aoth_sink_no_memory(s->config.sink, NULL, "run.memory", "for the devices of a session");
  other->name = name;
  other->device = aoth_host_device();
  if (device->unit) {
    AOT_TRY(aoth_instance_create(s, device, &other->unit));
    other->device = other->unit.self;
  }
  *at = other;
  return AOT_OK;
}

aot_status_t aoth_session_take_devices(aoth_session_t *s, const aoth_pipeline_t *p) {
  const aoth_stage_t *own = &p->run.device;
  uint32_t n_backends = 0;
  for (uint32_t i = 0; i < p->n_stages; i++) n_backends += strcmp(p->stages[i].unit->kind, "backend/2") == 0;
  for (uint32_t i = 0; i < p->n_stages && n_backends == 1; i++)
    if (p->stages[i].device) own = p->stages[i].device;
  AOT_TRY(aoth_session_take_device(s, own));
  const char *name = aoth_device_name(s->arena, own);
  if (!name) return aoth_sink_no_memory(s->config.sink, NULL, "run.memory", "for the devices of a session");
  for (uint32_t i = 0; i < p->n_stages; i++)
    if (p->stages[i].device) AOT_TRY(take_other(s, p->stages[i].device, name, &p->stages[i].lane));
  return AOT_OK;
}

const aot_device_t *aoth_session_lane_device(const aoth_session_t *s, uint32_t lane) {
  const aoth_other_device_t *other = s->others;
  for (uint32_t i = 1; i < lane; i++) other = other->next;
  return lane ? other->device : s->device;
}

/* ---- queues ---- */

/* What the device does is done for the executable, which may be whose work it is. */
static aot_status_t call_device(void *self, aoth_queue_fn fn, void *arg) {
  aoth_session_t *s = self;
  const aoth_unit_t *unit = s->device_unit.unit;
  const aoth_stage_t device = {.use = unit ? unit->id : "host", .name = unit ? unit->id : "host", .unit = unit};
  const aoth_stage_t *stage = s->now.exe_self ? &s->now.backend_stage : &device;
  if (!stage->unit) return fn(arg);
  if (aoth_call(s, stage, "run", fn, arg) == AOT_OK) return AOT_OK;
  return aoth_session_fail(s, stage);
}

aot_status_t aoth_session_make_queue(aoth_session_t *s) {
  if (s->queue.device == s->device) return AOT_OK;
  aoth_session_drop_queue(s);
  AOT_TRY(aoth_queue_init(&s->queue, &s->ctx, s->device));
  s->queue.call = call_device;
  s->queue.self = s;
  const int is_guarded = aoth_guards_are_wanted() && s->device == aoth_host_device();
  return is_guarded ? aoth_queue_validate(&s->queue) : AOT_OK;
}

/* Within calls of the session's own queue: one crash frame is enough. */
static aot_status_t call_other(void *self, aoth_queue_fn fn, void *arg) {
  aoth_session_t *s = self;
  return aoth_queue_call(&s->queue, fn, arg);
}

aot_status_t aoth_session_make_lanes(aoth_session_t *s) {
  AOT_TRY(aoth_session_make_queue(s));
  if (s->lanes.n) return AOT_OK;
  AOT_TRY(aoth_lanes_add(&s->lanes, &s->ctx, &s->queue));
  for (aoth_other_device_t *other = s->others; other; other = other->next) {
    AOT_TRY(aoth_queue_init(&other->queue, &s->ctx, other->device));
    other->queue.call = call_other;
    other->queue.self = s;
    AOT_TRY(aoth_lanes_add(&s->lanes, &s->ctx, &other->queue));
  }
  return AOT_OK;
}

void aoth_session_drop_queue(aoth_session_t *s) {
  for (aoth_other_device_t *other = s->others; other; other = other->next)
    if (other->queue.device) aoth_queue_idle(&other->queue);
  aoth_lanes_deinit(&s->lanes);
  for (aoth_other_device_t *other = s->others; other; other = other->next)
    if (other->queue.device) aoth_queue_deinit(&other->queue);
  if (s->queue.device) aoth_queue_deinit(&s->queue);
}

aoth_queue_t *aoth_session_queue(aoth_session_t *s) { return &s->queue; }

aoth_traffic_t aoth_session_traffic(const aoth_session_t *s) {
  aoth_traffic_t t = {.n_calls = s->now.calls.clock, .nbytes = s->queue.n_copied, .moved_nbytes = s->queue.n_moved};
  t.device = s->device_unit.unit && s->device != aoth_host_device() ? s->device_unit.unit->id : NULL;
  for (uint32_t k = 0; k < s->n_programs; k++)
    if (k != s->selected) t.n_calls += s->programs[k].calls.clock;
  return t;
}
