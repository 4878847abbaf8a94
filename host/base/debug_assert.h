/* AOT_ASSERT(condition): an invariant of our own, true whatever the input, which broken would show far from its cause.
 * Checked in debug and sanitizer builds (AOT_DEBUG_ASSERT, set by the top CMakeLists.txt); elsewhere the condition is
 * compiled, and not computed. What a plugin or a file can bring about is no invariant: that is told, with a status. */
#ifndef AOTH_DEBUG_ASSERT_H
#define AOTH_DEBUG_ASSERT_H

#ifdef AOT_DEBUG_ASSERT
#include <stdio.h>
#include <stdlib.h>

static inline void aoth_assert(int holds, const char *condition, const char *file, int line) {
  if (holds) return;
  fprintf(stderr, "%s:%d: broken invariant: %s\n", file, line, condition);
  abort();
}
#define AOT_ASSERT(condition) aoth_assert((condition) != 0, #condition, __FILE__, __LINE__)
#else
#define AOT_ASSERT(condition) ((void)(0 && (condition)))
#endif

#endif
