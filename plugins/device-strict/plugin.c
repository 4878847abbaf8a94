/* device-strict: the unit. */
#include "strict_device.h"

#include "kit/base/errors.h"
#include <aot/describe.h>
#include <aot/inline.h>

#define ID "strict"
#define HELP "test device: memory inaccessible to the host, queues executed late and in random interleaving"
#define VERSION "1.0.0"

enum { OPT_SEED, OPT_HOST_WORK, OPT_LOSE_AT, OPT_MEMORY, OPT_AHEAD };
/* clang-format off */
static const aot_option_t options[] = {
    [OPT_SEED] = {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_I64, .name = AOT_STR_INIT("seed"),
                  .help = AOT_STR_INIT("of the generator that says which queue goes on next")},
    [OPT_HOST_WORK] = {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_BOOL, .name = AOT_STR_INIT("host-work"),
                       .help = AOT_STR_INIT("the CPU may compute on its memory (aot.host-work/1), as backends for the CPU want to"),
                       .preset = {.i = 1}},
    [OPT_LOSE_AT] = {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_I64, .flags = AOT_OPT_HAS_RANGE, .max = 1e15,
                     .name = AOT_STR_INIT("lose-at"), .help = AOT_STR_INIT("the device is lost when this call would begin, from 1; 0: never")},
    [OPT_MEMORY] = {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_I64, .flags = AOT_OPT_HAS_RANGE, .max = 1e15,
                    .name = AOT_STR_INIT("memory"), .help = AOT_STR_INIT("bytes that it has; 0: as many as the machine")},
    [OPT_AHEAD] = {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_I64, .flags = AOT_OPT_HAS_RANGE, .max = 1e9,
                   .name = AOT_STR_INIT("ahead"),
                   .help = AOT_STR_INIT("items, at most, that queues go on with behind a point that the host has waited for")},
};
/* clang-format on */

static aot_status_t create(const aot_unit_t *self, aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                           const aot_table_t **out_table) {
  aot_host_t own;
  (void)self;
  AOT_TRY(aot_import(&own, sizeof own, host));
  const sd_options_t options_of = {
      .seed = (uint64_t)opts->values[OPT_SEED].i,
      .takes_host_work = opts->values[OPT_HOST_WORK].i != 0,
      .lose_at = (uint64_t)opts->values[OPT_LOSE_AT].i,
      .memory = (uint64_t)opts->values[OPT_MEMORY].i,
      .ahead = (uint64_t)opts->values[OPT_AHEAD].i,
  };
  const sd_device_t *s = sd_device_create(&own, &options_of);
  if (!s) return kit_no_memory(host, ctx, "strict.memory", aot_no_node(), "for the device");
  *out_table = &s->table.head;
  return AOT_OK;
}

static const aot_unit_t unit = AOT_UNIT("device/1", ID, VERSION, HELP, AOT_OPTIONS(options), .create = create);
static const aot_unit_t *const units[] = {&unit};

AOT_PLUGIN("device-strict", VERSION, "aothost", "Apache-2.0", units, AOT_NOTE_UNIT("device/1", ID, HELP));
