/* _aothost - compiled programs on PyTorch's tensors, for the Python package (python/aothost).
 *
 *     program = Program(pipeline, model, name, sets, plugin_dirs, no_cache)       aothost_open_text, aothost_compile
 *     program.bind(key, tensor)             a leaf in the tensor's memory          aothost_bind
 *     frame = program.forward(inputs, outputs)                                     outputs are filled
 *     program.backward(frame, tangents, input gradients, leaf gradients)           so are gradients
 *     handle = frame.handle()               a tensor of one number; the frame lives as long as its storage
 *     frame = frame_of(handle)
 *     program.step(inputs, loss, lr, seed)  a whole training step; apply(lr)       aothost_step, aothost_apply
 *
 * Tensors are borrowed through DLPack's C exchange table (torch.Tensor.__dlpack_c_exchange_api__, DLPack 1.3), so that
 * neither libtorch nor its ABI is needed; the file is built against Python's limited API of 3.10. A frame is one call
 * of the program (aothost_call_t): what its forward saved for its backward. Frames that are no longer used are used
 * again.
 *
 * The interpreter's lock is released while a program is compiled or runs; a lock of the program's own serialises its
 * calls, since a handle serves one thread at a time (docs/THREADS.md). */
#define Py_LIMITED_API 0x030a0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include <aothost.h>
#include <aothost_dlpack.h>
#include <kit/base/geometry.h>
#include <kit/base/vector.h>
#include <aot/inline.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- DLPack's exchange table, of version 1.3 (include/dlpack/dlpack.h of github.com/dmlc/dlpack, Apache 2.0) ---- */

typedef struct exchange_header {
  DLPackVersion version;
  struct exchange_header *prev_api;
} exchange_header_t;

typedef struct exchange_api {
  exchange_header_t header;
  int (*allocate)(DLTensor *prototype, DLManagedTensorVersioned **out, void *error_ctx,
                  void (*set_error)(void *error_ctx, const char *kind, const char *message));
  int (*managed_from_object)(void *object, DLManagedTensorVersioned **out);
  int (*managed_to_object)(DLManagedTensorVersioned *tensor, void **out_object);
  int (*tensor_from_object)(void *object, DLTensor *out); /* borrowed from the object, no reference */
  int (*current_stream)(DLDeviceType type, int32_t id, void **out_stream);
} exchange_api_t;

typedef struct module_state {
  PyObject *error, *program_type, *frame_type;
  PyObject *live; /* number of a handle: its frame */
  int64_t n_handles;
  const exchange_api_t *api;
} module_state_t;

static struct PyModuleDef module_def;

static const exchange_api_t *find_api(module_state_t *m) {
  if (m->api) return m->api;
  PyObject *torch = PyImport_ImportModule("torch");
  PyObject *type = torch ? PyObject_GetAttrString(torch, "Tensor") : NULL;
  PyObject *capsule = type ? PyObject_GetAttrString(type, "__dlpack_c_exchange_api__") : NULL;
  if (capsule) m->api = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
  Py_XDECREF(capsule);
  Py_XDECREF(type);
  Py_XDECREF(torch);
  if (m->api && m->api->header.version.major != 1) {
    PyErr_Format(PyExc_ImportError, "aothost needs DLPack 1.x of PyTorch; this PyTorch has %u.%u",
                 m->api->header.version.major, m->api->header.version.minor);
    m->api = NULL;
  }
  return m->api;
}

/* ---- a tensor of PyTorch's as the library sees it ---- */

static int32_t dtype_of(DLDataType t) {
  static const struct {
    uint8_t code, bits;
    int32_t dtype;
  } rows[] = {{kDLFloat, 32, AOT_F32}, {kDLFloat, 16, AOT_F16},   {kDLBfloat, 16, AOT_BF16},  {kDLFloat, 64, AOT_F64},
              {kDLInt, 64, AOT_I64},   {kDLInt, 32, AOT_I32},     {kDLInt, 16, AOT_I16},      {kDLInt, 8, AOT_I8},
              {kDLUInt, 8, AOT_U8},    {kDLUInt, 16, AOT_U16},    {kDLUInt, 32, AOT_U32},     {kDLUInt, 64, AOT_U64},
              {kDLBool, 8, AOT_BOOL},  {kDLComplex, 64, AOT_C64}, {kDLComplex, 128, AOT_C128}};
  for (size_t i = 0; t.lanes == 1 && i < sizeof rows / sizeof *rows; i++)
    if (rows[i].code == t.code && rows[i].bits == t.bits) return rows[i].dtype;
  return 0;
}

/* The storage that it reaches: aot_tensor_t wants bytes, which DLPack does not have. Strides of a rank-0 or empty
 * tensor reach nothing beyond its offset. */
static uint64_t reach_of(const DLTensor *t, uint64_t size) {
  uint64_t last = 0;
  for (int32_t d = 0; d < t->ndim; d++) {
    if (t->shape[d] == 0) return 0;
    last += (uint64_t)(t->shape[d] - 1) * (uint64_t)(t->strides ? t->strides[d] : 0);
  }
  return (last + 1) * size;
}

/* 0, with an exception: not a tensor that the library can read. *out borrows from the object. */
static int borrow(const exchange_api_t *api, PyObject *object, aot_tensor_t *out) {
  DLTensor t;
  memset(out, 0, sizeof *out);
  if (api->tensor_from_object(object, &t) != 0) return 0;
  out->dtype = dtype_of(t.dtype);
  if (!out->dtype) {
    PyErr_Format(PyExc_TypeError, "aothost has no dtype of DLPack code %d with %d bits", t.dtype.code, t.dtype.bits);
    return 0;
  }
  if (t.device.device_type != kDLCPU) {
    PyErr_SetString(PyExc_NotImplementedError, "aothost reads tensors of the CPU here");
    return 0;
  }
  out->data = (char *)t.data + t.byte_offset;
  out->rank = t.ndim;
  out->sizes = t.shape;
  out->strides = t.strides;
  out->nbytes = reach_of(&t, aot_dtype_size(out->dtype));
  return 1;
}

/* n tensors of a list; None: no data. NULL, with an exception. Free it. */
static aot_tensor_t *borrow_list(const exchange_api_t *api, PyObject *list, Py_ssize_t n) {
  aot_tensor_t *out = calloc((size_t)n + 1, sizeof *out);
  if (!out) {
    PyErr_NoMemory();
    return NULL;
  }
  for (Py_ssize_t i = 0; i < n; i++) {
    PyObject *object = PyList_GetItem(list, i); /* borrowed */
    if (object == Py_None) continue;
    if (object && borrow(api, object, &out[i])) continue;
    free(out);
    return NULL;
  }
  return out;
}

/* ---- programs ---- */

typedef struct message {
  char *text; /* warnings and errors since the last exception */
  uint64_t size, room;
} message_t;

typedef struct program {
  PyObject_HEAD aothost_t *h;
  module_state_t *module;
  PyObject *model; /* bytes, which the handle borrows */
  pthread_mutex_t lock;
  message_t said;
  aothost_call_t **idle; /* calls whose frame ended */
  uint64_t n_idle, room;
  uint64_t n_in_flight; /* calls of frames that live */
} program_t;

typedef struct frame {
  PyObject_HEAD program_t *program;
  aothost_call_t *call;
  PyObject *data; /* what Python keeps of the forward */
} frame_t;

static void keep_message(void *self, int32_t severity, const char *text) {
  message_t *m = self;
  const size_t n = strlen(text);
  if (severity < AOT_SEVERITY_WARNING) return;
  char *grown = kit_grow64(m->text, &m->room, m->size + n + 1, 1);
  if (!grown) return;
  memcpy(grown + m->size, text, n + 1);
  m->text = grown;
  m->size += n;
}

/* Error(text) with the attribute `status`: what the library said is located and has a hint. */
static PyObject *raise_status(program_t *p, const char *what, aot_status_t status) {
  PyObject *error = PyObject_CallFunction(p->module->error, "s", p->said.size ? p->said.text : what);
  PyObject *number = error ? PyLong_FromLong(status) : NULL;
  if (number && PyObject_SetAttrString(error, "status", number) == 0) PyErr_SetObject(p->module->error, error);
  Py_XDECREF(number);
  Py_XDECREF(error);
  free(p->said.text);
  p->said = (message_t){0};
  return NULL;
}

/* The program is this thread's between enter and leave; the interpreter is not. */
static PyThreadState *enter(program_t *p) {
  PyThreadState *state = PyEval_SaveThread();
  pthread_mutex_lock(&p->lock);
  return state;
}
static void leave(program_t *p, PyThreadState *state) {
  pthread_mutex_unlock(&p->lock);
  PyEval_RestoreThread(state);
}

/* The texts of a list of str, as UTF-8 borrowed from them; NULL with an exception. Free it. */
static const char **texts_of(PyObject *list, uint32_t *out_n) {
  const Py_ssize_t n = PyList_Size(list);
  const char **texts = n < 0 ? NULL : calloc((size_t)n + 1, sizeof *texts);
  if (!texts && n >= 0) PyErr_NoMemory();
  for (Py_ssize_t i = 0; texts && i < n; i++) {
    texts[i] = PyUnicode_AsUTF8AndSize(PyList_GetItem(list, i), NULL);
    if (texts[i]) continue;
    free(texts);
    return NULL;
  }
  *out_n = (uint32_t)n;
  return texts;
}

static aot_status_t open_and_compile(program_t *p, const char *pipeline, const char *name,
                                     const aothost_config_t *config, unsigned flags) {
  PyThreadState *state = enter(p);
  aot_status_t status = aothost_open_text(pipeline, strlen(pipeline), name, config, &p->h);
  if (status == AOT_OK) status = aothost_compile(p->h, flags);
  leave(p, state);
  return status;
}

static int program_init(PyObject *self, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"pipeline", "model", "name", "sets", "plugin_dirs", "flags", "compile_flags", NULL};
  program_t *p = (program_t *)self;
  const char *pipeline, *name;
  PyObject *model, *sets, *dirs;
  unsigned flags = 0, compile_flags = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sOsO!O!|II", names, &pipeline, &model, &name, &PyList_Type, &sets,
                                   &PyList_Type, &dirs, &flags, &compile_flags))
    return -1;
  if (p->h) {
    PyErr_SetString(PyExc_RuntimeError, "this program is compiled already");
    return -1;
  }
  if (model != Py_None && !PyBytes_Check(model)) {
    PyErr_SetString(PyExc_TypeError, "model is bytes, or None: then name is a file");
    return -1;
  }
  p->module = PyModule_GetState(PyState_FindModule(&module_def));
  aothost_config_t config = {.struct_size = sizeof config, .flags = flags, .model = name};
  config.message = keep_message;
  config.message_self = &p->said;
  if (model != Py_None) {
    config.model_data = PyBytes_AsString(model);
    config.model_nbytes = (uint64_t)PyBytes_Size(model);
  }
  config.sets = texts_of(sets, &config.n_sets);
  config.plugin_dirs = config.sets ? texts_of(dirs, &config.n_plugin_dirs) : NULL;
  aot_status_t status = AOT_OK;
  if (config.plugin_dirs) {
    Py_INCREF(model);
    p->model = model;
    status = open_and_compile(p, pipeline, name, &config, compile_flags);
    if (status != AOT_OK) raise_status(p, "aothost could not compile the program", status);
  }
  free((void *)config.sets);
  free((void *)config.plugin_dirs);
  return PyErr_Occurred() ? -1 : 0;
}

static PyObject *program_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
  (void)args;
  (void)kwargs;
  allocfunc allocate = PyType_GetSlot(type, Py_tp_alloc);
  program_t *p = (program_t *)allocate(type, 0);
  if (p) pthread_mutex_init(&p->lock, NULL);
  return (PyObject *)p;
}

static void program_dealloc(PyObject *self) {
  program_t *p = (program_t *)self;
  PyTypeObject *type = Py_TYPE(self);
  aothost_close(p->h); /* with its calls */
  pthread_mutex_destroy(&p->lock);
  free(p->idle);
  free(p->said.text);
  Py_XDECREF(p->model);
  freefunc release = PyType_GetSlot(type, Py_tp_free);
  release(self);
  Py_DECREF(type);
}

/* bind(key, tensor): the leaf has the tensor's memory and contents from now on; the caller keeps the tensor alive. */
static PyObject *program_bind(PyObject *self, PyObject *args) {
  program_t *p = (program_t *)self;
  const char *key;
  PyObject *object;
  aot_tensor_t memory;
  if (!PyArg_ParseTuple(args, "sO", &key, &object)) return NULL;
  if (object != Py_None && (!find_api(p->module) || !borrow(p->module->api, object, &memory))) return NULL;
  PyThreadState *state = enter(p);
  const aot_status_t status = aothost_bind(p->h, key, object == Py_None ? NULL : &memory);
  leave(p, state);
  if (status != AOT_OK) return raise_status(p, "aothost could not bind the tensor", status);
  Py_RETURN_NONE;
}

static PyObject *program_in_flight(PyObject *self, PyObject *unused) {
  (void)unused;
  program_t *p = (program_t *)self;
  PyThreadState *state = enter(p);
  const uint64_t n = p->n_in_flight;
  leave(p, state);
  return PyLong_FromUnsignedLongLong(n);
}

static PyObject *program_backward_reads(PyObject *self, PyObject *args) {
  const char *key;
  if (!PyArg_ParseTuple(args, "s", &key)) return NULL;
  return PyBool_FromLong(aothost_backward_reads(((program_t *)self)->h, key));
}

/* ---- frames ---- */

static aot_status_t open_call(program_t *p, aothost_call_t **out) {
  if (p->n_idle) *out = p->idle[--p->n_idle];
  else AOT_TRY(aothost_call_open(p->h, out));
  p->n_in_flight++;
  return AOT_OK;
}

/* Its memory is kept for the next forward. */
static void close_call(program_t *p, aothost_call_t *call) {
  p->n_in_flight--;
  aothost_call_t **grown = kit_grow64(p->idle, &p->room, p->n_idle + 1, sizeof *grown);
  if (!grown) {
    aothost_call_close(call);
    return;
  }
  p->idle = grown;
  p->idle[p->n_idle++] = call;
}

static void frame_dealloc(PyObject *self) {
  frame_t *f = (frame_t *)self;
  PyTypeObject *type = Py_TYPE(self);
  if (f->call) {
    PyThreadState *state = enter(f->program);
    close_call(f->program, f->call);
    leave(f->program, state);
  }
  Py_XDECREF(f->data);
  Py_XDECREF((PyObject *)f->program);
  freefunc release = PyType_GetSlot(type, Py_tp_free);
  release(self);
  Py_DECREF(type);
}

static void copy_strided(const aot_tensor_t *to, const aot_tensor_t *from, uint64_t size) {
  const int64_t *const strides[2] = {to->strides, from->strides};
  int64_t index[16] = {0}, at[2] = {0, from->offset};
  do {
    memcpy((char *)to->data + at[0] * (int64_t)size, (const char *)from->data + at[1] * (int64_t)size, size);
  } while (tn_next(to->rank, to->sizes, index, 2, strides, at));
}

/* 0: they differ in dtype or sizes. */
static int copy_tensor(const aot_tensor_t *to, const aot_tensor_t *from) {
  const uint64_t size = aot_dtype_size(to->dtype);
  int64_t n = 1;
  int same_strides = 1;
  if (to->dtype != from->dtype || to->rank != from->rank) return 0;
  for (int32_t d = 0; d < to->rank; d++) {
    if (to->sizes[d] != from->sizes[d]) return 0;
    n *= to->sizes[d];
    same_strides &= to->sizes[d] == 1 || to->strides[d] == from->strides[d];
  }
  if (n == 0) return 1;
  if (same_strides && to->nbytes == (uint64_t)n * size)
    memcpy(to->data, (const char *)from->data + from->offset * (int64_t)size, to->nbytes);
  else copy_strided(to, from, size);
  return 1;
}

/* The results of the call into the caller's tensors, by their keys; those without data are left out. */
static aot_status_t fill(aothost_call_t *call, const char *kind, const aot_tensor_t *to, Py_ssize_t n) {
  for (Py_ssize_t k = 0; k < n; k++) {
    char key[48];
    aot_tensor_t from;
    if (!to[k].dtype) continue;
    snprintf(key, sizeof key, "%s%lld", kind, (long long)k);
    AOT_TRY(aothost_call_get(call, key, &from));
    if (!copy_tensor(&to[k], &from)) return AOT_E_INVALID;
  }
  return AOT_OK;
}

static aot_status_t run_forward(program_t *p, aothost_call_t **call, int64_t seed, const aot_tensor_t *in,
                                Py_ssize_t n_in, const aot_tensor_t *out, Py_ssize_t n_out) {
  AOT_TRY(open_call(p, call));
  AOT_TRY(aothost_seed(p->h, seed, 0));
  AOT_TRY(aothost_call_forward(*call, in, (uint32_t)n_in, 0));
  return fill(*call, "output.", out, n_out);
}

/* forward(inputs, outputs, seed) -> Frame. Lists of tensors; None among the outputs: not wanted. */
static PyObject *program_forward(PyObject *self, PyObject *args) {
  program_t *p = (program_t *)self;
  PyObject *inputs, *outputs;
  long long seed = 0;
  if (!PyArg_ParseTuple(args, "O!O!|L", &PyList_Type, &inputs, &PyList_Type, &outputs, &seed)) return NULL;
  const exchange_api_t *api = find_api(p->module);
  if (!api) return NULL;
  const Py_ssize_t n_in = PyList_Size(inputs), n_out = PyList_Size(outputs);
  aot_tensor_t *in = borrow_list(api, inputs, n_in), *out = in ? borrow_list(api, outputs, n_out) : NULL;
  PyTypeObject *type = (PyTypeObject *)p->module->frame_type;
  allocfunc allocate = PyType_GetSlot(type, Py_tp_alloc);
  frame_t *f = out ? (frame_t *)allocate(type, 0) : NULL;
  if (f) {
    Py_INCREF(self);
    f->program = p;
    PyThreadState *state = enter(p);
    const aot_status_t status = run_forward(p, &f->call, seed, in, n_in, out, n_out);
    leave(p, state);
    if (status != AOT_OK) {
      raise_status(p, "the forward failed", status);
      Py_CLEAR(f);
    }
  }
  free(in);
  free(out);
  return (PyObject *)f;
}

/* backward(frame, tangents, input gradients, leaf gradients): those that are not None are filled. */
static PyObject *program_backward(PyObject *self, PyObject *args) {
  program_t *p = (program_t *)self;
  PyObject *frame, *tangents, *inputs, *leaves;
  if (!PyArg_ParseTuple(args, "O!O!O!O!", (PyTypeObject *)p->module->frame_type, &frame, &PyList_Type, &tangents,
                        &PyList_Type, &inputs, &PyList_Type, &leaves))
    return NULL;
  frame_t *f = (frame_t *)frame;
  if (f->program != p) {
    PyErr_SetString(PyExc_ValueError, "the frame is of another program");
    return NULL;
  }
  const exchange_api_t *api = find_api(p->module);
  if (!api) return NULL;
  const Py_ssize_t n = PyList_Size(tangents), n_in = PyList_Size(inputs), n_leaves = PyList_Size(leaves);
  aot_tensor_t *t = borrow_list(api, tangents, n), *g = t ? borrow_list(api, inputs, n_in) : NULL;
  aot_tensor_t *w = g ? borrow_list(api, leaves, n_leaves) : NULL;
  aot_status_t status = AOT_OK;
  if (w) {
    PyThreadState *state = enter(p);
    status = aothost_call_backward(f->call, t, (uint32_t)n);
    if (status == AOT_OK) status = fill(f->call, "grad.input.", g, n_in);
    if (status == AOT_OK) status = fill(f->call, "grad.p", w, n_leaves);
    leave(p, state);
    if (status != AOT_OK) raise_status(p, "the backward failed", status);
  }
  free(t);
  free(g);
  free(w);
  if (PyErr_Occurred()) return NULL;
  Py_RETURN_NONE;
}

/* ---- handles ---- */

/* A handle is a tensor of one float64, a frame's number: a float, so that it can require a gradient. Autograd keeps it
 * as the only saved value of a forward and frees it when the backward has run; then the deleter of its storage ends the
 * frame. A copy of the number finds the frame as long as the handle lives. */
typedef struct handle {
  DLManagedTensorVersioned tensor;
  PyObject *live, *key;
  double number;
  int64_t shape, stride;
} handle_t;

static void delete_handle(DLManagedTensorVersioned *m) {
  handle_t *handle = m->manager_ctx;
  if (Py_IsInitialized()) {
    const PyGILState_STATE gil = PyGILState_Ensure();
    if (PyDict_DelItem(handle->live, handle->key) != 0) PyErr_Clear();
    Py_DECREF(handle->key);
    Py_DECREF(handle->live);
    PyGILState_Release(gil);
  }
  free(handle);
}

/* NULL: no memory, with an exception. */
static handle_t *new_handle(module_state_t *m, PyObject *frame) {
  void *memory = NULL;
  if (posix_memalign(&memory, 64, sizeof(handle_t)) != 0) {
    PyErr_NoMemory();
    return NULL;
  }
  handle_t *handle = memset(memory, 0, sizeof(handle_t));
  handle->number = (double)++m->n_handles;
  handle->key = PyLong_FromLongLong(m->n_handles);
  if (!handle->key || PyDict_SetItem(m->live, handle->key, frame) != 0) {
    Py_XDECREF(handle->key);
    free(handle);
    return NULL;
  }
  handle->live = m->live;
  Py_INCREF(m->live);
  handle->shape = handle->stride = 1;
  handle->tensor = (DLManagedTensorVersioned){
      .version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION},
      .manager_ctx = handle,
      .deleter = delete_handle,
      .dl_tensor = {.data = &handle->number,
                    .device = {kDLCPU, 0},
                    .ndim = 1,
                    .dtype = {kDLFloat, 64, 1},
                    .shape = &handle->shape,
                    .strides = &handle->stride},
  };
  return handle;
}

static PyObject *frame_handle(PyObject *self, PyObject *unused) {
  (void)unused;
  module_state_t *m = ((frame_t *)self)->program->module;
  const exchange_api_t *api = find_api(m);
  handle_t *handle = api ? new_handle(m, self) : NULL;
  void *object = NULL;
  if (!handle || api->managed_to_object(&handle->tensor, &object) == 0) return object;
  delete_handle(&handle->tensor);
  return NULL;
}

static PyObject *frame_of(PyObject *module, PyObject *object) {
  module_state_t *m = PyModule_GetState(module);
  const exchange_api_t *api = find_api(m);
  aot_tensor_t t;
  double number;
  if (!api || !borrow(api, object, &t)) return NULL;
  if (t.dtype != AOT_F64 || t.nbytes != sizeof number) {
    PyErr_SetString(PyExc_TypeError, "this tensor is no handle of a frame");
    return NULL;
  }
  memcpy(&number, t.data, sizeof number);
  PyObject *key = PyLong_FromLongLong((long long)number), *frame = key ? PyDict_GetItemWithError(m->live, key) : NULL;
  Py_XINCREF(frame);
  Py_XDECREF(key);
  if (!frame && !PyErr_Occurred())
    PyErr_SetString(PyExc_RuntimeError, "the values that this backward needs are freed: its forward's handle is gone");
  return frame;
}

/* ---- whole training steps ---- */

static aot_status_t run_step(program_t *p, const aot_tensor_t *in, Py_ssize_t n, const aot_tensor_t *loss, double lr,
                             long long seed) {
  aot_tensor_t from;
  if (seed >= 0) AOT_TRY(aothost_seed(p->h, seed, 0));
  AOT_TRY(aothost_step(p->h, in, (uint32_t)n, lr));
  AOT_TRY(aothost_get(p->h, "output.0", &from));
  return copy_tensor(loss, &from) ? AOT_OK : AOT_E_INVALID;
}

/* step(inputs, loss, lr, seed): a seed below 0 lets the offset of the random numbers go on. */
static PyObject *program_step(PyObject *self, PyObject *args) {
  program_t *p = (program_t *)self;
  PyObject *inputs, *object;
  aot_tensor_t loss;
  double lr;
  long long seed;
  if (!PyArg_ParseTuple(args, "O!OdL", &PyList_Type, &inputs, &object, &lr, &seed)) return NULL;
  const exchange_api_t *api = find_api(p->module);
  const Py_ssize_t n = PyList_Size(inputs);
  aot_tensor_t *in = api && borrow(api, object, &loss) ? borrow_list(api, inputs, n) : NULL;
  if (!in) return NULL;
  PyThreadState *state = enter(p);
  const aot_status_t status = run_step(p, in, n, &loss, lr, seed);
  leave(p, state);
  free(in);
  if (status != AOT_OK) return raise_status(p, "the step failed", status);
  Py_RETURN_NONE;
}

static PyObject *program_apply(PyObject *self, PyObject *args) {
  program_t *p = (program_t *)self;
  double lr;
  if (!PyArg_ParseTuple(args, "d", &lr)) return NULL;
  PyThreadState *state = enter(p);
  const aot_status_t status = aothost_apply(p->h, lr);
  leave(p, state);
  if (status != AOT_OK) return raise_status(p, "the update failed", status);
  Py_RETURN_NONE;
}

/* pointers(tensors) -> bytes: where the tensors are; equal bytes, and none has moved. */
static PyObject *pointers(PyObject *module, PyObject *list) {
  const exchange_api_t *api = find_api(PyModule_GetState(module));
  if (!api) return NULL;
  if (!PyList_Check(list)) return PyErr_Format(PyExc_TypeError, "pointers() takes a list of tensors");
  const Py_ssize_t n = PyList_Size(list);
  PyObject *bytes = PyBytes_FromStringAndSize(NULL, n * (Py_ssize_t)sizeof(void *));
  for (Py_ssize_t i = 0; bytes && i < n; i++) {
    DLTensor t;
    if (api->tensor_from_object(PyList_GetItem(list, i), &t) != 0) {
      Py_CLEAR(bytes);
      break;
    }
    char *data = (char *)t.data + t.byte_offset;
    memcpy(PyBytes_AsString(bytes) + i * (Py_ssize_t)sizeof data, &data, sizeof data);
  }
  return bytes;
}

static PyMethodDef program_methods[] = {
    {"bind", program_bind, METH_VARARGS, "bind(key, tensor): the leaf is read in the tensor's memory from now on"},
    {"in_flight", program_in_flight, METH_NOARGS, "in_flight(): how many frames live"},
    {"backward_reads", program_backward_reads, METH_VARARGS,
     "backward_reads(key): whether the backward reads the leaf"},
    {"forward", program_forward, METH_VARARGS, "forward(inputs, outputs, seed=0) -> Frame: fills the outputs"},
    {"backward", program_backward, METH_VARARGS,
     "backward(frame, tangents, input_gradients, leaf_gradients): fills the gradients that are not None"},
    {"step", program_step, METH_VARARGS, "step(inputs, loss, lr, seed): forward, backward and update; fills the loss"},
    {"apply", program_apply, METH_VARARGS, "apply(lr): updates by the gradients that steps have added up"},
    {0}};
static PyType_Slot program_slots[] = {{Py_tp_new, program_new},
                                      {Py_tp_init, program_init},
                                      {Py_tp_dealloc, program_dealloc},
                                      {Py_tp_methods, program_methods},
                                      {Py_tp_doc, "A compiled program of libaothost."},
                                      {0}};
static PyType_Spec program_spec = {"aothost._aothost.Program", sizeof(program_t), 0, Py_TPFLAGS_DEFAULT, program_slots};

/* The bytes of the values that its forward saved. */
static PyObject *frame_saved_bytes(PyObject *self, PyObject *unused) {
  (void)unused;
  frame_t *f = (frame_t *)self;
  uint64_t n = 0;
  aot_tensor_t saved;
  PyThreadState *state = enter(f->program);
  for (uint32_t k = 0; k < aothost_n_saved(f->program->h); k++) {
    char key[32];
    snprintf(key, sizeof key, "saved.%u", k);
    if (aothost_call_shape(f->call, key, &saved) == AOT_OK) n += saved.nbytes;
  }
  leave(f->program, state);
  return PyLong_FromUnsignedLongLong(n);
}

static PyMethodDef frame_methods[] = {
    {"handle", frame_handle, METH_NOARGS, "handle() -> Tensor whose storage keeps this frame alive"},
    {"saved_bytes", frame_saved_bytes, METH_NOARGS, "saved_bytes(): of what its forward keeps for its backward"},
    {0}};
static PyMemberDef frame_members[] = {
    {"data", T_OBJECT, offsetof(frame_t, data), 0, "what the caller keeps of the forward"},
    {"program", T_OBJECT, offsetof(frame_t, program), READONLY, "the program that it is a call of"},
    {0}};
static PyType_Slot frame_slots[] = {{Py_tp_dealloc, frame_dealloc},
                                    {Py_tp_members, frame_members},
                                    {Py_tp_methods, frame_methods},
                                    {Py_tp_doc, "A call of a program: what its forward saved for its backward."},
                                    {0}};
static PyType_Spec frame_spec = {"aothost._aothost.Frame", sizeof(frame_t), 0, Py_TPFLAGS_DEFAULT, frame_slots};

static PyMethodDef module_methods[] = {{"frame_of", frame_of, METH_O, "frame_of(handle) -> Frame"},
                                       {"pointers", pointers, METH_O, "pointers(tensors) -> bytes: their addresses"},
                                       {0}};
static struct PyModuleDef module_def = {.m_base = PyModuleDef_HEAD_INIT,
                                        .m_name = "aothost._aothost",
                                        .m_size = sizeof(module_state_t),
                                        .m_methods = module_methods};

PyMODINIT_FUNC PyInit__aothost(void);
PyMODINIT_FUNC PyInit__aothost(void) {
  PyObject *module = PyModule_Create(&module_def);
  if (!module) return NULL;
  module_state_t *m = PyModule_GetState(module);
  m->error =
      PyErr_NewExceptionWithDoc("aothost.Error", "A message of libaothost, and its status.", PyExc_RuntimeError, NULL);
  m->program_type = PyType_FromSpec(&program_spec);
  m->frame_type = PyType_FromSpec(&frame_spec);
  m->live = PyDict_New();
  if (!m->live || !m->error || !m->program_type || !m->frame_type) return NULL;
  Py_INCREF(m->error);
  Py_INCREF(m->program_type);
  Py_INCREF(m->frame_type);
  PyModule_AddObject(module, "Error", m->error);
  PyModule_AddObject(module, "Program", m->program_type);
  PyModule_AddObject(module, "Frame", m->frame_type);
  return module;
}
