/* A pipeline and a model that are in memory. memory_program PIPELINE MODEL PROGRAM: a pipeline's file; an archive with
 * inputs f32[8, 16] and i64[8] and a loss; a text program. */
#include "api_check.h"

#include <stdlib.h>

typedef struct bytes {
  char *data; /* at a multiple of 64 */
  size_t size;
} bytes_t;

static bytes_t read_file(const char *path) {
  FILE *f = fopen(path, "rb");
  bytes_t b = {NULL, 0};
  void *memory = NULL;
  if (!f || fseek(f, 0, SEEK_END) != 0 || posix_memalign(&memory, 64, (size_t)ftell(f) + 65) != 0) exit(2);
  b.data = memory;
  rewind(f);
  b.size = fread(b.data, 1, (size_t)1 << 24, f);
  fclose(f);
  return b;
}

/* The loss of one forward of the mlp, or -1. Closes the handle. */
static float loss_of(aothost_t *h) {
  aot_tensor_t in[2];
  make_inputs(in);
  const int ok = aothost_compile(h, 0) == AOT_OK && aothost_forward(h, in, 2) == AOT_OK;
  const float loss = ok ? number(h, "output.0") : -1;
  aothost_close(h);
  return loss;
}

/* Archives are recognised by what is in them, wherever they lie. What was given to open may go, but for the model. */
static void check_archive(aothost_config_t *c, const char *pipeline, const char *model) {
  bytes_t text = read_file(pipeline), archive = read_file(model);
  char name[] = "somewhere/pipeline.yaml", what[] = "some model";
  aothost_t *h = NULL;
  c->model = model;
  CHECK(aothost_open(pipeline, c, &h) == AOT_OK);
  const float loss = loss_of(h);
  CHECK(loss > 0);
  for (int misplaced = 0; misplaced < 2; misplaced++) {
    if (misplaced) memmove(archive.data + 1, archive.data, archive.size);
    c->model = misplaced ? what : NULL;
    c->model_data = archive.data + misplaced;
    c->model_nbytes = archive.size;
    CHECK(aothost_open_text(text.data, text.size, name, c, &h) == AOT_OK);
    memset(text.data, '?', text.size);
    memset(name, '?', sizeof name - 1);
    memset(what, '?', sizeof what - 1);
    if (misplaced) memset(archive.data, '?', archive.size + 1); /* it was copied */
    CHECK(loss_of(h) == loss);
    free(text.data);
    text = read_file(pipeline);
  }
  free(archive.data);
  archive = read_file(model);
  c->model = "cut.pt2";
  c->model_data = archive.data;
  c->model_nbytes = archive.size / 2;
  CHECK(aothost_open_text(text.data, text.size, "p.yaml", c, &h) == AOT_OK && aothost_compile(h, 0) != AOT_OK);
  CHECK(strstr(last_message, "cut.pt2") != NULL);
  aothost_close(h);
  free(text.data);
  free(archive.data);
  c->model = NULL;
  c->model_data = NULL;
}

static void check_program(aothost_config_t *c, const char *path) {
  static const char pipeline[] =
      "aot: 1\nstages: [{use: functionalize}, {use: autograd}, {use: partition-default}, {use: backend-ref}]\n";
  bytes_t program = read_file(path);
  aothost_t *h = NULL;
  c->model = "given.ir";
  c->model_data = program.data;
  c->model_nbytes = program.size;
  CHECK(aothost_open_text(pipeline, sizeof pipeline - 1, "p.yaml", c, &h) == AOT_OK && aothost_compile(h, 0) == AOT_OK);
  CHECK(aothost_n_inputs(h) == 2 && aothost_n_outputs(h) == 3);
  aothost_close(h);
  static const char broken[] = "aot 1\nproperties imported\nleaf 0 parameter \"w\" : f99[4]\n";
  c->model_data = broken;
  c->model_nbytes = sizeof broken - 1;
  CHECK(aothost_open_text(pipeline, sizeof pipeline - 1, "p.yaml", c, &h) == AOT_OK);
  CHECK(aothost_compile(h, 0) == AOT_E_INVALID);
  CHECK(strstr(last_message, "given.ir:3:24: error") != NULL);
  aothost_close(h);
  static const char says_functional[] = "aot 1\nproperties imported functional\n";
  static const char for_such[] = "aot: 1\nstages: [{use: autograd}, {use: partition-default}, {use: backend-ref}]\n";
  CHECK(aothost_open_text(for_such, sizeof for_such - 1, "p.yaml", c, &h) == AOT_E_INVALID); /* autograd needs more */
  aothost_close(h);
  c->model_data = says_functional;
  c->model_nbytes = sizeof says_functional - 1;
  CHECK(aothost_open_text(for_such, sizeof for_such - 1, "p.yaml", c, &h) == AOT_OK);
  aothost_close(h);
  free(program.data);
  c->model = NULL;
  c->model_data = NULL;
}

/* Complaints are located as in a file; paths begin in the folder of the name. */
static void check_text(aothost_config_t *c, const char *pipeline, const char *model) {
  static const char wrong[] = "aot: 1\nstages:\n  - use: no-such-unit\n";
  static const char including[] = "aot: 1\ninclude: api.yaml\n";
  aothost_t *h = NULL;
  char name[4096];
  CHECK(aothost_open_text(wrong, sizeof wrong - 1, "made up.yaml", c, &h) == AOT_E_INVALID);
  CHECK(strstr(last_message, "made up.yaml:3:10: error") != NULL &&
        strstr(last_message, "- use: no-such-unit") != NULL);
  aothost_close(h);
  snprintf(name, sizeof name, "%.*s/not there.yaml", (int)(strrchr(pipeline, '/') - pipeline), pipeline);
  c->model = model;
  CHECK(aothost_open_text(including, sizeof including - 1, name, c, &h) == AOT_OK && loss_of(h) > 0);
  CHECK(aothost_open_text("", 0, "empty.yaml", c, &h) == AOT_E_INVALID);
  CHECK(strstr(last_message, "empty.yaml") != NULL);
  aothost_close(h);
}

int main(int argc, char **argv) {
  aothost_config_t config = {0};
  if (argc < 4) return 2;
  config.struct_size = sizeof config;
  config.message = note;
  check_archive(&config, argv[1], argv[2]);
  check_program(&config, argv[3]);
  check_text(&config, argv[1], argv[2]);
  printf("%d failed\n", n_failed);
  return n_failed != 0;
}
