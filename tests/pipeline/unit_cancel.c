/* A user of the library cancels a compile, from another thread and from a signal handler. */
#include "session_world.h"
#include <aothost.h>
#include <pthread.h>

static const char slow[] = "aot: 1\n"
                           "model: {import: toy-import, path: m.toy}\n"
                           "stages:\n"
                           "  - use: patient\n"
                           "    with: {how: asks}\n"
                           "    isolate: %s\n"
                           "  - use: toy-functional\n"
                           "  - use: toy-backend\n";
static aothost_t *handle;

static aothost_t *open_slow(const char *isolate) {
  static const char *const dirs[] = {TEST_PLUGINS "/good"};
  const aothost_config_t config = {
      .struct_size = sizeof config, .flags = AOTHOST_NO_CACHE, .plugin_dirs = dirs, .n_plugin_dirs = 1};
  char text[512];
  aothost_t *h;
  snprintf(text, sizeof text, slow, isolate);
  unlink("running");
  write_text("m.toy", "TOY add mul");
  assert_int_equal(aothost_open_text(text, strlen(text), "p.yaml", &config, &h), AOT_OK);
  return h;
}

static void wait_until_it_runs(void) {
  while (access("running", F_OK) != 0) usleep(1000);
}

static void *cancel_later(void *h) {
  wait_until_it_runs();
  aothost_cancel(h);
  return NULL;
}

static void check_ended(aothost_t *h) {
  assert_int_equal(aothost_compile(h, 0), AOT_E_CANCELLED);
  assert_non_null(strstr(aothost_messages(h), "p.yaml:4:10: error: stage patient cancelled during run"));
  assert_int_equal(aothost_n_inputs(h), 0);
}

static void test_thread(void **state) {
  static const char *const isolates[] = {"none", "worker"};
  (void)state;
  for (int i = 0; i < 2; i++) {
    struct sigaction before, after;
    pthread_t thread;
    aothost_t *h = open_slow(isolates[i]);
    sigaction(SIGINT, NULL, &before);
    assert_int_equal(pthread_create(&thread, NULL, cancel_later, h), 0);
    check_ended(h);
    pthread_join(thread, NULL);
    sigaction(SIGINT, NULL, &after);
    assert_true(before.sa_handler == after.sa_handler);
    aothost_close(h);
  }
}

static void on_signal(int number) {
  (void)number;
  aothost_cancel(handle);
}

static void *raise_later(void *arg) {
  wait_until_it_runs();
  kill(getpid(), SIGUSR1);
  return arg;
}

static void test_handler(void **state) {
  const struct sigaction action = {.sa_handler = on_signal};
  struct sigaction before;
  pthread_t thread;
  (void)state;
  handle = open_slow("worker");
  sigaction(SIGUSR1, &action, &before);
  assert_int_equal(pthread_create(&thread, NULL, raise_later, NULL), 0);
  check_ended(handle);
  pthread_join(thread, NULL);
  sigaction(SIGUSR1, &before, NULL);
  aothost_close(handle);
}

/* Asked before it begins, it does not. */
static void test_before(void **state) {
  (void)state;
  aothost_t *h = open_slow("none");
  aothost_cancel(h);
  assert_int_equal(aothost_compile(h, 0), AOT_E_CANCELLED);
  assert_non_null(strstr(aothost_messages(h), "cancelled "));
  assert_int_not_equal(access("running", F_OK), 0);
  aothost_close(h);
}

/* Who hands a signal on learns whether anything hears it. */
static void test_idle(void **state) {
  fixture_t *w = *state;
  assert_int_equal(aoth_session_cancel(w->session), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_thread, setup, teardown),
      cmocka_unit_test_setup_teardown(test_handler, setup, teardown),
      cmocka_unit_test_setup_teardown(test_before, setup, teardown),
      cmocka_unit_test_setup_teardown(test_idle, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
