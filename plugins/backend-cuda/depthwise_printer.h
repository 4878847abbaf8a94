/* Depthwise convolutions of images that lie channels last, as CUDA C. A thread has two channels, which lie side by
 * side, and of an image a tile of outputs, so that what it reads serves several of them; weights are in shared
 * memory. The gradient of an image is the same with the windows turned round. Of weights a thread has a row of the
 * window, and adds up a part of the images' rows; the sum of the parts is left to a loop. */
#ifndef GC_DEPTHWISE_PRINTER_H
#define GC_DEPTHWISE_PRINTER_H

#include "cudnn/conv_graphs.h"
#include <stdint.h>

/* After X, W, Y: a forward's bias, or the parts of weights, in float: [parts, rows of the window, columns,
 * channels]. */
enum { GC_DEPTHWISE_MORE = GC_CONV_N_TENSORS, GC_DEPTHWISE_N_POINTERS };

typedef struct gc_depthwise {
  gc_conv_t conv;
  int32_t kind; /* GC_DNN_CONV_FORWARD, .. */
  int has_bias;
} gc_depthwise_t;

/* One step at a time, windows up to 7 x 7, whole groups of 8 channels; f32 and halves. Elements are in pairs. */
int gc_is_depthwise(const gc_conv_t *c);
void gc_print_depthwise(const void *self, const char *name, lp_text_t *out);
void gc_depthwise_launch(const gc_depthwise_t *d, uint32_t *out_blocks, uint32_t *out_threads);
int64_t gc_depthwise_parts(const gc_depthwise_t *d);

#endif
