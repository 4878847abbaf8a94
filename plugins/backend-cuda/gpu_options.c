#include "gpu_options.h"

#include "cudnn/attention_graphs.h"
#include "product_algorithms.h"
#include <aot/describe.h>
#include <aot/inline.h>

enum { OPT_ALGORITHMS, OPT_CHUNK_BYTES, OPT_ATTENTION, OPT_ATTENTION_SUMS, OPT_RESIDUAL };
static const aot_str_t algorithms[] = {AOT_STR_INIT("first"), AOT_STR_INIT("time"), AOT_STR_INIT("load")};
static const aot_str_t attentions[] = {AOT_STR_INIT("auto"), AOT_STR_INIT("cudnn")};
static const aot_str_t orders[] = {AOT_STR_INIT("ordered"), AOT_STR_INIT("any")};
static const aot_str_t residuals[] = {AOT_STR_INIT("product"), AOT_STR_INIT("loop")};
/* clang-format off */
const aot_option_t gc_options[GC_N_OPTIONS] = {
    [OPT_ALGORITHMS] = {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_ENUM, .choices = algorithms, .n_choices = 3,
                        .name = AOT_STR_INIT("algorithms"), .preset = {.s = AOT_STR_INIT("time")},
                        .help = AOT_STR_INIT("matmul algorithm: first (cuBLASLt's first heuristic), time (fastest in a short benchmark, cached), load (fastest on a GPU under sustained load; about 1 s per shape)")},
    [OPT_CHUNK_BYTES] = {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_BYTES, .flags = AOT_OPT_AFFECTS_OUTPUT,
                         .name = AOT_STR_INIT("chunk-bytes"), .preset = {.i = 256 << 20},
                         .help = AOT_STR_INIT("tile by rows any matmul result larger than this that is consumed row by row, if tiling lowers planned memory; 0: never")},
    [OPT_ATTENTION] = {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_ENUM, .flags = AOT_OPT_AFFECTS_OUTPUT,
                       .choices = attentions, .n_choices = 2, .name = AOT_STR_INIT("attention"),
                       .preset = {.s = AOT_STR_INIT("auto")},
                       .help = AOT_STR_INIT("auto: with dropout by kernels that draw it in place, where they take the "
                                            "call; cudnn: all by cuDNN, dropout by masks in memory")},
    [OPT_ATTENTION_SUMS] = {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_ENUM, .flags = AOT_OPT_AFFECTS_OUTPUT,
                            .choices = orders, .n_choices = 2, .name = AOT_STR_INIT("attention-sums"),
                            .preset = {.s = AOT_STR_INIT("ordered")},
                            .help = AOT_STR_INIT("accumulation order of cuDNN attention gradients: ordered (bitwise deterministic) or any (nondeterministic; faster, less workspace)")},
    [OPT_RESIDUAL] = {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_ENUM, .flags = AOT_OPT_AFFECTS_OUTPUT,
                      .choices = residuals, .n_choices = 2, .name = AOT_STR_INIT("residual"),
                      .preset = {.s = AOT_STR_INIT("product")},
                      .help = AOT_STR_INIT("add of an f16/bf16 matmul to a float32 tensor: product (fused into the matmul, if the sum is needed in memory) or loop (a separate loop)")},
};
/* clang-format on */

static int is(const aot_opts_t *opts, int option, const char *choice) {
  return aot_str_eq(opts->values[option].s, aot_str(choice));
}

gc_choices_t gc_choices_of(const aot_opts_t *opts) {
  return (gc_choices_t){
      .algorithms = is(opts, OPT_ALGORITHMS, "load")   ? GC_ALGORITHMS_LOAD
                    : is(opts, OPT_ALGORITHMS, "time") ? GC_ALGORITHMS_TIME
                                                       : GC_ALGORITHMS_FIRST,
      .chunk_nbytes = (uint64_t)opts->values[OPT_CHUNK_BYTES].i,
      .adds_residuals = is(opts, OPT_RESIDUAL, "product"),
      .draws_attention = is(opts, OPT_ATTENTION, "auto"),
      .attention_order = is(opts, OPT_ATTENTION_SUMS, "any") ? GC_ATT_IN_ANY_ORDER : GC_ATT_ORDERED,
  };
}
