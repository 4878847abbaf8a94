/* aothost_dlpack.h - tensors from and to other libraries, without knowing them: DLPack 1.x, and the older form before
 * it.
 *
 *     DLManagedTensorVersioned *m = ..;                  from torch, numpy, jax: what __dlpack__ hands over
 *     if (aothost_from_dlpack(h, m, &input) == AOT_OK)   looks at it, without a copy
 *       aothost_forward(h, &input, 1);
 *     m->deleter(m);                                     when nothing looks at it any more
 *
 *     aothost_to_dlpack(h, "param.fc.weight", &m);       a leaf: the very memory that the program reads and updates (a
 *                                                        copy on a device with memory of its own, and when it is bound)
 *     aothost_call_to_dlpack(c, "grad.fc.weight", &m);   a result: a copy of its own
 *
 * An exported tensor may be stored for as long as wanted, also when its handle was closed, and is deleted on any
 * thread: what is left of the handle goes with the last of them. Writing to an exported leaf is writing the leaf; a
 * backward whose forward ran before does not notice. */
#ifndef AOTHOST_DLPACK_H
#define AOTHOST_DLPACK_H

#include <aothost.h>

/* The ABI of https://github.com/dmlc/dlpack (include/dlpack/dlpack.h, version 1.3; Apache License 2.0), as far as it
 * is used here. Its own header may be included as well: before this one, which then declares nothing again. */
#ifndef DLPACK_DLPACK_H_
#define DLPACK_DLPACK_H_
#include <stdint.h>
#define DLPACK_MAJOR_VERSION 1
#define DLPACK_MINOR_VERSION 3

typedef struct {
  uint32_t major, minor;
} DLPackVersion;

typedef enum { kDLCPU = 1, kDLCUDA = 2, kDLCUDAHost = 3 } DLDeviceType;
typedef struct {
  DLDeviceType device_type;
  int32_t device_id;
} DLDevice;

typedef enum { kDLInt = 0, kDLUInt = 1, kDLFloat = 2, kDLBfloat = 4, kDLComplex = 5, kDLBool = 6 } DLDataTypeCode;
typedef struct {
  uint8_t code; /* DLDataTypeCode */
  uint8_t bits;
  uint16_t lanes;
} DLDataType;

typedef struct {
  void *data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape;
  int64_t *strides; /* elements; before 1.2 NULL: contiguous */
  uint64_t byte_offset;
} DLTensor;

typedef struct DLManagedTensor { /* before 1.0 */
  DLTensor dl_tensor;
  void *manager_ctx;
  void (*deleter)(struct DLManagedTensor *self); /* NULL: nothing to delete */
} DLManagedTensor;

#define DLPACK_FLAG_BITMASK_READ_ONLY (1UL << 0UL)
#define DLPACK_FLAG_BITMASK_IS_COPIED (1UL << 1UL)
typedef struct DLManagedTensorVersioned {
  DLPackVersion version;
  void *manager_ctx;
  void (*deleter)(struct DLManagedTensorVersioned *self); /* NULL: nothing to delete */
  uint64_t flags;
  DLTensor dl_tensor;
} DLManagedTensorVersioned;
#endif

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* *out looks at m's memory, and is valid as long as m is, which stays the caller's. AOT_E_UNIMPLEMENTED, reported: not
 * on the CPU, a dtype that programs do not have, a negative stride, another major version. */
aot_status_t aothost_from_dlpack(aothost_t *h, const DLManagedTensorVersioned *m, aot_tensor_t *out);
/* A result of a call as a copy, a leaf without one. AOT_E_NOT_FOUND: there is none;
 * AOT_E_UNIMPLEMENTED: its type has an encoding. *out is the caller's to delete. */
aot_status_t aothost_call_to_dlpack(aothost_call_t *c, const char *key, DLManagedTensorVersioned **out);
aot_status_t aothost_to_dlpack(aothost_t *h, const char *key, DLManagedTensorVersioned **out);

/* The older form as the newer, and back, for libraries that know the other. m goes with *out when that is deleted;
 * AOT_E_EXHAUSTED: m stays the caller's. A read-only tensor has no older form: AOT_E_INVALID.
 * [any-thread] */
aot_status_t aothost_dlpack_upgrade(DLManagedTensor *m, DLManagedTensorVersioned **out);
aot_status_t aothost_dlpack_downgrade(DLManagedTensorVersioned *m, DLManagedTensor **out);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
