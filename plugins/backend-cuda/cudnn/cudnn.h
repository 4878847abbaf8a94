/* cuDNN 9, opened at run time: its backend interface of descriptors and attributes. Numbers and signatures are those of
 * cudnn_graph.h; functions answer 0 or a cudnnStatus_t. */
#ifndef GC_CUDNN_H
#define GC_CUDNN_H

#include "driver.h"

typedef struct gc_cudnn {
  const char *folder; /* the one place where it is looked for; NULL: where the loader looks, and CUDA's folder */
  int state;          /* of gc_cudnn_ready */
  char why[400];      /* it is not ready */
  void *library;
  size_t version; /* 91900 */
  /* One of the two: a context of the device that is current, or a descriptor of a device that need not be there. */
  void *handle, *device;
  struct gc_dnn_plan *plans; /* plan_cache.c */
  /* NULL, or: plans that are neither here nor kept are taken to exist, and are being made (plan_cache_disk.h) */
  struct gc_plans_making *making;
  uint32_t n_kept, n_made;
  const char *kept_in; /* folder; NULL: none */
  uint64_t identity;   /* of version and device */
  size_t (*get_version)(void);
  const char *(*error_string)(int status);
  void (*last_error)(char *out, size_t size);
  int (*create)(void **handle);
  int (*destroy)(void *handle);
  int (*set_stream)(void *handle, gc_stream_t stream);
  int (*desc_create)(int type, void **desc);
  int (*desc_destroy)(void *desc);
  int (*desc_set)(void *desc, int attribute, int type, int64_t n, const void *values);
  int (*desc_get)(void *desc, int attribute, int type, int64_t n, int64_t *out_n, void *out);
  int (*desc_finalize)(void *desc);
  int (*execute)(void *handle, void *plan, void *pack);
} gc_cudnn_t;

/* c->folder is set, all else zero. 0, or -1 with a sentence in `why`. Neither a device nor a driver is needed. */
int gc_cudnn_open(gc_cudnn_t *c, char *why, size_t size);
/* For the device of the current context, or for the one that cuDNN described as JSON. 0, or -1 with `why`. */
int gc_cudnn_start(gc_cudnn_t *c, char *why, size_t size);
int gc_cudnn_start_for(gc_cudnn_t *c, const char *device, char *why, size_t size);
/* Opened, and started on the device of the current context, when it is first requested; before that as for
 * gc_cudnn_open. 0: c->why says what is missing. */
int gc_cudnn_ready(gc_cudnn_t *c);
/* Once plans are gone (gc_dnn_forget_plans); the library stays open. */
void gc_cudnn_close(gc_cudnn_t *c);
/* -1; `why`: what failed, with cuDNN's own words. */
int gc_cudnn_failed(const gc_cudnn_t *c, int status, const char *what, char *why, size_t size);

/* cudnnBackendDescriptorType_t */
enum {
  GC_DNN_POINTWISE_DESC = 0,
  GC_DNN_CONVOLUTION_DESC = 1,
  GC_DNN_ENGINE = 2,
  GC_DNN_ENGINE_CONFIG = 3,
  GC_DNN_HEURISTIC = 4,
  GC_DNN_EXECUTION_PLAN = 5,
  GC_DNN_OPERATION_CONV_FORWARD = 10,
  GC_DNN_OPERATION_CONV_WEIGHTS = 11,
  GC_DNN_OPERATION_CONV_DATA = 12,
  GC_DNN_OPERATION_POINTWISE = 13,
  GC_DNN_OPERATION_GRAPH = 15,
  GC_DNN_VARIANT_PACK = 16,
  GC_DNN_TENSOR = 17,
  GC_DNN_MATMUL_DESC = 18,
  GC_DNN_OPERATION_MATMUL = 19,
  GC_DNN_REDUCTION_DESC = 21,
  GC_DNN_OPERATION_REDUCTION = 22,
  GC_DNN_OPERATION_RESHAPE = 31,
  GC_DNN_DEVICE_PROPERTIES = 38,
};

/* cudnnBackendAttributeName_t */
enum {
  GC_DNN_POINTWISE_MODE = 0,
  GC_DNN_POINTWISE_MATH = 1,
  GC_DNN_POINTWISE_AXIS = 9,
  GC_DNN_CONV_MATH = 100,
  GC_DNN_CONV_MODE = 101,
  GC_DNN_CONV_DILATIONS = 102,
  GC_DNN_CONV_STRIDES = 103,
  GC_DNN_CONV_POST_PADDINGS = 104,
  GC_DNN_CONV_PRE_PADDINGS = 105,
  GC_DNN_CONV_SPATIAL_DIMS = 106,
  GC_DNN_HEURISTIC_MODE = 200,
  GC_DNN_HEURISTIC_GRAPH = 201,
  GC_DNN_HEURISTIC_RESULTS = 202,
  GC_DNN_HEURISTIC_DEVICE = 204,
  GC_DNN_CONFIG_ENGINE = 300,
  GC_DNN_PLAN_HANDLE = 400,
  GC_DNN_PLAN_CONFIG = 401,
  GC_DNN_PLAN_WORKSPACE = 402,
  GC_DNN_PLAN_WORDS = 405, /* JSON */
  GC_DNN_PLAN_DEVICE = 407,
  GC_DNN_CONV_FORWARD_ALPHA = 700,
  GC_DNN_CONV_DATA_ALPHA = 706,
  GC_DNN_CONV_WEIGHTS_ALPHA = 712,
  GC_DNN_OF_POINTWISE = 750,
  GC_DNN_ALPHA1 = 754,
  GC_DNN_ALPHA2 = 755,
  GC_DNN_GRAPH_HANDLE = 800,
  GC_DNN_GRAPH_OPERATIONS = 801,
  GC_DNN_TENSOR_ALIGNMENT = 900,
  GC_DNN_TENSOR_TYPE = 901,
  GC_DNN_TENSOR_SIZES = 902,
  GC_DNN_TENSOR_STRIDES = 903,
  GC_DNN_TENSOR_ID = 906,
  GC_DNN_TENSOR_IS_VIRTUAL = 907,
  GC_DNN_TENSOR_IS_BY_VALUE = 908,
  GC_DNN_PACK_IDS = 1000,
  GC_DNN_PACK_POINTERS = 1001,
  GC_DNN_PACK_WORKSPACE = 1003,
  GC_DNN_ENGINE_INDEX = 1301,
  GC_DNN_ENGINE_NOTES = 1303,
  GC_DNN_MATMUL_MATH = 1500,
  GC_DNN_REDUCTION_MODE = 1600,
  GC_DNN_REDUCTION_MATH = 1601,
  GC_DNN_DEVICE_JSON = 2702,
};

/* cudnnBackendAttributeType_t */
enum {
  GC_DNN_T_HANDLE = 0,
  GC_DNN_T_DATA_TYPE = 1,
  GC_DNN_T_BOOLEAN = 2,
  GC_DNN_T_INT64 = 3,
  GC_DNN_T_FLOAT = 4,
  GC_DNN_T_DOUBLE = 5,
  GC_DNN_T_POINTER = 6,
  GC_DNN_T_CONVOLUTION_MODE = 7,
  GC_DNN_T_HEURISTIC_MODE = 8,
  GC_DNN_T_NOTE = 11,
  GC_DNN_T_POINTWISE_MODE = 14,
  GC_DNN_T_DESCRIPTOR = 15,
  GC_DNN_T_REDUCTION_MODE = 18,
  GC_DNN_T_CHAR = 24,
};

#endif
