/* pickle_reader.c - see pickle_reader.h. Opcodes: CPython's Lib/pickletools.py; globals: torch/serialization.py. */
#include "pickle_reader.h"
#include <string.h>

#define UNPICKLABLE "import-pt2.pickle"

typedef struct machine {
  p2_env_t *e;
  const char *label;
  const uint8_t *bytes;
  uint64_t size, i;
  p2_pv_t **stack;
  uint32_t n_stack, stack_capacity;
  uint32_t *marks;
  uint32_t n_marks, marks_capacity;
  p2_pv_t **memo;
  uint32_t n_memo, memo_capacity;
} machine_t;

static aot_status_t bad(machine_t *m, const char *what) {
  p2_fail(m->e, UNPICKLABLE, "%s cannot be read: %s at byte %llu of the pickle", m->label, what,
          (unsigned long long)m->i);
  return AOT_E_INVALID;
}

/* ---- stack and memo ---- */

static aot_status_t make(machine_t *m, int32_t kind, p2_pv_t **out) {
  AOT_TRY(P2_NEW(m->e, P2_SCRATCH, 1, out));
  (*out)->kind = kind;
  return AOT_OK;
}

static aot_status_t push(machine_t *m, p2_pv_t *v) {
  AOT_TRY(p2_grow(m->e, (void **)&m->stack, m->n_stack, &m->stack_capacity, sizeof *m->stack));
  m->stack[m->n_stack++] = v;
  return AOT_OK;
}

static aot_status_t push_new(machine_t *m, int32_t kind, p2_pv_t **out) {
  AOT_TRY(make(m, kind, out));
  return push(m, *out);
}

static aot_status_t push_int(machine_t *m, int32_t kind, int64_t i) {
  p2_pv_t *v = NULL;
  AOT_TRY(push_new(m, kind, &v));
  v->i = i;
  return AOT_OK;
}

/* The lowest stack place that may be popped: above the last mark. */
static uint32_t stack_floor(const machine_t *m) { return m->n_marks ? m->marks[m->n_marks - 1] : 0; }

static aot_status_t pop(machine_t *m, p2_pv_t **out) {
  if (m->n_stack <= stack_floor(m)) return bad(m, "the stack is empty");
  *out = m->stack[--m->n_stack];
  return AOT_OK;
}

static aot_status_t top(machine_t *m, p2_pv_t **out) {
  if (m->n_stack <= stack_floor(m)) return bad(m, "the stack is empty");
  *out = m->stack[m->n_stack - 1];
  return AOT_OK;
}

static aot_status_t append(machine_t *m, p2_pv_t *list, p2_pv_t *item) {
  AOT_TRY(p2_grow(m->e, (void **)&list->items, list->n, &list->capacity, sizeof *list->items));
  list->items[list->n++] = item;
  return AOT_OK;
}

/* Everything above the last mark moves into a container. */
static aot_status_t pop_marked(machine_t *m, p2_pv_t *into) {
  uint32_t mark, i;
  if (!m->n_marks) return bad(m, "a mark is missing");
  mark = m->marks[--m->n_marks];
  for (i = mark; i < m->n_stack; i++) AOT_TRY(append(m, into, m->stack[i]));
  m->n_stack = mark;
  return AOT_OK;
}

static aot_status_t remember(machine_t *m, uint64_t key) {
  p2_pv_t *v = NULL;
  AOT_TRY(top(m, &v));
  if (key > m->size) return bad(m, "a memo number is too large"); /* every entry costs at least a byte */
  while (m->n_memo <= key) {
    AOT_TRY(p2_grow(m->e, (void **)&m->memo, m->n_memo, &m->memo_capacity, sizeof *m->memo));
    m->memo[m->n_memo++] = NULL;
  }
  m->memo[key] = v;
  return AOT_OK;
}

static aot_status_t recall(machine_t *m, uint64_t key) {
  if (key >= m->n_memo || !m->memo[key]) return bad(m, "a memo entry is missing");
  return push(m, m->memo[key]);
}

/* ---- bytes ---- */

static aot_status_t take(machine_t *m, uint64_t n, const uint8_t **out) {
  if (n > m->size - m->i) return bad(m, "the pickle ends early");
  *out = m->bytes + m->i;
  m->i += n;
  return AOT_OK;
}

static aot_status_t take_little(machine_t *m, uint32_t n, uint64_t *out) {
  const uint8_t *p = NULL;
  uint32_t k;
  AOT_TRY(take(m, n, &p));
  for (*out = 0, k = 0; k < n; k++) *out |= (uint64_t)p[k] << (8 * k);
  return AOT_OK;
}

static aot_status_t take_line(machine_t *m, aot_str_t *out) {
  const uint8_t *from = m->bytes + m->i, *end = memchr(from, '\n', (size_t)(m->size - m->i));
  if (!end) return bad(m, "a line does not end");
  out->data = (const char *)from;
  out->size = (uint64_t)(end - from);
  m->i += out->size + 1;
  return AOT_OK;
}

static aot_status_t push_str(machine_t *m, uint32_t n_length) {
  p2_pv_t *v = NULL;
  const uint8_t *p = NULL;
  uint64_t n = 0;
  AOT_TRY(take_little(m, n_length, &n));
  AOT_TRY(take(m, n, &p));
  AOT_TRY(push_new(m, P2_PV_STR, &v));
  v->s.data = (const char *)p;
  v->s.size = n;
  return AOT_OK;
}

static aot_status_t push_float(machine_t *m) {
  const uint8_t *p = NULL;
  p2_pv_t *v = NULL;
  uint64_t bits = 0;
  int k;
  AOT_TRY(take(m, 8, &p));
  for (k = 0; k < 8; k++) bits = bits << 8 | p[k];
  AOT_TRY(push_new(m, P2_PV_FLOAT, &v));
  memcpy(&v->f, &bits, sizeof bits);
  return AOT_OK;
}

/* LONG1: a little-endian two's complement number of any length; up to 8 bytes are of use. */
static aot_status_t push_long(machine_t *m) {
  uint64_t n = 0, value = 0;
  AOT_TRY(take_little(m, 1, &n));
  if (n > 8) return bad(m, "an integer has more than 64 bits");
  if (n == 0) return push_int(m, P2_PV_INT, 0);
  AOT_TRY(take_little(m, (uint32_t)n, &value));
  if (n < 8 && value >> (8 * n - 1)) value |= ~UINT64_C(0) << (8 * n);
  return push_int(m, P2_PV_INT, (int64_t)value);
}

/* ---- globals and what REDUCE makes of them ---- */

typedef struct dtype_row {
  const char *storage, *dtype; /* names in the module torch */
  int32_t number;
} dtype_row_t;

/* clang-format off */
static const dtype_row_t dtypes[] = {
    {"FloatStorage", "float32", AOT_F32},      {"DoubleStorage", "float64", AOT_F64},
    {"HalfStorage", "float16", AOT_F16},       {"BFloat16Storage", "bfloat16", AOT_BF16},
    {"LongStorage", "int64", AOT_I64},         {"IntStorage", "int32", AOT_I32},
    {"ShortStorage", "int16", AOT_I16},        {"CharStorage", "int8", AOT_I8},
    {"ByteStorage", "uint8", AOT_U8},          {"BoolStorage", "bool", AOT_BOOL},
    {"ComplexFloatStorage", "complex64", AOT_C64}, {"ComplexDoubleStorage", "complex128", AOT_C128},
    {"-", "uint16", AOT_U16},                  {"-", "uint32", AOT_U32},
    {"-", "uint64", AOT_U64},
};
/* clang-format on */

static const char *const allowed[] = {
    "torch._utils _rebuild_tensor_v2",
    "torch._utils _rebuild_tensor_v3",
    "torch._utils _rebuild_parameter",
    "collections OrderedDict",
    "torch.storage UntypedStorage",
    "torch.storage TypedStorage",
    "torch Size",
    "torch.serialization _get_layout",
    "builtins set",
    "__builtin__ set",
};

static int32_t dtype_of(aot_str_t global, int storage) {
  size_t i;
  aot_str_t name = global;
  if (!p2_str_starts(global, "torch ")) return 0;
  name.data += 6, name.size -= 6;
  for (i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
    if (p2_str_is(name, storage ? dtypes[i].storage : dtypes[i].dtype)) return dtypes[i].number;
  return 0;
}

static int is_allowed(aot_str_t global) {
  size_t i;
  for (i = 0; i < sizeof allowed / sizeof *allowed; i++)
    if (p2_str_is(global, allowed[i])) return 1;
  return dtype_of(global, 0) || dtype_of(global, 1);
}

static aot_status_t push_global(machine_t *m, aot_str_t module, aot_str_t name) {
  p2_pv_t *v = NULL;
  char *text;
  AOT_TRY(p2_alloc(m->e, P2_SCRATCH, 1, module.size + name.size + 2, 1, (void **)&text));
  memcpy(text, module.data, (size_t)module.size);
  text[module.size] = ' ';
  memcpy(text + module.size + 1, name.data, (size_t)name.size);
  AOT_TRY(push_new(m, P2_PV_GLOBAL, &v));
  v->s.data = text;
  v->s.size = module.size + name.size + 1;
  if (is_allowed(v->s)) return AOT_OK;
  p2_fail(m->e, UNPICKLABLE, "%s holds an object of the Python type '%.*s.%.*s', which is not read", m->label,
          P2_SHOW(module), P2_SHOW(name));
  p2_hint(m->e, "only plain tensors and containers of them are read; custom objects are never unpickled");
  return AOT_E_INVALID;
}

/* ('storage', class, key, location, numel) */
static aot_status_t persistent(machine_t *m) {
  p2_pv_t *id = NULL, *v = NULL;
  AOT_TRY(pop(m, &id));
  if (id->kind != P2_PV_TUPLE || id->n != 5 || id->items[0]->kind != P2_PV_STR ||
      !p2_str_is(id->items[0]->s, "storage") || id->items[1]->kind != P2_PV_GLOBAL || id->items[2]->kind != P2_PV_STR ||
      id->items[4]->kind != P2_PV_INT)
    return bad(m, "a persistent id is no storage");
  AOT_TRY(push_new(m, P2_PV_STORAGE, &v));
  v->dtype = dtype_of(id->items[1]->s, 1);
  v->s = id->items[2]->s;
  v->i = id->items[4]->i;
  if (!v->dtype && !p2_str_is(id->items[1]->s, "torch.storage UntypedStorage"))
    return bad(m, "a storage has an unknown class");
  return AOT_OK;
}

static aot_status_t int_tuple(machine_t *m, const p2_pv_t *t, const int64_t **out, uint32_t *out_n) {
  int64_t *list;
  uint32_t i;
  if (t->kind != P2_PV_TUPLE) return bad(m, "a size is no tuple");
  AOT_TRY(P2_NEW(m->e, P2_SCRATCH, t->n, &list));
  for (i = 0; i < t->n; i++) {
    if (t->items[i]->kind != P2_PV_INT) return bad(m, "a size is no integer");
    list[i] = t->items[i]->i;
  }
  *out = list;
  *out_n = t->n;
  return AOT_OK;
}

/* _rebuild_tensor_v2(storage, offset, size, stride, requires_grad, hooks[, metadata]); v3 has the dtype after
 * hooks. */
static aot_status_t rebuild_tensor(machine_t *m, const p2_pv_t *args, int v3, p2_pv_t **out) {
  uint32_t n_strides = 0;
  p2_pv_t *t = NULL;
  if (args->n < (v3 ? 7u : 6u) || args->items[0]->kind != P2_PV_STORAGE || args->items[1]->kind != P2_PV_INT ||
      args->items[4]->kind != P2_PV_BOOL)
    return bad(m, "a tensor has unexpected arguments");
  AOT_TRY(make(m, P2_PV_TENSOR, &t));
  t->storage = args->items[0];
  t->i = args->items[1]->i;
  t->requires_grad = (int32_t)args->items[4]->i;
  AOT_TRY(int_tuple(m, args->items[2], &t->sizes, &t->rank));
  AOT_TRY(int_tuple(m, args->items[3], &t->strides, &n_strides));
  if (n_strides != t->rank) return bad(m, "a tensor has another number of strides than of sizes");
  t->dtype = v3 ? (args->items[6]->kind == P2_PV_GLOBAL ? dtype_of(args->items[6]->s, 0) : 0) : t->storage->dtype;
  if (!t->dtype) return bad(m, "a tensor has an unknown dtype");
  *out = t;
  return AOT_OK;
}

static aot_status_t reduce(machine_t *m) {
  p2_pv_t *args = NULL, *callee = NULL, *v = NULL;
  AOT_TRY(pop(m, &args));
  AOT_TRY(pop(m, &callee));
  if (callee->kind != P2_PV_GLOBAL || args->kind != P2_PV_TUPLE) return bad(m, "a call of something that is no name");
  if (p2_str_is(callee->s, "torch._utils _rebuild_tensor_v2")) {
    AOT_TRY(rebuild_tensor(m, args, 0, &v));
  } else if (p2_str_is(callee->s, "torch._utils _rebuild_tensor_v3")) {
    AOT_TRY(rebuild_tensor(m, args, 1, &v));
  } else if (p2_str_is(callee->s, "torch._utils _rebuild_parameter")) {
    if (args->n < 2 || args->items[0]->kind != P2_PV_TENSOR || args->items[1]->kind != P2_PV_BOOL)
      return bad(m, "a parameter has unexpected arguments");
    AOT_TRY(make(m, P2_PV_TENSOR, &v));
    *v = *args->items[0];
    v->requires_grad = (int32_t)args->items[1]->i;
  } else if (p2_str_is(callee->s, "collections OrderedDict")) {
    if (args->n) return bad(m, "an OrderedDict with arguments");
    AOT_TRY(make(m, P2_PV_DICT, &v));
  } else if (p2_str_is(callee->s, "torch Size")) {
    if (args->n != 1 || args->items[0]->kind != P2_PV_TUPLE) return bad(m, "a Size has unexpected arguments");
    v = args->items[0];
  } else {
    AOT_TRY(make(m, P2_PV_NONE, &v)); /* a layout or a set: nothing that a tensor needs */
  }
  return push(m, v);
}

/* ---- containers ---- */

static aot_status_t tuple_of(machine_t *m, uint32_t n) {
  p2_pv_t *t = NULL, *item = NULL;
  uint32_t i;
  AOT_TRY(make(m, P2_PV_TUPLE, &t));
  if (m->n_stack - stack_floor(m) < n) return bad(m, "the stack is empty");
  for (i = 0; i < n; i++) AOT_TRY(append(m, t, m->stack[m->n_stack - n + i]));
  for (i = 0; i < n; i++) AOT_TRY(pop(m, &item));
  return push(m, t);
}

static aot_status_t tuple_marked(machine_t *m) {
  p2_pv_t *t = NULL;
  AOT_TRY(make(m, P2_PV_TUPLE, &t));
  AOT_TRY(pop_marked(m, t));
  return push(m, t);
}

/* Add one item (pair) or all above the mark to the list or dict below them. */
static aot_status_t extend(machine_t *m, int32_t kind, int marked) {
  p2_pv_t items, *v = NULL, *key = NULL, *into = NULL;
  uint32_t i;
  memset(&items, 0, sizeof items);
  if (marked) {
    AOT_TRY(pop_marked(m, &items));
  } else {
    AOT_TRY(pop(m, &v));
    if (kind == P2_PV_DICT) {
      AOT_TRY(pop(m, &key));
      AOT_TRY(append(m, &items, key));
    }
    AOT_TRY(append(m, &items, v));
  }
  AOT_TRY(top(m, &into));
  if (into->kind != kind || (kind == P2_PV_DICT && items.n % 2))
    return bad(m, "items are added to the wrong container");
  for (i = 0; i < items.n; i++) AOT_TRY(append(m, into, items.items[i]));
  return AOT_OK;
}

/* BUILD sets attributes of an object; a state dict has one, _metadata, that says nothing about tensors. */
static aot_status_t build(machine_t *m) {
  p2_pv_t *state = NULL, *object = NULL;
  AOT_TRY(pop(m, &state));
  AOT_TRY(top(m, &object));
  return object->kind == P2_PV_DICT ? AOT_OK : bad(m, "attributes are set on something that is no dict");
}

static aot_status_t stack_global(machine_t *m) {
  p2_pv_t *name = NULL, *module = NULL;
  AOT_TRY(pop(m, &name));
  AOT_TRY(pop(m, &module));
  if (name->kind != P2_PV_STR || module->kind != P2_PV_STR) return bad(m, "a global is no name");
  return push_global(m, module->s, name->s);
}

static aot_status_t global(machine_t *m) {
  aot_str_t module, name;
  AOT_TRY(take_line(m, &module));
  AOT_TRY(take_line(m, &name));
  return push_global(m, module, name);
}

/* ---- the loop ---- */

static aot_status_t mark(machine_t *m) {
  AOT_TRY(p2_grow(m->e, (void **)&m->marks, m->n_marks, &m->marks_capacity, sizeof *m->marks));
  m->marks[m->n_marks++] = m->n_stack;
  return AOT_OK;
}

static aot_status_t step(machine_t *m, uint8_t op) {
  p2_pv_t *v = NULL;
  uint64_t n = 0;
  switch (op) {
    case 0x80: return take_little(m, 1, &n); /* PROTO */
    case 0x95: return take_little(m, 8, &n); /* FRAME */
    case '(': return mark(m);
    case 'N': return push_new(m, P2_PV_NONE, &v);
    case 0x88: return push_int(m, P2_PV_BOOL, 1);
    case 0x89: return push_int(m, P2_PV_BOOL, 0);
    case 'K': AOT_TRY(take_little(m, 1, &n)); return push_int(m, P2_PV_INT, (int64_t)n);
    case 'M': AOT_TRY(take_little(m, 2, &n)); return push_int(m, P2_PV_INT, (int64_t)n);
    case 'J': AOT_TRY(take_little(m, 4, &n)); return push_int(m, P2_PV_INT, (int32_t)(uint32_t)n);
    case 0x8a: return push_long(m);
    case 'G': return push_float(m);
    case 'X': return push_str(m, 4);  /* BINUNICODE */
    case 0x8c: return push_str(m, 1); /* SHORT_BINUNICODE */
    case 0x8d: return push_str(m, 8); /* BINUNICODE8 */
    case 'T': return push_str(m, 4);  /* BINSTRING */
    case 'U': return push_str(m, 1);  /* SHORT_BINSTRING */
    case '}': return push_new(m, P2_PV_DICT, &v);
    case ']': return push_new(m, P2_PV_LIST, &v);
    case ')': return push_new(m, P2_PV_TUPLE, &v);
    case 0x8f: return push_new(m, P2_PV_LIST, &v); /* EMPTY_SET */
    case 0x85: return tuple_of(m, 1);
    case 0x86: return tuple_of(m, 2);
    case 0x87: return tuple_of(m, 3);
    case 't': return tuple_marked(m);
    case 'a': return extend(m, P2_PV_LIST, 0);
    case 'e': return extend(m, P2_PV_LIST, 1);
    case 0x90: return extend(m, P2_PV_LIST, 1); /* ADDITEMS */
    case 's': return extend(m, P2_PV_DICT, 0);
    case 'u': return extend(m, P2_PV_DICT, 1);
    case 'q': AOT_TRY(take_little(m, 1, &n)); return remember(m, n);
    case 'r': AOT_TRY(take_little(m, 4, &n)); return remember(m, n);
    case 0x94: return remember(m, m->n_memo); /* MEMOIZE */
    case 'h': AOT_TRY(take_little(m, 1, &n)); return recall(m, n);
    case 'j': AOT_TRY(take_little(m, 4, &n)); return recall(m, n);
    case '0': return pop(m, &v);
    case '2': AOT_TRY(top(m, &v)); return push(m, v);
    case 'c': return global(m);
    case 0x93: return stack_global(m);
    case 'Q': return persistent(m);
    case 'R': return reduce(m);
    case 'b': return build(m);
    default: m->i--; return bad(m, "an opcode is not of the data part of pickle");
  }
}

aot_status_t p2_pickle_read(p2_env_t *e, const char *label, const uint8_t *bytes, uint64_t nbytes, p2_pv_t **out) {
  machine_t m;
  memset(&m, 0, sizeof m);
  m.e = e, m.label = label, m.bytes = bytes, m.size = nbytes;
  while (m.i < m.size) {
    uint8_t op = bytes[m.i++];
    if (op == '.') return pop(&m, out);
    AOT_TRY(step(&m, op));
  }
  return bad(&m, "the pickle ends early");
}
