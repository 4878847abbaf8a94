/* aot/option.h - the options of a unit: their schema, and the typed values handed to create().
 *
 * The host checks the user's options against the schema before create() runs: unknown keys get the nearest name, types,
 * ranges and choices are checked, defaults filled in. A plugin parses no text. The same schema feeds `aothost plugins`,
 * `aothost schema` and the cache key. */
#ifndef AOT_OPTION_H
#define AOT_OPTION_H

#include <aot/base.h>

#define AOT_OPT_BOOL 1
#define AOT_OPT_I64 2
#define AOT_OPT_F64 3
#define AOT_OPT_STRING 4
#define AOT_OPT_ENUM 5  /* a string out of choices */
#define AOT_OPT_PATH 6  /* a string; relative paths are resolved against the pipeline file by the host */
#define AOT_OPT_BYTES 7 /* an int64 count of bytes; the user may write 64MiB */

#define AOT_OPT_REQUIRED 1u       /* has no default */
#define AOT_OPT_AFFECTS_OUTPUT 2u /* belongs to the compile cache key */
#define AOT_OPT_EXPERIMENTAL 4u
#define AOT_OPT_HAS_RANGE 8u /* min and max hold */

/* The value of one option. Frozen. AOT_OPT_BOOL: i is 0 or 1. */
typedef struct aot_opt_value {
  int64_t i;
  double f;
  aot_str_t s; /* [session] */
} aot_opt_value_t;

/* One option of a unit; constant data of the plugin. */
typedef struct aot_option {
  uint32_t struct_size;
  int32_t kind; /* AOT_OPT_* */
  uint32_t flags;
  uint32_t n_choices;
  aot_str_t name;           /* hyphenated: "memory-budget" */
  aot_str_t help;           /* one sentence */
  aot_str_t unit;           /* "bytes", "fraction", or empty */
  const aot_str_t *choices; /* n_choices, for AOT_OPT_ENUM */
  aot_opt_value_t preset;   /* the default, unless REQUIRED */
  double min, max;          /* numbers with HAS_RANGE: the closed range */
} aot_option_t;

/* What create() gets: values[i] belongs to the i-th option of the unit's schema. Borrowed for the session. */
typedef struct aot_opts {
  uint32_t struct_size;
  uint32_t n_values;
  const aot_opt_value_t *values;
} aot_opts_t;

#endif
