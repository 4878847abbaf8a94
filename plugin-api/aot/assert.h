/* aot/assert.h - AOT_ASSERT(condition): an invariant of the program's own code; never part of the ABI.
 *
 * Checked in debug, sanitizer and test builds (AOT_DEBUG_ASSERT, set by the top CMakeLists.txt): a broken one prints
 * file, line and condition, and aborts. In other builds the condition is compiled and not evaluated. What a plugin, a
 * file or a user can cause is no invariant: report it, with a status. */
#ifndef AOT_ASSERT_H
#define AOT_ASSERT_H

#ifdef AOT_DEBUG_ASSERT
#include <stdio.h>
#include <stdlib.h>

static inline void aot_assert_holds(int holds, const char *condition, const char *file, int line) {
  if (holds) return;
  fprintf(stderr, "%s:%d: broken invariant: %s\n", file, line, condition);
  abort();
}
#define AOT_ASSERT(condition) aot_assert_holds((condition) != 0, #condition, __FILE__, __LINE__)
#else
#define AOT_ASSERT(condition) ((void)(0 && (condition)))
#endif

#endif
