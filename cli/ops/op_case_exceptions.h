/* Results of recorded calls that need not agree, by name and with a reason: where PyTorch leaves a choice open, and
 * where what was recorded is known to be further from the truth. A file exceptions.txt next to the cases; a line each,
 * # begins a comment:
 *
 *     WHO  RESULT  HOW : REASON
 *     aten.topk.default  output.1  picks 0 along 2=-1 gives 0 : any of equal elements may be named
 *     c3484              output.0  any                        : sin(pi x) in float32 so near a pole
 *
 * WHO is a case or an operator, RESULT output.K, grad.PATH or shares. `any`: whatever the numbers are; dtype and sizes
 * still count. `picks A along D=P gives K`: the result holds places along a dimension of argument A, the dimension is
 * argument D (P when it is left out); every place picked must hold what output K says, and none may be picked twice. */
#ifndef AOTH_OP_CASE_EXCEPTIONS_H
#define AOTH_OP_CASE_EXCEPTIONS_H

#include <aot/status.h>
#include <base/sink.h>
#include <stdint.h>

typedef struct aoth_case_exception {
  char who[96], result[32], reason[200];
  int picks; /* 0: any */
  uint32_t argument, dim_argument, output;
  int64_t dim_preset;
} aoth_case_exception_t;

typedef struct aoth_case_exceptions {
  aoth_case_exception_t *at;
  uint32_t n, capacity;
} aoth_case_exceptions_t;

/* A file that is not there lists nothing. Lines that cannot be read are reported to sink, with their number. */
aot_status_t aoth_case_exceptions_read(const char *path, aoth_sink_t *sink, aoth_case_exceptions_t *out);
void aoth_case_exceptions_deinit(aoth_case_exceptions_t *e);
/* What is listed for a result of a case, by its id or its operator; NULL: nothing. */
const aoth_case_exception_t *aoth_case_exception(const aoth_case_exceptions_t *e, const char *id, const char *op,
                                                 const char *result);

#endif
