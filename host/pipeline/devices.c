/* The device that a session's executables run on: the host (host_device.h), or a unit of kind device/1. */
#include <pipeline/devices.h>

#include <device/host_device.h>
#include <pipeline/call.h>

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

static void add(aoth_traffic_t *t, const aoth_bound_calls_t *calls) {
  t->n_calls += calls->clock;
  t->nbytes += calls->n_copied;
}

aoth_traffic_t aoth_session_traffic(const aoth_session_t *s) {
  aoth_traffic_t t = {0};
  add(&t, &s->now.calls);
  for (uint32_t k = 0; k < s->n_programs; k++)
    if (k != s->selected) add(&t, &s->programs[k].calls);
  return t;
}
