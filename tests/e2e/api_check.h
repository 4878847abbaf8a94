/* What programs that test aothost.h share: complaints, the inputs f32[8, 16] and i64[8] of the mlp, numbers by key. */
#ifndef API_CHECK_H
#define API_CHECK_H

#include <aothost.h>

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static int n_messages, last_severity;
static char last_message[4096];

static void note(void *self, int32_t severity, const char *text) {
  (void)self;
  last_severity = severity;
  n_messages++;
  strncpy(last_message, text, sizeof last_message - 1);
}

static int n_failed;
static void check(int ok, const char *what, int line) {
  if (ok) return;
  n_failed++;
  fprintf(stderr, "line %d: %s; last message: %s\n", line, what, last_message);
}
#define CHECK(x) check((x) != 0, #x, __LINE__)

static float x_data[8 * 16];
static int64_t y_data[8];
static const int64_t x_sizes[2] = {8, 16}, y_sizes[1] = {8};

static void make_inputs(aot_tensor_t *in) {
  for (int i = 0; i < 8 * 16; i++) x_data[i] = (float)sin(0.7 * i);
  for (int i = 0; i < 8; i++) y_data[i] = i;
  memset(in, 0, 2 * sizeof *in);
  in[0].data = x_data;
  in[0].nbytes = sizeof x_data;
  in[0].dtype = AOT_F32;
  in[0].rank = 2;
  in[0].sizes = x_sizes; /* no strides: contiguous */
  in[1].data = y_data;
  in[1].nbytes = sizeof y_data;
  in[1].dtype = AOT_I64;
  in[1].rank = 1;
  in[1].sizes = y_sizes;
}

static float number(aothost_t *h, const char *key) {
  aot_tensor_t t;
  if (aothost_get(h, key, &t) != AOT_OK || t.dtype != AOT_F32) return -1;
  return ((const float *)t.data)[t.offset];
}

#endif
