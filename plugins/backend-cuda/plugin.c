/* backend-cuda: its units. */
#include "gpu_backend.h"
#include "cuda_device.h"
#include "gpu_options.h"

#include <aot/describe.h>
#include <aot/inline.h>

#define ID "cuda"
#define HELP "CUDA device (driver API): memory, streams as queues, timelines that streams signal and wait for"
#define VERSION "0.1.0"

enum { OPT_ORDINAL, OPT_PATIENCE };
/* clang-format off */
static const aot_option_t options[] = {
    [OPT_ORDINAL] = {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_I64, .flags = AOT_OPT_HAS_RANGE, .min = -1, .max = 1023,
                     .name = AOT_STR_INIT("ordinal"), .preset = {.i = -1},
                     .help = AOT_STR_INIT("which of the driver's devices, from 0; -1: that of the rank on this machine, "
                                          "where there are several")},
    [OPT_PATIENCE] = {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_I64, .flags = AOT_OPT_HAS_RANGE, .min = 1,
                      .max = 1000000, .name = AOT_STR_INIT("patience"), .preset = {.i = 600},
                      .unit = AOT_STR_INIT("seconds"),
                      .help = AOT_STR_INIT("time limit of one host wait while the device is busy; then the device is declared lost")},
};
/* clang-format on */

static aot_status_t create(const aot_unit_t *self, aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                           const aot_table_t **out_table) {
  aot_host_t own;
  aot_status_t status;
  (void)self;
  AOT_TRY(aot_import(&own, sizeof own, host));
  const gc_device_t *g =
      gc_device_create(&own, ctx, (int)opts->values[OPT_ORDINAL].i, opts->values[OPT_PATIENCE].i, &status);
  if (g) *out_table = &g->table.head;
  return status;
}

#define BACKEND_ID "backend-cuda"
#define BACKEND_HELP                                                                                                   \
  "CUDA backend: fused loops compiled from generated CUDA C, cuBLASLt matmuls, one CUDA graph per call"
static const aot_contract_t contract = {
    .struct_size = sizeof(aot_contract_t),
    .needs = AOT_NAMES(AOT_PROP_FUNCTIONAL),
    .gives = AOT_NAMES(AOT_PROP_LOWERED),
    .refuses = AOT_NAMES(AOT_PROP_JOINT),
};

static const aot_unit_t device = AOT_UNIT("device/1", ID, VERSION, HELP, AOT_OPTIONS(options), .create = create);
static const aot_unit_t backend = AOT_UNIT("backend/2", BACKEND_ID, VERSION, BACKEND_HELP, .contract = &contract,
                                           AOT_OPTIONS(gc_options), .create = gc_backend_create);
static const aot_unit_t *const units[] = {&device, &backend};

AOT_PLUGIN("backend-cuda", VERSION, "aothost", "Apache-2.0", units,
           AOT_NOTE_UNIT("device/1", ID, HELP) "," AOT_NOTE_UNIT("backend/2", BACKEND_ID, BACKEND_HELP));
