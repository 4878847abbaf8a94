/* The CUDA driver, opened at run time: its types as far as they are used here, and its functions in a table. No header
 * and no library of CUDA is needed to build; a machine without a driver receives what is missing.
 *
 * Names, numbers and signatures are those of cuda.h (CUDA 12.0 and later; the versioned entry where there are several).
 * Functions answer CUDA_SUCCESS or an error number. [any-thread], with the context set on the thread that calls. */
#ifndef GC_DRIVER_H
#define GC_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#define GC_OLDEST_DRIVER 12000 /* cuDriverGetVersion: 1000 * major + 10 * minor */

typedef int gc_result_t; /* CUresult */
#define GC_SUCCESS 0
#define GC_ERROR_OUT_OF_MEMORY 2
#define GC_ERROR_ECC 214 /* memory that could not be corrected */
#define GC_ERROR_NOT_FOUND 500
#define GC_ERROR_NOT_READY 600
#define GC_ERROR_LAUNCH_TIMEOUT 702

typedef int gc_ordinal_t;      /* CUdevice */
typedef uint64_t gc_address_t; /* CUdeviceptr */
typedef void *gc_context_t;    /* CUcontext */
typedef void *gc_stream_t;     /* CUstream */
typedef void *gc_event_t;      /* CUevent */
typedef void *gc_module_t;     /* CUmodule */
typedef void *gc_function_t;   /* CUfunction */
typedef void *gc_graph_t;      /* CUgraph */
typedef void *gc_graph_exec_t; /* CUgraphExec */
typedef uint64_t gc_memory_t;  /* CUmemGenericAllocationHandle */

typedef struct gc_location { /* CUmemLocation */
  int type, id;
} gc_location_t;
typedef struct gc_memory_wish { /* CUmemAllocationProp */
  int type, handle_types;
  gc_location_t location;
  void *windows;
  struct {
    unsigned char compression, gpu_direct;
    unsigned short usage;
    unsigned char reserved[4];
  } flags;
} gc_memory_wish_t;
typedef struct gc_access { /* CUmemAccessDesc */
  gc_location_t location;
  int flags;
} gc_access_t;

/* CUdevice_attribute */
#define GC_CLOCK_KHZ 13
#define GC_MULTIPROCESSORS 16
#define GC_MEMORY_CLOCK_KHZ 36
#define GC_MEMORY_BUS_BITS 37
#define GC_CAPABILITY_MAJOR 75
#define GC_CAPABILITY_MINOR 76
#define GC_SHARED_MEMORY_OF_PROCESSOR 81
#define GC_SHARED_MEMORY_OPTIN 97

#define GC_STREAM_NON_BLOCKING 1u    /* does not wait for the default stream */
#define GC_HOST_MEMORY_PORTABLE 1u   /* pinned for every context */
#define GC_HOST_MEMORY_DEVICE_MAP 2u /* the device has an address for it */
#define GC_WAIT_GEQ 0u               /* until (int64_t)(*address - value) >= 0 */
#define GC_CAPTURE_THREAD_LOCAL 1
#define GC_EVENT_WITHOUT_TIME 2u         /* it orders streams, and no more */
#define GC_FUNCTION_MAX_DYNAMIC_SHARED 8 /* CUfunction_attribute */
#define GC_GRAPH_NODE_PRIORITIES                                                                                       \
  8u /* kernels of a graph keep the priority of the stream that they were captured from */
#define GC_MEMORY_PINNED 1
#define GC_MEMORY_BY_FILE_DESCRIPTOR 1 /* in which way other processes may have it */
#define GC_LOCATION_DEVICE 1
#define GC_ACCESS_READ_WRITE 3
#define GC_GRANULARITY_RECOMMENDED 1
/* `extra` of a launch: names and values, up to GC_LAUNCH_END */
#define GC_LAUNCH_END ((void *)0)
#define GC_LAUNCH_BUFFER ((void *)1)
#define GC_LAUNCH_BUFFER_SIZE ((void *)2)

typedef struct gc_driver {
  void *library;
  int version;
  gc_result_t (*init)(unsigned flags);
  gc_result_t (*driver_get_version)(int *out);
  gc_result_t (*get_error_name)(gc_result_t error, const char **out);
  gc_result_t (*get_error_string)(gc_result_t error, const char **out);
  gc_result_t (*device_get_count)(int *out);
  gc_result_t (*device_get)(gc_ordinal_t *out, int ordinal);
  gc_result_t (*device_get_name)(char *out, int size, gc_ordinal_t device);
  gc_result_t (*device_get_attribute)(int *out, int attribute, gc_ordinal_t device);
  gc_result_t (*device_total_mem)(size_t *out, gc_ordinal_t device);
  gc_result_t (*primary_ctx_retain)(gc_context_t *out, gc_ordinal_t device);
  gc_result_t (*primary_ctx_release)(gc_ordinal_t device);
  gc_result_t (*ctx_set_current)(gc_context_t context);
  gc_result_t (*ctx_synchronize)(void);
  gc_result_t (*mem_get_info)(size_t *out_free, size_t *out_total);
  gc_result_t (*mem_alloc)(gc_address_t *out, size_t nbytes);
  gc_result_t (*mem_free)(gc_address_t address);
  gc_result_t (*mem_host_alloc)(void **out, size_t nbytes, unsigned flags);
  gc_result_t (*mem_free_host)(void *memory);
  gc_result_t (*memcpy_to_device)(gc_address_t to, const void *from, size_t nbytes, gc_stream_t stream);
  gc_result_t (*memcpy_to_host)(void *to, gc_address_t from, size_t nbytes, gc_stream_t stream);
  gc_result_t (*memcpy_on_device)(gc_address_t to, gc_address_t from, size_t nbytes, gc_stream_t stream);
  gc_result_t (*memset_bytes)(gc_address_t to, unsigned char byte, size_t nbytes, gc_stream_t stream);
  gc_result_t (*stream_create)(gc_stream_t *out, unsigned flags, int priority); /* less: earlier; clamped */
  gc_result_t (*stream_destroy)(gc_stream_t stream);
  gc_result_t (*stream_synchronize)(gc_stream_t stream);
  gc_result_t (*stream_query)(gc_stream_t stream);
  gc_result_t (*stream_wait_value)(gc_stream_t stream, gc_address_t at, uint64_t value, unsigned flags);
  gc_result_t (*stream_write_value)(gc_stream_t stream, gc_address_t at, uint64_t value, unsigned flags);
  gc_result_t (*event_create)(gc_event_t *out, unsigned flags);
  gc_result_t (*event_destroy)(gc_event_t event);
  gc_result_t (*event_record)(gc_event_t event, gc_stream_t stream);
  gc_result_t (*stream_wait_event)(gc_stream_t stream, gc_event_t event, unsigned flags);
  gc_result_t (*event_elapsed)(float *out_ms, gc_event_t begin, gc_event_t end); /* both have happened */
  gc_result_t (*module_load_data)(gc_module_t *out, const void *image);
  gc_result_t (*module_unload)(gc_module_t module);
  gc_result_t (*module_get_function)(gc_function_t *out, gc_module_t module, const char *name);
  gc_result_t (*func_set_attribute)(gc_function_t function, int attribute, int value);
  gc_result_t (*launch_kernel)(gc_function_t function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                               unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_nbytes,
                               gc_stream_t stream, void **arguments, void **extra);
  gc_result_t (*launch_host_func)(gc_stream_t stream, void (*function)(void *self), void *self);
  gc_result_t (*stream_begin_capture)(gc_stream_t stream, int mode);
  gc_result_t (*stream_end_capture)(gc_stream_t stream, gc_graph_t *out);
  gc_result_t (*graph_instantiate)(gc_graph_exec_t *out, gc_graph_t graph, unsigned long long flags);
  gc_result_t (*graph_launch)(gc_graph_exec_t exec, gc_stream_t stream);
  gc_result_t (*graph_exec_destroy)(gc_graph_exec_t exec);
  gc_result_t (*graph_destroy)(gc_graph_t graph);
  /* shared_memory.c's; NULL: a driver without them */
  gc_result_t (*mem_granularity)(size_t *out, const gc_memory_wish_t *wish, int which);
  gc_result_t (*mem_create)(gc_memory_t *out, size_t nbytes, const gc_memory_wish_t *wish, unsigned long long flags);
  gc_result_t (*mem_release)(gc_memory_t memory);
  gc_result_t (*mem_address_reserve)(gc_address_t *out, size_t nbytes, size_t alignment, gc_address_t wanted,
                                     unsigned long long flags);
  gc_result_t (*mem_address_free)(gc_address_t address, size_t nbytes);
  gc_result_t (*mem_map)(gc_address_t at, size_t nbytes, size_t offset, gc_memory_t memory, unsigned long long flags);
  gc_result_t (*mem_unmap)(gc_address_t at, size_t nbytes);
  gc_result_t (*mem_set_access)(gc_address_t at, size_t nbytes, const gc_access_t *access, size_t n);
} gc_driver_t;

/* Opens libcuda.so.1 and starts it. 0, or -1 with a sentence in `why`; a library that was opened stays so. */
int gc_driver_open(gc_driver_t *out, char *why, size_t size);
/* "CUDA_ERROR_OUT_OF_MEMORY (out of memory)" [borrow for ever, or until the next call with the same buffer] */
const char *gc_driver_error(const gc_driver_t *d, gc_result_t error, char *buffer, size_t size);

#endif
