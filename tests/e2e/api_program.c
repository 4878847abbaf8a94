/* A program that knows aothost.h and nothing else: compiles a pipeline, trains a few steps by hand, reads results,
 * makes the mistakes that callers make. api_program PIPELINE MODEL, for a model with inputs f32[8, 16] and i64[8]
 * and a loss. */
#include "api_check.h"

static void train(aothost_t *h, const aot_tensor_t *in) {
  aot_tensor_t w, g, kept;
  float first = 0, last = 0;
  for (int step = 0; step < 20; step++) {
    CHECK(aothost_forward(h, in, 2) == AOT_OK);
    last = number(h, "output.0");
    if (step == 0) first = last;
    CHECK(aothost_backward(h, NULL, 0) == AOT_OK);
    CHECK(aothost_update(h, 0.01) == AOT_OK);
  }
  printf("loss %.4f -> %.4f\n", (double)first, (double)last);
  CHECK(last < first - 0.5f);
  CHECK(aothost_get(h, "param.m.0.weight", &w) == AOT_OK);
  CHECK(aothost_get(h, "grad.m.0.weight", &g) == AOT_OK);
  /* both answers stay valid */
  CHECK(w.rank == 2 && g.rank == 2 && w.sizes[0] == g.sizes[0] && w.sizes[1] == g.sizes[1]);
  CHECK(aothost_get(h, "state.adamw.exp_avg.m.0.weight", &kept) == AOT_OK);
  CHECK(aothost_get(h, "grad.nobody", &kept) == AOT_E_NOT_FOUND);
  CHECK(aothost_reset(h) == AOT_OK);
  CHECK(aothost_forward(h, in, 2) == AOT_OK);
  CHECK(number(h, "output.0") == first);
}

static void set_leaf(aothost_t *h, const aot_tensor_t *in) {
  aot_tensor_t bias;
  float zeros[10] = {0};
  CHECK(aothost_get(h, "param.m.4.bias", &bias) == AOT_OK);
  bias.data = zeros;
  bias.nbytes = sizeof zeros;
  CHECK(aothost_set(h, "param.m.4.bias", &bias) == AOT_OK);
  CHECK(number(h, "param.m.4.bias") == 0);
  CHECK(aothost_set(h, "param.nobody", &bias) == AOT_E_NOT_FOUND);
  bias.nbytes = 4; /* reaches past its storage */
  CHECK(aothost_set(h, "param.m.4.bias", &bias) == AOT_E_INVALID);
  CHECK(aothost_forward(h, in, 2) == AOT_OK);
}

/* What was got may be given: here an input as the call left it. */
static void feed_back(aothost_t *h, const aot_tensor_t *in) {
  aot_tensor_t again[2];
  float loss = number(h, "output.0");
  again[1] = in[1];
  for (int i = 0; i < 3; i++) {
    CHECK(aothost_get(h, "input_after.0", &again[0]) == AOT_OK);
    CHECK(aothost_forward(h, again, 2) == AOT_OK);
    CHECK(number(h, "output.0") == loss);
  }
}

static void make_mistakes(aothost_t *h, const aot_tensor_t *in) {
  aot_tensor_t bad[2];
  int before = n_messages;
  memcpy(bad, in, sizeof bad);
  bad[0].dtype = AOT_F64;
  CHECK(aothost_forward(h, bad, 2) != AOT_OK);
  bad[0].dtype = 77;
  CHECK(aothost_forward(h, bad, 2) == AOT_E_INVALID);
  CHECK(aothost_forward(h, in, 1) == AOT_E_INVALID);
  CHECK(strstr(last_message, "the model takes 2 inputs, 1 is given") != NULL);
  CHECK(aothost_backward(h, NULL, 0) != AOT_OK); /* the forward failed */
  CHECK(aothost_update(h, 1) == AOT_E_PRECONDITION);
  CHECK(aothost_compile(h, 0) == AOT_E_PRECONDITION);
  CHECK(n_messages == before + 6); /* one story each */
}

/* The same training as one graph: the same losses; with micro steps, two of which make an update. */
static void train_at_once(aothost_config_t *config, const char *pipeline, const aot_tensor_t *in, int micro_steps) {
  const char *sets[] = {"vars.partition=partition-mincut", "run.train.steps=1", "run.train.accumulate=2"};
  aothost_t *h = NULL;
  float first = 0, last = 0;
  config->sets = sets;
  config->n_sets = micro_steps > 1 ? 3 : 2;
  CHECK(aothost_open(pipeline, config, &h) == AOT_OK && aothost_compile(h, AOTHOST_OPTIMIZER | AOTHOST_STEP) == AOT_OK);
  CHECK(aothost_has_step(h) && !aothost_has_backward(h) && !aothost_has_update(h));
  CHECK(aothost_apply(h, 0.01) == (micro_steps > 1 ? AOT_E_PRECONDITION : AOT_OK)); /* nothing was added up yet */
  for (int step = 0; step < 20 * micro_steps; step++) {
    CHECK(aothost_step(h, in, 2, 0.01) == AOT_OK);
    last = number(h, "output.0");
    if (step == 0) first = last;
    if (step % micro_steps == micro_steps - 1) CHECK(aothost_apply(h, 0.01) == AOT_OK);
  }
  printf("at once: loss %.4f -> %.4f\n", (double)first, (double)last);
  CHECK(last < first - 0.5f);
  CHECK(aothost_forward(h, in, 2) == AOT_E_PRECONDITION);
  CHECK(strstr(last_message, "no forward graph") != NULL);
  aothost_close(h);
}

int main(int argc, char **argv) {
  const char *sets[] = {"vars.partition=partition-mincut", "run.train.steps=1"};
  aothost_config_t config;
  aothost_t *h = NULL;
  aot_tensor_t in[2];
  if (argc < 3) return 2;
  make_inputs(in);
  memset(&config, 0, sizeof config);
  config.struct_size = sizeof config;
  config.model = argv[2];
  config.sets = sets;
  config.n_sets = 2;
  config.message = note;

  CHECK(aothost_open("there is no such pipeline.yaml", &config, &h) != AOT_OK);
  CHECK(n_messages == 1 && last_severity == AOT_SEVERITY_ERROR); /* an error */
  CHECK(aothost_forward(h, in, 2) != AOT_OK);
  aothost_close(h);

  CHECK(aothost_open(argv[1], &config, &h) == AOT_OK);
  CHECK(aothost_forward(h, in, 2) == AOT_E_PRECONDITION);
  CHECK(aothost_compile(h, AOTHOST_OPTIMIZER) == AOT_OK);
  CHECK(aothost_n_inputs(h) == 2 && aothost_n_outputs(h) == 1 && aothost_has_backward(h) && aothost_has_update(h));
  train(h, in);
  set_leaf(h, in);
  feed_back(h, in);
  make_mistakes(h, in);
  aothost_close(h);
  train_at_once(&config, argv[1], in, 1);
  train_at_once(&config, argv[1], in, 2);
  aothost_close(NULL);
  printf("%d failed\n", n_failed);
  return n_failed != 0;
}
