/* The host's tensors of one bound call, on a device whose memory it cannot touch: buffers of the device in their place,
 * filled before a run and read after it, through a queue. Tensors that share memory share a buffer in the same way. */
#ifndef AOTH_STAGING_H
#define AOTH_STAGING_H

#include <aot/backend.h>

/* A piece of the host's memory and what stands for it. */
typedef struct aoth_staged {
  char *host;
  aot_buffer_t buffer;
  int is_input, is_output;
} aoth_staged_t;

typedef struct aoth_staging {
  aot_binding_t binding; /* the host's, with addresses of the device */
  aot_tensor_t *tensors; /* of the binding */
  aoth_staged_t *pieces; /* n_pieces, by address */
  aoth_staged_t *open;   /* n_open: outputs that the run asked for */
  uint64_t n_pieces, n_open, open_capacity;
} aoth_staging_t;

/* The arrays of `host` other than tensors are borrowed until deinit; it binds no arena yet. After a failure, too:
 * deinit. */
aot_status_t aoth_staging_init(aoth_staging_t *g, aot_ctx_t *ctx, const aot_device_t *device,
                               const aot_binding_t *host);
/* nothing is under way */
aot_status_t aoth_staging_deinit(aoth_staging_t *g, aot_ctx_t *ctx, const aot_device_t *device);

/* Put on the queue; *copied grows by the bytes. Open outputs are read with the others, and let go by the next run or
 * deinit. */
aot_status_t aoth_staging_write(aoth_staging_t *g, aot_ctx_t *ctx, const aot_device_t *device, aot_queue_t *q,
                                uint64_t *copied);
aot_status_t aoth_staging_read(const aoth_staging_t *g, aot_ctx_t *ctx, const aot_device_t *device, aot_queue_t *q,
                               uint64_t *copied);

/* Where a staged run has its open outputs from: the host's sink, with a buffer for each of its tensors. Members are
 * borrowed. */
typedef struct aoth_staged_sink {
  aoth_staging_t *staging;
  aot_ctx_t *ctx;
  const aot_device_t *device;
  const aot_output_sink_t *host;
} aoth_staged_sink_t;
aot_output_sink_t aoth_staged_sink(aoth_staged_sink_t *self);

#endif
