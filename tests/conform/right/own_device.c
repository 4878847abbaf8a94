/* examples/vendor_backend with a device of its own, which is device-strict: its executables run there and nowhere
 * else. */
#include <aot/describe.h>
#undef AOT_PLUGIN_ONE
#define AOT_PLUGIN_ONE(...) struct described_below
#include "npu.h"
#include "strict_device.h"

#define OWN_NAME "strict" /* as the device calls itself */

static aot_status_t load_there(const aot_backend_t *b, aot_ctx_t *ctx, const void *bytes, uint64_t nbytes,
                               const aot_device_t *device, const aot_exe_t **out) {
  aot_device_info_t info = {.struct_size = sizeof info};
  AOT_TRY(device->info(device, &info));
  if (!aot_str_eq(info.name, aot_str(OWN_NAME)))
    return fail(b->head.self, ctx, AOT_E_UNIMPLEMENTED, "it runs on its own device alone");
  return load(b, ctx, bytes, nbytes, device, out);
}

static aot_status_t create_backend(const aot_unit_t *unit, aot_ctx_t *ctx, const aot_host_t *host,
                                   const aot_opts_t *opts, const aot_table_t **out_table) {
  (void)unit;
  AOT_TRY(create(ctx, host, opts, out_table));
  ((unit_t *)(*out_table)->self)->table.load = load_there;
  return AOT_OK;
}

static aot_status_t create_device(const aot_unit_t *unit, aot_ctx_t *ctx, const aot_host_t *host,
                                  const aot_opts_t *opts, const aot_table_t **out_table) {
  const sd_device_t *d = sd_device_create(host, &(sd_options_t){.seed = 7, .takes_host_work = 1});
  (void)unit, (void)ctx, (void)opts;
  if (!d) return AOT_E_EXHAUSTED;
  *out_table = &d->table.head;
  return AOT_OK;
}

static const aot_unit_t backend =
    AOT_UNIT("backend/2", "own.backend", "1.0", HELP, .contract = &contract, .create = create_backend);
static const aot_unit_t device = AOT_UNIT("device/1", "own.device", "1.0", "its device", .create = create_device);
static const aot_unit_t *const units[] = {&backend, &device};
AOT_PLUGIN("own", "1.0", "aothost", "Apache-2.0", units,
           AOT_NOTE_UNIT("backend/2", "own.backend", HELP) "," AOT_NOTE_UNIT("device/1", "own.device", "its device"));
