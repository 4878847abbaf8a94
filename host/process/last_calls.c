#include <process/last_calls.h>

#include <string.h>
#include <unistd.h>

static const char *plugin_of(const char *text) {
  const char *at = strstr(text, AOTH_CALL_PLUGIN);
  return at ? at : text;
}

static void copy(char *to, const char *text) {
  const size_t size = strnlen(text, AOTH_CALL_TEXT - 1);
  memmove(to, text, size);
  to[size] = 0;
}

static void suspect(aoth_last_calls_t *calls, const char *text) {
  const char *plugin = plugin_of(text);
  uint32_t n = atomic_load_explicit(&calls->n_suspects, memory_order_relaxed), i = 0;
  while (i < n && strcmp(plugin_of(calls->suspects[i]), plugin) != 0) i++;
  if (i == n && n < AOTH_N_SUSPECTS) n++;
  if (i == AOTH_N_SUSPECTS) i--;
  memmove(calls->suspects[1], calls->suspects[0], i * sizeof calls->suspects[0]);
  copy(calls->suspects[0], text);
  atomic_store_explicit(&calls->n_suspects, n, memory_order_relaxed);
}

void aoth_last_calls_note(aoth_last_calls_t *calls, const char *text, int is_own) {
  if (atomic_flag_test_and_set_explicit(&calls->is_writing, memory_order_acquire))
    return; /* another thread's will do */
  if (strncmp(calls->last, text, AOTH_CALL_TEXT - 1) != 0) {
    copy(calls->last, text);
    if (!is_own) suspect(calls, calls->last);
  }
  atomic_flag_clear_explicit(&calls->is_writing, memory_order_release);
}

static void put(int fd, const char *text, size_t size) {
  const ssize_t done = write(fd, text, size);
  (void)done; /* nothing is left to be done about it */
}

void aoth_last_calls_put(const aoth_last_calls_t *calls, int fd) {
  static const char first[] = "; suspects, the last one called first: ", last[] = "; the last call: ";
  const uint32_t n = atomic_load(&calls->n_suspects);
  for (uint32_t i = 0; i < n && i < AOTH_N_SUSPECTS; i++) {
    put(fd, i ? "; " : first, i ? 2 : sizeof first - 1);
    put(fd, calls->suspects[i], strnlen(calls->suspects[i], AOTH_CALL_TEXT));
  }
  if (n || !calls->last[0]) return;
  put(fd, last, sizeof last - 1);
  put(fd, calls->last, strnlen(calls->last, AOTH_CALL_TEXT));
}
