/* Schema texts: what must parse, what must not and where it says so, what the arrays hold, and random damage. */
#include <kit/schema/schema.h>

#include <aot/inline.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* Memory that is dropped after each schema. */
typedef struct heap {
  char bytes[1 << 16];
  size_t used;
} heap_t;
static heap_t heap;

static void *heap_alloc(void *self, uint64_t align, uint64_t nbytes) {
  heap_t *h = self;
  size_t at = (h->used + align - 1) / align * align;
  if (at + nbytes > sizeof h->bytes) return NULL;
  h->used = at + nbytes;
  memset(h->bytes + at, 0, nbytes);
  return h->bytes + at;
}

static const sch_memory_t memory = {&heap, heap_alloc};

static sch_schema_t parsed(const char *text) {
  sch_schema_t s;
  sch_error_t error;
  if (sch_parse(aot_str(text), &memory, &s, &error) != AOT_OK)
    fail_msg("%s: byte %u: %s", text, error.at, error.message);
  return s;
}

/* Real schemas of PyTorch, and some made up to stress the grammar (foo.*). */
static const char *const accepted[] = {
    "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    "aten::add(Scalar a, Scalar b) -> Scalar",
    "aten::add.t(t[] a, t[] b) -> t[]",
    "aten::add_.t(t[](a!) self, t[] b) -> t[]",
    "__lshift__.Scalar(Tensor self, Scalar other) -> Tensor",
    "_c10d_functional::all_reduce(Tensor input, str reduce_op, str group_name) -> Tensor",
    "sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    "get_gradients(int context_id) -> Dict(Tensor, Tensor)",
    "_make_token() -> Tensor",
    "_sink_tokens(Tensor[] tokens) -> ()",
    "_assert_async.msg(Tensor self, str assert_msg) -> ()",
    "_make_dep_token(*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
    "aten::format(str self, ...) -> str",
    "prim::Print(...) -> ()",
    "aten::VarargReturn(int a) -> ...",
    "view(Tensor(a) self, SymInt[] size) -> Tensor(a)",
    "add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)",
    "split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]",
    "unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]",
    "foo.union(Tensor(a|b) x, Tensor(b) y) -> Tensor(a|b)",
    "foo.afterset(Tensor(a! -> a|b) x, Tensor(b) y) -> Tensor(a|b)",
    "foo.wild(Tensor(*) x) -> Tensor(*)",
    "foo.fresh(Tensor! x) -> Tensor",
    "_foreach_add_.List(Tensor(a!)[] self, Tensor[] other, *, Scalar alpha=1) -> ()",
    "all_reduce_coalesced_(Tensor[](a!) inputs, str reduce_op, str group_name) -> Tensor[](a!)",
    "foo.nested(Tensor(a!)[](b!) x) -> Tensor(a!)[](b!)",
    "_mm_plus_mm(Tensor a, Tensor b, Tensor c, Tensor d, Tensor(t!) out) -> Tensor(t!)",
    "_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, "
    "Tensor(b!) running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
    "_native_batch_norm_legit.out(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, "
    "Tensor(b!) running_var, bool training, float momentum, float eps, *, Tensor(d!) out, Tensor(e!) "
    "save_mean, Tensor(f!) save_invstd) -> (Tensor(d!), Tensor(e!), Tensor(f!))",
    "cummax.out(Tensor self, int dim, *, Tensor(a!) values, Tensor(b!) indices) -> (Tensor(a!) values, "
    "Tensor(b!) indices)",
    "resize_storage_bytes_(Tensor variable, SymInt new_size) -> ()",
    "index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
    "index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
    "_assert_tensor_metadata(Tensor a, SymInt[]? size=None, SymInt[]? stride=None, ScalarType? "
    "dtype=None, *, Device? device=None, Layout? layout=None) -> ()",
    "mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    "upsample_bilinear2d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? "
    "scale_factors) -> Tensor",
    "rename_(Tensor(a!) self, Dimname[]? names) -> Tensor(a!)",
    "gradient.scalarrayarray(Tensor self, *, Scalar[] spacing, int[] dim, int edge_order=1) -> Tensor[]",
    "native_layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] normalized_shape, Tensor mean, "
    "Tensor rstd, Tensor? weight, Tensor? bias, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    "dsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]",
    "foo.listlist(int[][] x, (int, Tensor)[] y, Dict(str, Tensor)? z=None) -> (int[][], Tensor?)",
    "foo.future(Future(Tensor) x, Await(int) y, RRef(Tensor) z) -> Future(Tensor)",
    "foo.cls(__torch__.torch.classes.quantized.LinearPackedParamsBase packed, Tensor x) -> Tensor",
    "_cudnn_rnn(Tensor input, Tensor[] weight, int weight_stride0, Tensor? weight_buf, Tensor hx, "
    "Tensor? cx, int mode, SymInt hidden_size, SymInt proj_size, int num_layers, bool batch_first, float "
    "dropout, bool train, bool bidirectional, SymInt[] batch_sizes, Tensor? dropout_state) -> (Tensor, "
    "Tensor, Tensor, Tensor, Tensor)",
    "conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1, SymInt[2] padding=0, "
    "SymInt[2] dilation=1, SymInt groups=1) -> Tensor",
    "conv2d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1, str "
    "padding=\"valid\", SymInt[2] dilation=1, SymInt groups=1) -> Tensor",
    "max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] "
    "dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",
    "fft_fft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], str? norm=None) -> Tensor",
    "gelu(Tensor self, *, str approximate='none') -> Tensor",
    "_test_string_default(Tensor dummy, str a=\"\\\"'\\\\\", str b='\"\\'\\\\') -> Tensor",
    "contiguous(Tensor(a) self, *, MemoryFormat memory_format=contiguous_format) -> Tensor(a)",
    "randperm(SymInt n, *, ScalarType? dtype=long, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=None) -> Tensor",
    "tril_indices(int row, int col, int offset=0, *, ScalarType? dtype=long, Layout? layout=None, "
    "Device? device=None, bool? pin_memory=None) -> Tensor",
    "nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, SymInt "
    "ignore_index=-100) -> Tensor",
    "isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> Tensor",
    "rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, "
    "Generator? generator=None) -> Tensor",
    "aten::_pdist_forward(Tensor self, float p=2.) -> Tensor",
    "sparse_coo_tensor.size(int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? "
    "device=None, bool? pin_memory=False) -> Tensor",
    "linalg_matrix_norm(Tensor self, Scalar ord, int[] dim=[-2,-1], bool keepdim=False, *, ScalarType? "
    "dtype=None) -> Tensor",
    "foo.cplx(complex x=2j, float y=-1.5e-3, int z=-1, bool[3] m=[True, False, True], str[] s=[\"a\", "
    "'b']) -> complex",
    "clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor",
    "random_.from(Tensor(a!) self, int from, int? to, *, Generator? generator=None) -> Tensor(a!)",
    "topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, "
    "Tensor indices)",
    "sym_size.int(Tensor self, int dim) -> SymInt",
    "_local_scalar_dense(Tensor self) -> Scalar",
    "fbgemm_linear_quantize_weight(Tensor input) -> (Tensor, Tensor, float, int)",
    "_fused_adam(Tensor[] self, Tensor[] grads, Tensor[] exp_avgs, Tensor[] exp_avg_sqs, Tensor[] "
    "max_exp_avg_sqs, Tensor[] state_steps, *, float lr, float beta1, float beta2, float weight_decay, "
    "float eps, bool amsgrad, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> "
    "(Tensor[] self_out, Tensor[] grads_out, Tensor[] exp_avgs_out, Tensor[] exp_avg_sqs_out, Tensor[] "
    "max_exp_avg_sqs_out)",
    "_flash_attention_forward_no_dropout_inplace(Tensor(a!) out, Tensor query, Tensor key, Tensor value, "
    "Tensor? cum_seq_q, Tensor? cum_seq_k, SymInt max_q, SymInt max_k, float dropout_p, bool is_causal, "
    "bool return_debug_mask, *, float? scale=None, SymInt? window_size_left=None, SymInt? "
    "window_size_right=None, Tensor? seqused_k=None, Tensor? alibi_slopes=None, Tensor? "
    "block_table=None, int? num_splits=None) -> Tensor softmax_logsumexp",
    "_scaled_dot_product_efficient_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_bias, "
    "bool compute_log_sumexp, float dropout_p=0.0, bool is_causal=False, *, float? scale=None) -> "
    "(Tensor output, Tensor log_sumexp, Tensor philox_seed, Tensor philox_offset)",
    "qscheme(Tensor self) -> QScheme",
    "record_stream(Tensor(a!) self, Stream s) -> ()",
    "result_type.Tensor(Tensor tensor, Tensor other) -> ScalarType",
};

static void all_forms_parse_and_print_back(void **state) {
  static char first[1 << 14], second[1 << 14];
  size_t i;
  (void)state;
  for (i = 0; i < sizeof accepted / sizeof accepted[0]; i++) {
    sch_schema_t s;
    heap.used = 0;
    s = parsed(accepted[i]);
    assert_true(sch_print(&s, first, sizeof first) < sizeof first);
    s = parsed(first);
    sch_print(&s, second, sizeof second);
    assert_string_equal(first, second);
  }
}

static void refusals_say_where_and_why(void **state) {
  static const struct {
    const char *text;
    uint32_t at;
    const char *message;
  } rows[] = {
      {"add.default(Tensor self) -> Tensor", 4, "'default' is not an overload name"},
      {"add.__x(Tensor self) -> Tensor", 4, "does not start with '__'"},
      {"foo(double x) -> Tensor", 4, "use float"},
      {"foo(int64_t x) -> Tensor", 4, "use SymInt or int"},
      {"foo(int x=3, ...) -> ()", 13, "cannot follow an argument with a default"},
      {"foo(Tensor x) Tensor", 14, "expected '->', found 'T'"},
      {"foo(Tensor x=1) -> Tensor", 13, "can only be None"},
      {"foo(Tensor(a! x) -> Tensor", 10, "alias mark is not closed"},
      {"foo(..., int x) -> ()", 4, "must be the last argument"},
      {"foo(t x) -> t", 4, "unknown type 't'"},
      {"foo(int x", 9, "the schema ends where ')' is expected"},
      {"foo(int[] x=3) -> ()", 12, "needs a default in brackets"},
      {"foo(str x=\"a) -> ()", 10, "string is not closed"},
      {"foo(bool x=1) -> ()", 11, "does not fit"},
      {"foo(int x=1.5) -> ()", 10, "does not fit"},
      {"foo(*, int a, *, int b) -> ()", 14, "'*' stands twice"},
      {"foo() -> () junk", 12, "text after the end"},
      {"foo(int) -> ()", 7, "expected an argument name"},
      {"", 0, "expected"},
  };
  size_t i;
  (void)state;
  for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    sch_schema_t s;
    sch_error_t error;
    heap.used = 0;
    assert_int_equal(sch_parse(aot_str(rows[i].text), &memory, &s, &error), AOT_E_INVALID);
    if (strstr(error.message, rows[i].message) == NULL || error.at != rows[i].at)
      fail_msg("%s: byte %u: %s", rows[i].text, error.at, error.message);
  }
}

static void assert_name(const aot_schema_arg_t *a, const char *name) {
  assert_true(aot_str_eq(a->name, aot_str(name)));
}

static void arguments_keep_types_marks_and_defaults(void **state) {
  sch_schema_t s;
  (void)state;
  heap.used = 0;
  s = parsed(
      "aten::foo.bar(Tensor(a!)[] xs, Tensor?[] maybe, SymInt[2]? size=None, int[2] stride=1, *, Scalar alpha=1, "
      "float eps=1, str mode=\"none\", ScalarType? dtype=long, MemoryFormat f=contiguous_format, bool[2] m=[True, "
      "False]) "
      "-> (Tensor(a!)[] out, Tensor rest)");
  assert_true(aot_str_eq(s.name, aot_str("aten::foo")));
  assert_true(aot_str_eq(s.overload, aot_str("bar")));
  assert_int_equal(s.n_args, 10);
  assert_int_equal(s.n_results, 2);
  assert_name(&s.args[0], "xs");
  assert_int_equal(s.args[0].type, AOT_STYPE_TENSOR);
  assert_int_equal(s.args[0].flags, AOT_SARG_LIST | AOT_SARG_WRITE);
  assert_int_equal(s.args[0].alias_set, 1);
  assert_int_equal(s.args[0].write_if, 0);
  assert_int_equal(s.args[1].flags, AOT_SARG_LIST | AOT_SARG_OPTIONAL_ELEM);
  assert_int_equal(s.args[2].type, AOT_STYPE_INT);
  assert_int_equal(s.args[2].flags, AOT_SARG_LIST | AOT_SARG_OPTIONAL | AOT_SARG_HAS_DEFAULT);
  assert_int_equal(s.args[2].list_size, 2);
  assert_int_equal(s.args[2].preset.kind, AOT_ARG_NONE);
  assert_int_equal(s.args[3].preset.kind, AOT_ARG_INTS); /* one number represents both */
  assert_int_equal(s.args[3].preset.n, 2);
  assert_int_equal(s.args[3].preset.u.ints[1], 1);
  assert_int_equal(s.args[4].flags, AOT_SARG_KWONLY | AOT_SARG_HAS_DEFAULT);
  assert_int_equal(s.args[4].preset.kind, AOT_ARG_INT);
  assert_int_equal(s.args[5].preset.kind, AOT_ARG_FLOAT); /* an integer literal for a float */
  assert_true(s.args[5].preset.u.f == 1.0);
  assert_int_equal(s.args[6].preset.n, 4);
  assert_memory_equal(s.args[6].preset.u.chars, "none", 4);
  assert_int_equal(s.args[7].preset.kind, AOT_ARG_DTYPE);
  assert_int_equal(s.args[7].preset.u.i, AOT_I64);
  assert_int_equal(s.args[8].preset.u.i, AOT_MEMORY_CONTIGUOUS);
  assert_int_equal(s.args[9].preset.kind, AOT_ARG_BOOLS);
  assert_int_equal(s.args[9].preset.u.ints[0], 1);
  assert_int_equal(s.args[9].preset.u.ints[1], 0);
  assert_name(&s.results[0], "out");
  assert_int_equal(s.results[0].alias_set, 1);
  assert_int_equal(s.results[0].flags, AOT_SARG_LIST | AOT_SARG_WRITE);
  assert_int_equal(s.results[1].alias_set, 0);
}

static void alias_sets_are_numbered_by_letter(void **state) {
  sch_schema_t s;
  (void)state;
  heap.used = 0;
  s = parsed("split(Tensor(a -> *) self, Tensor(b) x, Tensor(*) y, Tensor(a|b) z, Tensor! w) -> Tensor(a)[]");
  assert_int_equal(s.args[0].alias_set, 1);
  assert_int_equal(s.args[1].alias_set, 2);
  assert_int_equal(s.args[2].alias_set, AOT_ALIAS_ANY);
  assert_int_equal(s.args[3].alias_set, AOT_ALIAS_ANY);
  assert_int_equal(s.args[4].alias_set, 0);
  assert_int_equal(s.args[4].flags, AOT_SARG_WRITE);
  assert_int_equal(s.results[0].alias_set, 1);
  assert_int_equal(s.results[0].flags, AOT_SARG_LIST);
}

/* Ours: regions of higher-order operators, and any number of anything. */
static void regions_and_variadic_tails(void **state) {
  sch_schema_t s;
  (void)state;
  heap.used = 0;
  s = parsed("(bool enabled, Graph graph, ...) -> ...");
  assert_int_equal(s.name.size, 0);
  assert_int_equal(s.n_args, 3);
  assert_int_equal(s.args[1].type, AOT_STYPE_GRAPH);
  assert_int_equal(s.args[2].type, AOT_STYPE_ANY);
  assert_int_equal(s.args[2].flags, AOT_SARG_VARIADIC);
  assert_int_equal(s.n_results, 1);
  assert_int_equal(s.results[0].flags, AOT_SARG_VARIADIC);
}

static void no_memory_is_a_status(void **state) {
  sch_schema_t s;
  sch_error_t error;
  (void)state;
  heap.used = sizeof heap.bytes;
  assert_int_equal(sch_parse(aot_str("f(Tensor x) -> Tensor"), &memory, &s, &error), AOT_E_EXHAUSTED);
}

/* Damaged schemas either parse or are refused at a byte of the text; what parses prints and parses again. */
static void damage_is_survived(void **state) {
  static const char letters[] = "()[]!?*=,.->|:abTensorint0123456789\"' ";
  static char text[1 << 14], printed[1 << 14];
  uint32_t seed = 12345, round;
  (void)state;
  for (round = 0; round < 20000; round++) {
    sch_schema_t s;
    sch_error_t error;
    uint32_t n_hits, i;
    size_t size;
    seed = seed * 1664525u + 1013904223u;
    strcpy(text, accepted[(seed >> 8) % (sizeof accepted / sizeof accepted[0])]);
    n_hits = (seed >> 4) % 4 + 1;
    for (i = 0; i < n_hits; i++) {
      size_t at;
      size = strlen(text);
      seed = seed * 1664525u + 1013904223u;
      at = (seed >> 8) % (size + 1);
      switch (seed % 3) {
        case 0: text[at] = at < size ? letters[(seed >> 20) % (sizeof letters - 1)] : '\0'; break;
        case 1:
          if (at < size) memmove(text + at, text + at + 1, size - at);
          break;
        default: text[at] = '\0'; break;
      }
    }
    heap.used = 0;
    size = strlen(text);
    if (sch_parse(aot_str(text), &memory, &s, &error) != AOT_OK) {
      assert_true(error.at <= size);
      assert_true(error.message[0] != '\0');
      continue;
    }
    sch_print(&s, printed, sizeof printed);
    if (sch_parse(aot_str(printed), &memory, &s, &error) != AOT_OK)
      fail_msg("%s\nprints as %s\nbyte %u: %s", text, printed, error.at, error.message);
  }
}

int main(void) {
  /* clang-format off */
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_forms_parse_and_print_back),          cmocka_unit_test(refusals_say_where_and_why),
      cmocka_unit_test(arguments_keep_types_marks_and_defaults), cmocka_unit_test(alias_sets_are_numbered_by_letter),
      cmocka_unit_test(regions_and_variadic_tails),              cmocka_unit_test(no_memory_is_a_status),
      cmocka_unit_test(damage_is_survived),
  };
  /* clang-format on */
  return cmocka_run_group_tests(tests, NULL, NULL);
}
