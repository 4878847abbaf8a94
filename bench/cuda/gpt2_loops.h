/* The loops that a training step of GPT-2 (124 M parameters, 32 x 1024 tokens) has between its matrix products, and
 * some of BERT's (32 x 512) and ConvNeXt's (64 images) that are of other kinds. */
#ifndef GPT2_LOOPS_H
#define GPT2_LOOPS_H

typedef struct gpt2_loop {
  const char *name;
  unsigned positive; /* loads without negative numbers, as bits; of classes: a few are most of them */
  const char *text;
} gpt2_loop_t;

#define EMBEDDING_BACKWARD                                                                                             \
  "loop 32768 x 768 reduced 0\nload i64 [1, 0]\nload f32 [768, 1] align 16\neach f32 f32 \"a\" a=x1\n"                 \
  "store f32 [0, 1] align 16 at x0 * 768 of 50304 add v0\n"
#define GELU_BACKWARD                                                                                                  \
  "load bf16 [3072, 1] align 16\nload bf16 [3072, 1] align 16\n"                                                       \
  "each f32 bf16 \"gelu_tanh_backward(a, b)\" a=x0 b=x1\n"

/* clang-format off */
static const gpt2_loop_t gpt2_loops[] = {
  {"copy", 0,
   "loop 134217728\nload f32 [1] align 16\neach f32 f32 \"a\" a=x0\nstore f32 [1] align 16 v0\n"},
  {"embedding", 0,
   "loop 32 x 1024 x 768\nload i64 [1024, 1, 0]\nload f32 [0, 0, 1] at x0 * 768 of 50304 align 16\n"
   "load f32 [0, 768, 1] align 16\neach f32 f32 \"a + b\" a=x1 b=x2\nstore f32 [786432, 768, 1] align 16 v0\n"},
  {"embedding_backward", 0, EMBEDDING_BACKWARD}, /* begin sorts 32768 tokens */
  {"embedding_backward_skewed", 1, EMBEDDING_BACKWARD},
  {"embedding_backward_512", 0, /* of BERT's positions */
   "loop 512 x 768 reduced 0\nload i64 [1, 0]\nload f32 [768, 1] align 16\neach f32 f32 \"a\" a=x1\n"
   "store f32 [0, 1] align 16 at x0 * 768 of 50304 add v0\n"},
  {"embedding_backward_of_one", 0, /* BERT's token types: what is out of range counts as the first */
   "loop 16384 x 768 reduced 0\nload i64 [1, 0]\nload f32 [768, 1] align 16\neach f32 f32 \"a\" a=x1\n"
   "store f32 [0, 1] align 16 at x0 * 768 of 2 add v0\n"},
  {"layer_norm", 0, /* float in, bf16 out, statistics */
   "loop 32768 x 768 reduced 1\nload f32 [768, 1] align 16\nload f32 [0, 1] align 16\nload f32 [0, 1] align 16\n"
   "sum f32 f64 \"a\" a=x0\neach f64 f64 \"%0 / #\" %0=v0\nsum f64 f64 \"(a - %1) * (a - %1)\" a=x0 %1=v1\n"
   "each f64 f32 \"T(1) / sqrt(%2 / # + e)\" e=1e-5 %2=v2\neach f64 f32 \"%1\" %1=v1\n"
   "each f32 f32 \"(a - %4) * %3\" a=x0 %4=v4 %3=v3\neach f32 bf16 \"%5 * c + d\" c=x1 d=x2 %5=v5\n"
   "store bf16 [768, 1] align 16 v6\nstore f32 [1, 0] row v4\nstore f32 [1, 0] row v3\n"},
  {"residual_layer_norm", 0, /* float stream + bf16 + bias: stream, bf16 out, statistics */
   "loop 32768 x 768 reduced 1\nload f32 [768, 1] align 16\nload bf16 [768, 1] align 16\nload f32 [0, 1] align 16\n"
   "load f32 [0, 1] align 16\nload f32 [0, 1] align 16\neach f32 f32 \"a + b + c\" a=x0 b=x1 c=x2\n"
   "sum f32 f64 \"%0\" %0=v0\neach f64 f64 \"%0 / #\" %0=v1\nsum f64 f64 \"(a - %1) * (a - %1)\" a=v0 %1=v2\n"
   "each f64 f32 \"T(1) / sqrt(%2 / # + e)\" e=1e-5 %2=v3\neach f64 f32 \"%1\" %1=v2\n"
   "each f32 f32 \"(a - %4) * %3\" a=v0 %4=v5 %3=v4\neach f32 bf16 \"%5 * c + d\" c=x3 d=x4 %5=v6\n"
   "store f32 [768, 1] align 16 v0\nstore bf16 [768, 1] align 16 v7\nstore f32 [1, 0] row v5\nstore f32 [1, 0] row v4\n"},
  {"layer_norm_backward", 0, /* dy bf16, x float, residual gradient float: its sum */
   "loop 32768 x 768 reduced 1\nload bf16 [768, 1] align 16\nload f32 [768, 1] align 16\nload f32 [1, 0]\nload f32 [1, 0]\n"
   "load f32 [0, 1] align 16\nload f32 [768, 1] align 16\neach f32 f32 \"(a - b) * c\" a=x1 b=x2 c=x3\n"
   "each f32 f32 \"a * b\" a=x0 b=x4\nsum f32 f32 \"a\" a=v1\nsum f32 f32 \"a * b\" a=v1 b=v0\n"
   "each f32 f32 \"b - (%0 + a * %1) / #\" a=v0 b=v1 %0=v2 %1=v3\neach f32 f32 \"a + b * c\" a=x5 b=v4 c=x3\n"
   "each f32 bf16 \"a\" a=v5\nstore f32 [768, 1] align 16 v5\nstore bf16 [768, 1] align 16 v6\n"},
  {"layer_norm_weights", 0, /* gradients of weight and bias */
   "loop 32768 x 768 reduced 0\nload bf16 [768, 1] align 16\nload f32 [768, 1] align 16\nload f32 [1, 0]\nload f32 [1, 0]\n"
   "each f32 f32 \"(a - b) * c\" a=x1 b=x2 c=x3\nsum f32 f32 \"a * b\" a=x0 b=v0\nsum f32 f32 \"a\" a=x0\n"
   "store f32 [0, 1] row v1\nstore f32 [0, 1] row v2\n"},
  {"layer_norm_all_gradients", 0, /* both of the last in one */
   "loop 32768 x 768 reduced 1\nload bf16 [768, 1] align 16\nload f32 [768, 1] align 16\nload f32 [1, 0]\nload f32 [1, 0]\n"
   "load f32 [0, 1] align 16\nload f32 [768, 1] align 16\neach f32 f32 \"(a - b) * c\" a=x1 b=x2 c=x3\n"
   "each f32 f32 \"a * b\" a=x0 b=x4\nsum f32 f32 \"a\" a=v1\nsum f32 f32 \"a * b\" a=v1 b=v0\n"
   "each f32 f32 \"b - (%0 + a * %1) / #\" a=v0 b=v1 %0=v2 %1=v3\neach f32 f32 \"a + b * c\" a=x5 b=v4 c=x3\n"
   "each f32 bf16 \"a\" a=v5\nacross f32 f32 \"a * b\" a=x0 b=v0\nacross f32 f32 \"a\" a=x0\nacross f32 f32 \"a\" a=v5\n"
   "store f32 [768, 1] align 16 v5\nstore bf16 [768, 1] align 16 v6\nstore f64 [0, 1] v7\nstore f64 [0, 1] v8\nstore f64 [0, 1] v9\n"},
  {"layer_norm_gradients_anew", 0, /* the same where the backward makes the statistics again */
   "loop 32768 x 768 reduced 1\nload bf16 [768, 1] align 16\nload f32 [768, 1] align 16\nload f32 [0, 1] align 16\n"
   "load f32 [768, 1] align 16\neach f32 f32 \"a\" a=x0\nsum f32 f32 \"b\" b=x1\n"
   "each f32 f32 \"%0 - %0 == 0 ? %0 / # : T(NAN)\" %0=v1\nsum f32 f32 \"(b - %1) * (b - %1)\" b=x1 %1=v2\n"
   "each f32 f32 \"T(1) / sqrt(%2 / # + f)\" f=1.0000000000000001e-05 %2=v3\n"
   "each f32 f32 \"(b - %1) * %3\" b=x1 %1=v2 %3=v4\nsum f32 f32 \"a * d\" a=v0 d=x2\n"
   "sum f32 f32 \"a * d * (b - %1)\" a=v0 b=x1 d=x2 %1=v2\n"
   "each f32 f32 \"%3 * (a * d - %5 / # - %4 * (%3 * %6 / #))\" a=v0 d=x2 %3=v4 %4=v5 %5=v6 %6=v7\n"
   "across f32 f32 \"a * %4\" a=v0 %4=v5\nacross f32 f32 \"a\" a=v0\neach f32 f32 \"a + c * b\" a=x3 b=v8 c=1\n"
   "each f32 bf16 \"a\" a=v11\nacross f32 f32 \"a\" a=v12\nstore f64 [0, 1] align 16 v9\n"
   "store f64 [0, 1] align 16 v10\nstore f32 [768, 1] align 16 v11\nstore bf16 [768, 1] align 16 v12\n"
   "store f64 [0, 1] align 16 v13\n"},
  {"layer_norm_gradients_dropout", 0, /* BERT's, with the gradient of the dropout before it */
   "loop 16384 x 768 reduced 1\nload bf16 [768, 1] align 16\nload f32 [768, 1] align 16\n"
   "load f32 [768, 1] align 16\nload f32 [0, 1] align 16\nload i64 [0, 0] align 16\nload i64 [0, 0] align 16\n"
   "draw u32 [768, 1] seed=x4 offset=x5\neach f32 f32 \"a\" a=x0\neach f32 f32 \"a + c * b\" a=x1 b=v0 c=1\n"
   "sum f32 f32 \"b\" b=x2\neach f32 f32 \"%0 - %0 == 0 ? %0 / # : T(NAN)\" %0=v2\n"
   "sum f32 f32 \"(b - %1) * (b - %1)\" b=x2 %1=v3\n"
   "each f32 f32 \"T(1) / sqrt(%2 / # + f)\" f=9.9999999999999998e-13 %2=v4\n"
   "each f32 f32 \"(b - %1) * %3\" b=x2 %1=v3 %3=v5\nsum f32 f32 \"a * d\" a=v1 d=x3\n"
   "sum f32 f32 \"a * d * (b - %1)\" a=v1 b=x2 d=x3 %1=v3\n"
   "each f32 f32 \"%3 * (a * d - %5 / # - %4 * (%3 * %6 / #))\" a=v1 d=x3 %3=v5 %4=v6 %5=v7 %6=v8\n"
   "across f32 f32 \"a * %4\" a=v1 %4=v6\nacross f32 f32 \"a\" a=v1\neach f32 bf16 \"a\" a=v9\n"
   "each f32 bf16 \"a * b\" a=v12 b=1.1111111111111112\neach f32 f32 \"unit(d)\" d=d6\n"
   "each f32 bool \"a < b\" a=v14 b=0.90000000000000002\neach f32 bf16 \"a * b\" a=v13 b=v15\n"
   "across f32 f32 \"a\" a=v16\nstore f32 [768, 1] align 16 v9\nstore f64 [0, 1] align 16 v10\n"
   "store f64 [0, 1] align 16 v11\nstore bf16 [768, 1] align 16 v16\nstore f64 [0, 1] align 16 v17\n"},
  {"gelu_layer_norm_gradients", 0, /* of BERT's head */
   "loop 16384 x 768 reduced 1\nload bf16 [768, 1] align 16\nload bf16 [768, 1] align 16\nload f32 [0, 1] align 16\n"
   "each f32 bf16 \"a * normal_or_nan(a)\" a=x0\nsum f32 f32 \"b\" b=v0\n"
   "each f32 f32 \"%0 - %0 == 0 ? %0 / # : T(NAN)\" %0=v1\nsum f32 f32 \"(b - %1) * (b - %1)\" b=v0 %1=v2\n"
   "each f32 f32 \"T(1) / sqrt(%2 / # + f)\" f=9.9999999999999998e-13 %2=v3\n"
   "each f32 f32 \"(b - %1) * %3\" b=v0 %1=v2 %3=v4\nsum f32 f32 \"a * d\" a=x1 d=x2\n"
   "sum f32 f32 \"a * d * (b - %1)\" a=x1 b=v0 d=x2 %1=v2\n"
   "each f32 bf16 \"%3 * (a * d - %5 / # - %4 * (%3 * %6 / #))\" a=x1 d=x2 %3=v4 %4=v5 %5=v6 %6=v7\n"
   "across f32 f32 \"a * %4\" a=x1 %4=v5\nacross f32 f32 \"a\" a=x1\n"
   "each f32 bf16 \"gelu_backward(a, b)\" a=v8 b=x0\nacross f32 f32 \"a\" a=v11\nstore f64 [0, 1] align 16 v9\n"
   "store f64 [0, 1] align 16 v10\nstore bf16 [768, 1] align 16 v11\nstore f64 [0, 1] align 16 v12\n"},
  {"layer_norm_96", 0, /* of ConvNeXt */
   "loop 200704 x 96 reduced 1\nload bf16 [96, 1] align 16\nload f32 [0, 1] align 16\nload f32 [0, 1] align 16\n"
   "sum f32 f32 \"a\" a=x0\neach f32 f32 \"%0 - %0 == 0 ? %0 / # : T(NAN)\" %0=v0\n"
   "sum f32 f32 \"(a - %1) * (a - %1)\" a=x0 %1=v1\neach f32 f32 \"T(1) / sqrt(%2 / # + e)\" e=1e-6 %2=v2\n"
   "each f32 f32 \"%1\" %1=v1\neach f32 f32 \"(a - %4) * %3\" a=x0 %3=v3 %4=v4\n"
   "each f32 bf16 \"%5 * c + d\" c=x1 d=x2 %5=v5\nstore bf16 [96, 1] align 16 v6\n"},
  {"layer_norm_96_gradients", 0,
   "loop 200704 x 96 reduced 1\nload bf16 [96, 1] align 16\nload bf16 [96, 1] align 16\nload f32 [0, 1] align 16\n"
   "sum f32 f32 \"b\" b=x0\neach f32 f32 \"%0 - %0 == 0 ? %0 / # : T(NAN)\" %0=v0\n"
   "sum f32 f32 \"(b - %1) * (b - %1)\" b=x0 %1=v1\neach f32 f32 \"T(1) / sqrt(%2 / # + f)\" f=1e-6 %2=v2\n"
   "each f32 f32 \"(b - %1) * %3\" b=x0 %1=v1 %3=v3\nsum f32 f32 \"a * d\" a=x1 d=x2\n"
   "sum f32 f32 \"a * d * (b - %1)\" a=x1 b=x0 d=x2 %1=v1\n"
   "each f32 bf16 \"%3 * (a * d - %5 / # - %4 * (%3 * %6 / #))\" a=x1 d=x2 %3=v3 %4=v4 %5=v5 %6=v6\n"
   "across f32 f32 \"a * %4\" a=x1 %4=v4\nacross f32 f32 \"a\" a=x1\nstore bf16 [96, 1] align 16 v7\n"
   "store f64 [0, 1] align 16 v8\nstore f64 [0, 1] align 16 v9\n"},
  {"softmax", 0, /* attention's rows, causal or not */
   "loop 98304 x 1024 reduced 1\nload bf16 [1024, 1] align 16\neach f32 f32 \"a * b\" a=x0 b=0.125\n"
   "max f32 f32 \"a\" a=v0\neach f32 f32 \"exp(a - %0)\" a=v0 %0=v1\nsum f32 f64 \"%1\" %1=v2\n"
   "each f64 f32 \"T(1) / %2\" %2=v3\neach f32 bf16 \"%1 * %3\" %1=v2 %3=v4\nstore bf16 [1024, 1] align 16 v5\n"},
  {"softmax_backward", 0,
   "loop 98304 x 1024 reduced 1\nload bf16 [1024, 1] align 16\nload bf16 [1024, 1] align 16\nsum f64 f64 \"a * b\" a=x0 b=x1\n"
   "each f32 bf16 \"b * (a - %0)\" a=x0 b=x1 %0=v0\nstore bf16 [1024, 1] align 16 v1\n"},
  {"softmax_of_vocabulary", 0,
   "loop 8192 x 50304 reduced 1\nload bf16 [50304, 1] align 16\nmax f32 f32 \"a\" a=x0\n"
   "each f32 f32 \"exp(a - %0)\" a=x0 %0=v0\nsum f32 f64 \"%1\" %1=v1\neach f64 f32 \"T(1) / %2\" %2=v2\n"
   "each f32 bf16 \"%1 * %3\" %1=v1 %3=v3\nstore bf16 [50304, 1] align 16 v4\n"},
  {"cross_entropy", 0, /* with its derivative */
   "loop 8192 x 50304 reduced 1\nload bf16 [50304, 1] align 16\nload i64 [1, 0]\nmax f32 f32 \"a\" a=x0\n"
   "each f32 f32 \"exp(a - %0)\" a=x0 %0=v0\nsum f32 f64 \"%1\" %1=v1\neach i64 bool \"@ == b\" b=x1\n"
   "max f32 f32 \"%3 != 0 ? a : -T(INFINITY)\" a=x0 %3=v3\nacross f32 f64 \"log(%2) + %0 - %4\" %0=v0 %2=v2 %4=v4\n"
   "each f64 f32 \"T(1) / %2\" %2=v2\neach f32 bf16 \"(%1 * %3 - (%4 != 0 ? T(1) : T(0))) * T(0.0001220703125)\" %1=v1 %3=v6 %4=v3\n"
   "store f64 [0, 0] v5\nstore bf16 [50304, 1] align 16 v7\n"},
  {"cross_entropy_odd", 0, /* BERT's: its last vector has two of eight */
   "loop 4096 x 30522 reduced 1\nload bf16 [30528, 1] align 16\nload i64 [1, 0]\nmax f32 f32 \"a\" a=x0\n"
   "each f32 f32 \"exp(a - %0)\" a=x0 %0=v0\nsum f32 f64 \"%1\" %1=v1\neach i64 bool \"@ == b\" b=x1\n"
   "max f32 f32 \"%3 != 0 ? a : -T(INFINITY)\" a=x0 %3=v3\neach i64 bool \"b == e\" b=x1 e=-100\n"
   "across f32 f64 \"%5 != 0 ? T(0) : log(%2) + %0 - %4\" %0=v0 %2=v2 %4=v4 %5=v5\neach f64 f32 \"T(1) / %2\" %2=v2\n"
   "each f32 f32 \"%4 != 0 ? T(0) : T(0.0001220703125)\" %4=v5\n"
   "each f32 bf16 \"%4 != 0 ? T(0) : (%1 * %5 - (%3 != 0 ? T(1) : T(0))) * %6\" %1=v1 %3=v3 %4=v5 %5=v7 %6=v8\n"
   "store f64 [0, 0] v6\nstore bf16 [30528, 1] align 16 v9\n"},
  {"gelu", 0,
   "loop 100663296\nload bf16 [1] align 16\neach f32 bf16 \"a * gelu_gate(a)\" a=x0\nstore bf16 [1] align 16 v0\n"},
  {"gelu_bias", 0,
   "loop 32768 x 3072\nload bf16 [3072, 1] align 16\nload bf16 [0, 1] align 16\neach f32 bf16 \"a + b\" a=x0 b=x1\n"
   "each f32 bf16 \"a * gelu_gate(a)\" a=v0\nstore bf16 [3072, 1] align 16 v0\nstore bf16 [3072, 1] align 16 v1\n"},
  {"gelu_backward", 0, "loop 32768 x 3072\n" GELU_BACKWARD "store bf16 [3072, 1] align 16 v0\n"},
  {"gelu_backward_bias", 0, /* with the gradient of the bias */
   "loop 32768 x 3072 reduced 0\n" GELU_BACKWARD "sum f32 f32 \"a\" a=v0\nstore bf16 [3072, 1] align 16 v0\n"
   "store f32 [0, 1] row v1\n"},
  {"gelu_erf", 0, /* BERT's */
   "loop 50331648\nload bf16 [1] align 16\neach f32 bf16 \"a * normal_or_nan(a)\" a=x0\nstore bf16 [1] align 16 v0\n"},
  {"gelu_erf_backward_bias", 0,
   "loop 16384 x 3072 reduced 0\nload bf16 [3072, 1] align 16\nload bf16 [3072, 1] align 16\n"
   "each f32 bf16 \"gelu_backward(a, b)\" a=x0 b=x1\nsum f32 f32 \"a\" a=v0\nstore bf16 [3072, 1] align 16 v0\n"
   "store f32 [0, 1] row v1\n"},
  {"residual_add", 0,
   "loop 32768 x 768\nload f32 [768, 1] align 16\nload bf16 [768, 1] align 16\nload f32 [0, 1] align 16\n"
   "each f32 f32 \"a + b + c\" a=x0 b=x1 c=x2\nstore f32 [768, 1] align 16 v0\n"},
  {"bias_gradient_2304", 0,
   "loop 32768 x 2304 reduced 0\nload bf16 [2304, 1] align 16\nsum f32 f32 \"a\" a=x0\nstore f32 [0, 1] row v0\n"},
  {"bias_gradient_768", 0,
   "loop 32768 x 768 reduced 0\nload f32 [768, 1] align 16\nsum f32 f32 \"a\" a=x0\nstore f32 [0, 1] row v0\n"},
  {"bias_gradient_halves", 0,
   "loop 16384 x 768 reduced 0\nload bf16 [768, 1] align 16\nsum f32 f32 \"a\" a=x0\nstore f32 [0, 1] row v0\n"},
  {"dropout", 0,
   "loop 25165824\nload i64 [0]\nload i64 [0]\nload bf16 [1] align 16\ndraw u32 [1] seed=x0 offset=x1\n"
   "each f32 f32 \"unit(d)\" d=d3\neach f32 bool \"a >= b\" a=v0 b=0.1\neach f32 bf16 \"a * b * c\" a=x2 b=v1 c=1.11111111\n"
   "store bf16 [1] align 16 v2\nstore bool [1] align 16 v1\n"},
  {"dropout_mask", 0, /* of BERT's attention, which reads it as a tensor */
   "loop 100663296\nload i64 [0]\nload i64 [0]\ndraw u32 [1] seed=x0 offset=x1\neach f32 f32 \"unit(d)\" d=d2\n"
   "each f32 bool \"a < b\" a=v0 b=0.9\neach f32 bf16 \"a\" a=v1\nstore bf16 [1] align 16 v2\n"},
  {"adamw", 8, /* p, g, m, v, step size and root of the correction: p, m, v, p as bf16 */
   "loop 124475904\nload f32 [1] align 16\nload f32 [1] align 16\nload f32 [1] align 16\nload f32 [1] align 16\n"
   "load f32 [0]\nload f32 [0]\neach f32 f32 \"a * T(0.9) + b * T(0.1)\" a=x2 b=x1\n"
   "each f32 f32 \"a * T(0.95) + b * b * T(0.05)\" a=x3 b=x1\neach f32 f32 \"sqrt(a) / (b + T(2)) + T(1e-8)\" a=v1 b=x5\n"
   "each f32 f32 \"a * T(0.9999) - d * b / c\" a=x0 b=v0 c=v2 d=x4\neach f32 bf16 \"a\" a=v3\n"
   "store f32 [1] align 16 v3\nstore f32 [1] align 16 v0\nstore f32 [1] align 16 v1\nstore bf16 [1] align 16 v4\n"},
  {"gradient_norm", 0,
   "loop 124475904 reduced 0\nload f32 [1] align 16\nsum f64 f64 \"a * a\" a=x0\neach f64 f32 \"sqrt(%0)\" %0=v0\n"
   "store f32 [0] row v1\n"},
};
/* clang-format on */
enum { N_GPT2_LOOPS = sizeof gpt2_loops / sizeof *gpt2_loops };

#endif
