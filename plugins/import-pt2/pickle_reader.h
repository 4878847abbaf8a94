/* pickle_reader.h - a whitelist reader for the pickles that torch.save writes.
 *
 * A stack machine for the data part of protocols 2 to 4. Nothing is ever called: a GLOBAL is a name, and REDUCE accepts
 * the few names that describe tensors and plain containers; any other is refused. Linear in the bytes. */
#ifndef P2_PICKLE_READER_H
#define P2_PICKLE_READER_H

#include "name_table.h"

#define P2_PV_NONE 0
#define P2_PV_BOOL 1
#define P2_PV_INT 2
#define P2_PV_FLOAT 3
#define P2_PV_STR 4
#define P2_PV_TUPLE 5
#define P2_PV_LIST 6
#define P2_PV_DICT 7   /* items: key, value, key, value, .. */
#define P2_PV_GLOBAL 8 /* s: "module name" */
#define P2_PV_STORAGE 9
#define P2_PV_TENSOR 10

typedef struct p2_pv {
  int32_t kind;
  uint32_t n, capacity; /* items of TUPLE, LIST, DICT */
  int32_t dtype;        /* STORAGE, TENSOR; 0 for an untyped storage */
  int32_t requires_grad;
  int64_t i; /* BOOL, INT; TENSOR: offset; STORAGE: its numel */
  double f;
  aot_str_t s; /* STR, GLOBAL; STORAGE: key */
  struct p2_pv **items;
  /* TENSOR */
  const struct p2_pv *storage;
  uint32_t rank;
  const int64_t *sizes, *strides;
} p2_pv_t;

/* `label` names the pickle in messages. */
aot_status_t p2_pickle_read(p2_env_t *e, const char *label, const uint8_t *bytes, uint64_t nbytes, p2_pv_t **out);

#endif
