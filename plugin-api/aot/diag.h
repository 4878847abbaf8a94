/* aot/diag.h - the diagnostic sink's record: one message with its place.
 *
 * Handed to aot_host_t.diag during the call that found the trouble; every pointer is borrowed for that call. Absent
 * locations are AOT_NO_ID ids, line 0, empty strings. The host adds what it knows: the node's origin in the model, the
 * stage and its pipeline line. */
#ifndef AOT_DIAG_H
#define AOT_DIAG_H

#include <aot/base.h>

#define AOT_SEVERITY_NOTE 1 /* belongs to the diagnostic before it */
#define AOT_SEVERITY_INFO 2
#define AOT_SEVERITY_WARNING 3
#define AOT_SEVERITY_ERROR 4

typedef struct aot_diag {
  uint32_t struct_size;
  int32_t severity;  /* AOT_SEVERITY_*; 0 counts as ERROR */
  aot_str_t code;    /* stable, "import-pt2.bad-json"; third parties prefix a reverse domain */
  aot_str_t message; /* one sentence: what is wrong, with the names and numbers */
  aot_str_t hint;    /* what to do about it, or empty */
  aot_str_t file;    /* a file the user knows; empty: the pipeline's model or none */
  uint32_t line;     /* 1-based, 0: none */
  uint32_t column;   /* 1-based byte column, 0: none */
  uint64_t byte;     /* offset in file when line is 0 */
  aot_node_t node;   /* the node at fault */
  aot_value_t value; /* the value at fault */
} aot_diag_t;

#endif
