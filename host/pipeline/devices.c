/* The device that a session's executables run on: the host (host_device.h), or a unit of kind device/1. */
#include <pipeline/devices.h>

#include <device/host_device.h>
#include <pipeline/call.h>
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

/* ---- its queue ---- */

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
  const char *validate = getenv("AOT_VALIDATE");
  const int is_wanted = validate && strcmp(validate, "1") == 0 && s->device == aoth_host_device();
  return is_wanted ? aoth_queue_validate(&s->queue) : AOT_OK;
}

void aoth_session_drop_queue(aoth_session_t *s) {
  if (s->queue.device) aoth_queue_deinit(&s->queue);
}

aoth_queue_t *aoth_session_queue(aoth_session_t *s) { return &s->queue; }

aoth_traffic_t aoth_session_traffic(const aoth_session_t *s) {
  aoth_traffic_t t = {.n_calls = s->now.calls.clock, .nbytes = s->queue.n_copied};
  for (uint32_t k = 0; k < s->n_programs; k++)
    if (k != s->selected) t.n_calls += s->programs[k].calls.clock;
  return t;
}
