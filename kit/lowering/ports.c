#include "ports.h"

#include <aot/inline.h>
#include <string.h>

/* The caller's tensor has the port's geometry and reaches no further than its storage. */
static aot_status_t check_port(const lw_port_t *port, const aot_tensor_t *t, const char *what, uint32_t i,
                               lw_error_t *error) {
  const lw_tensor_t *type = &port->type;
  int same = t->dtype == type->dtype && t->rank == type->rank;
  int64_t last = t->offset;
  for (int32_t d = 0; same && d < type->rank; d++) {
    same = t->sizes[d] == type->sizes[d] && (t->sizes[d] <= 1 || t->strides[d] == type->strides[d]);
    last += t->sizes[d] > 0 ? (t->sizes[d] - 1) * t->strides[d] : 0;
  }
  for (int32_t d = 0; same && d < type->rank; d++)
    if (t->sizes[d] == 0) return AOT_OK;
  if (!same)
    return lw_fail(error, AOT_E_INVALID, "bad-tensor",
                   "%s %u is not what the graph was compiled for: dtype %s, rank %d", what, i, aot_dtype_name(t->dtype),
                   t->rank);
  if (!t->data || t->offset < 0 || (uint64_t)(last + 1) * aot_dtype_size(t->dtype) > t->nbytes)
    return lw_fail(error, AOT_E_INVALID, "bad-tensor", "%s %u reaches outside its storage of %llu bytes", what, i,
                   (unsigned long long)t->nbytes);
  return AOT_OK;
}

/* Where the storage of a port lies, so that the declared offset finds the caller's first element. */
static char *port_base(const lw_port_t *port, const aot_tensor_t *t) {
  return (char *)t->data + (t->offset - port->type.offset) * (int64_t)aot_dtype_size(t->dtype);
}

aot_status_t lw_bind_ports(const lw_port_t *ports, uint32_t n, const aot_tensor_t *tensors, const char *what,
                           char **base, lw_error_t *error) {
  for (uint32_t i = 0; i < n; i++) {
    if (!ports[i].type.dtype) continue;
    AOT_TRY(check_port(&ports[i], &tensors[i], what, i, error));
    if (ports[i].type.storage != LW_NONE) base[ports[i].type.storage] = port_base(&ports[i], &tensors[i]);
  }
  return AOT_OK;
}

void lw_write_numbers(const lw_schedule_t *s, const aot_tensor_t *outputs) {
  for (uint32_t i = 0; i < s->n_outputs; i++)
    if ((s->outputs[i].kind == AOT_TYPE_SYMINT || s->outputs[i].kind == AOT_TYPE_SYMBOOL) && outputs[i].data) {
      char *at = (char *)outputs[i].data + outputs[i].offset * (int64_t)aot_dtype_size(outputs[i].dtype);
      if (outputs[i].dtype == AOT_I64) memcpy(at, &s->outputs[i].number, sizeof s->outputs[i].number);
      else if (outputs[i].dtype == AOT_BOOL) *at = s->outputs[i].number != 0;
      else if (outputs[i].dtype == AOT_F64) {
        double number = (double)s->outputs[i].number;
        memcpy(at, &number, sizeof number);
      }
    }
}
