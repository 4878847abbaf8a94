/* backend-cuda: its units. */
#include "gpu_backend.h"
#include "cuda_device.h"

#include <aot/describe.h>
#include <aot/inline.h>

#define ID "cuda"
#define HELP "a GPU by the CUDA driver: its memory, its streams as queues, timelines that streams raise and wait for"
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
                      .help = AOT_STR_INIT("that the host waits for one thing while the device works, before it gives "
                                           "the device up")},
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
#define BACKEND_HELP "runs on a GPU: generated CUDA C for loops, cuBLASLt for matrix products, a call as one CUDA graph"
static const aot_str_t algorithms[] = {AOT_STR_INIT("first"), AOT_STR_INIT("time"), AOT_STR_INIT("load")};
static const aot_str_t attentions[] = {AOT_STR_INIT("auto"), AOT_STR_INIT("cudnn")};
static const aot_str_t orders[] = {AOT_STR_INIT("ordered"), AOT_STR_INIT("any")};
static const aot_str_t residuals[] = {AOT_STR_INIT("product"), AOT_STR_INIT("loop")};
/* clang-format off */
static const aot_option_t backend_options[] = {
    [GC_OPT_ALGORITHMS] = {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_ENUM, .choices = algorithms, .n_choices = 3,
                           .name = AOT_STR_INIT("algorithms"), .preset = {.s = AOT_STR_INIT("time")},
                           .help = AOT_STR_INIT("of matrix products: the first that cuBLASLt names; the fastest in a burst, "
                                                "which is kept; load: the fastest on a chip that has been at work "
                                                "for a while, at a second or so for each form of product")},
    [GC_OPT_CHUNK_BYTES] = {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_BYTES, .flags = AOT_OPT_AFFECTS_OUTPUT,
                            .name = AOT_STR_INIT("chunk-bytes"), .preset = {.i = 256 << 20},
                            .help = AOT_STR_INIT("of a product's result that is read row by row: larger ones are made and "
                                                 "used in chunks of rows, where the plan of memory gets smaller; 0: never")},
    [GC_OPT_ATTENTION] = {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_ENUM, .flags = AOT_OPT_AFFECTS_OUTPUT,
                          .choices = attentions, .n_choices = 2, .name = AOT_STR_INIT("attention"),
                          .preset = {.s = AOT_STR_INIT("auto")},
                          .help = AOT_STR_INIT("auto: with dropout by kernels that draw it in place, where they take the "
                                               "call; cudnn: all by cuDNN, dropout by masks in memory")},
    [GC_OPT_ATTENTION_SUMS] = {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_ENUM, .flags = AOT_OPT_AFFECTS_OUTPUT,
                               .choices = orders, .n_choices = 2, .name = AOT_STR_INIT("attention-sums"),
                               .preset = {.s = AOT_STR_INIT("ordered")},
                               .help = AOT_STR_INIT("of cuDNN's gradients of attention. ordered: equal bit for bit in every "
                                                    "run; any: as blocks come, faster and with less scratch")},
    [GC_OPT_RESIDUAL] = {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_ENUM, .flags = AOT_OPT_AFFECTS_OUTPUT,
                         .choices = residuals, .n_choices = 2, .name = AOT_STR_INIT("residual"),
                         .preset = {.s = AOT_STR_INIT("product")},
                         .help = AOT_STR_INIT("what adds the product of halves to a float32 tensor: the product, where "
                                              "the sum is wanted in memory, or a loop")},
};
/* clang-format on */
static const aot_contract_t contract = {
    .struct_size = sizeof(aot_contract_t),
    .needs = AOT_NAMES(AOT_PROP_FUNCTIONAL),
    .gives = AOT_NAMES(AOT_PROP_LOWERED),
    .refuses = AOT_NAMES(AOT_PROP_JOINT),
};

static const aot_unit_t device = AOT_UNIT("device/1", ID, VERSION, HELP, AOT_OPTIONS(options), .create = create);
static const aot_unit_t backend = AOT_UNIT("backend/2", BACKEND_ID, VERSION, BACKEND_HELP, .contract = &contract,
                                           AOT_OPTIONS(backend_options), .create = gc_backend_create);
static const aot_unit_t *const units[] = {&device, &backend};

AOT_PLUGIN("backend-cuda", VERSION, "aothost", "Apache-2.0", units,
           AOT_NOTE_UNIT("device/1", ID, HELP) "," AOT_NOTE_UNIT("backend/2", BACKEND_ID, BACKEND_HELP));
