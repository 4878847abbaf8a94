/* aot/status.h - what a call answers.
 *
 * A status tells the caller what to do; the story is told once, during the call, to the diagnostic sink (diag.h).
 * Codes 1..16 are the absl set, on which PJRT, XLA FFI and IREE agree; from 1000 they are ours. A non-zero status
 * without a diagnostic is reported as the plugin's misbehaviour. */
#ifndef AOT_STATUS_H
#define AOT_STATUS_H

#include <stdint.h>

typedef int32_t aot_status_t;

/* X(constant, number, text) */
#define AOT_STATUS_MAP(X)                                                                                              \
  X(AOT_OK, 0, "ok")                                                                                                   \
  X(AOT_E_CANCELLED, 1, "cancelled")                                                                                   \
  X(AOT_E_UNKNOWN, 2, "unknown error")                                                                                 \
  X(AOT_E_INVALID, 3, "invalid argument")                                                                              \
  X(AOT_E_NOT_FOUND, 5, "not found")                                                                                   \
  X(AOT_E_EXISTS, 6, "already exists")                                                                                 \
  X(AOT_E_EXHAUSTED, 8, "resource exhausted")                                                                          \
  X(AOT_E_PRECONDITION, 9, "failed precondition")                                                                      \
  X(AOT_E_RANGE, 11, "out of range")                                                                                   \
  X(AOT_E_UNIMPLEMENTED, 12, "not supported")                                                                          \
  X(AOT_E_INTERNAL, 13, "internal error")                                                                              \
  X(AOT_E_UNAVAILABLE, 14, "unavailable")                                                                              \
  X(AOT_E_DATA_LOSS, 15, "data loss")                                                                                  \
  X(AOT_E_STALE, 1000, "id of something erased")                                                                       \
  X(AOT_E_CONTRACT, 1001, "contract broken")                                                                           \
  X(AOT_E_TOO_NEW, 1002, "made for a newer version")                                                                   \
  X(AOT_E_OPTION, 1003, "bad option")

#define AOT_OK 0
#define AOT_E_CANCELLED 1
#define AOT_E_UNKNOWN 2
#define AOT_E_INVALID 3
#define AOT_E_NOT_FOUND 5
#define AOT_E_EXISTS 6
#define AOT_E_EXHAUSTED 8
#define AOT_E_PRECONDITION 9
#define AOT_E_RANGE 11
#define AOT_E_UNIMPLEMENTED 12
#define AOT_E_INTERNAL 13
#define AOT_E_UNAVAILABLE 14
#define AOT_E_DATA_LOSS 15
#define AOT_E_STALE 1000
#define AOT_E_CONTRACT 1001
#define AOT_E_TOO_NEW 1002
#define AOT_E_OPTION 1003

/* Return early with the status of a failing call. */
#define AOT_TRY(expr)                                                                                                  \
  do {                                                                                                                 \
    aot_status_t aot_try_status_ = (expr);                                                                             \
    if (aot_try_status_ != AOT_OK) return aot_try_status_;                                                             \
  } while (0)

#endif
