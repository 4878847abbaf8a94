/* A broken invariant of the store stops a debug build where it is met: use_lists.c is compiled here with
 * AOT_DEBUG_ASSERT. */
#include "tiny_opset.h"
#include <aot/inline.h>
#include <aot/assert.h>
#include <ir/program_store.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static const char text[] = "aot 1\n"
                           "leaf 0 parameter \"w\" : f32[4]\n"
                           "graph @f forward {\n"
                           "  in %x = parameter 0 : f32[4]\n"
                           "  %a : f32[4] = tiny.add.Tensor %x, %x\n"
                           "  %b : f32[4] = tiny.add.Tensor %a, %x\n"
                           "  out user_output 0 = %b\n"
                           "}\n";

/* What the child says on its way out; *out_signal: what ended it, 0: nothing did. */
static void in_child(void (*run)(aot_prog_t *p), char *said, size_t size, int *out_signal) {
  int ends[2], status;
  fixture_t w;
  assert_int_equal(pipe(ends), 0);
  world_init(&w);
  assert_int_equal(world_parse(&w, text), AOT_OK);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    signal(SIGABRT, SIG_DFL); /* cmocka's handler would jump back */
    dup2(ends[1], STDERR_FILENO);
    run(w.p);
    _exit(0);
  }
  close(ends[1]);
  const ssize_t n = read(ends[0], said, size - 1);
  said[n > 0 ? n : 0] = '\0';
  close(ends[0]);
  assert_int_equal(waitpid(child, &status, 0), child);
  *out_signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  world_deinit(&w);
}

static uint32_t first_node(const aot_prog_t *p) { return p->graphs.at[1].first; }

static void erase_and_restore(aot_prog_t *p) {
  const uint32_t node = first_node(p);
  aoth_node_unuse(p, node);
  aoth_node_unlink(p, node);
  aoth_node_relink(p, node);
  aoth_node_reuse(p, node);
}

static void unlink_twice(aot_prog_t *p) {
  aoth_node_unuse(p, first_node(p));
  aoth_node_unuse(p, first_node(p));
}

/* Not in the opposite order: the second use goes back before the first is there. */
static void relink_in_order(aot_prog_t *p) {
  const aoth_node_row_t *n = &p->nodes.at[first_node(p)];
  aoth_node_unuse(p, first_node(p));
  aoth_use_relink(p, n->slot_begin, n->operands[0]);
}

static void node_unlinked_twice(aot_prog_t *p) {
  const uint32_t node = first_node(p);
  aoth_node_unlink(p, node);
  aoth_node_unlink(p, node);
}

static void broken_lists_abort(void **state) {
  static const struct {
    void (*run)(aot_prog_t *p);
    const char *says;
  } rows[] = {{unlink_twice, "follows(p, v, s->prev) == slot"},
              {relink_in_order, "follows(p, v, s->prev) == s->next"},
              {node_unlinked_twice, "node_follows(p, g, n->prev) == node"}};
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char said[400];
    int ended;
    in_child(rows[i].run, said, sizeof said, &ended);
    assert_int_equal(ended, SIGABRT);
    assert_non_null(strstr(said, "use_lists.c"));
    assert_non_null(strstr(said, rows[i].says));
  }
}

static void whole_lists_do_not(void **state) {
  char said[400];
  int ended;
  (void)state;
  in_child(erase_and_restore, said, sizeof said, &ended);
  assert_int_equal(ended, 0);
  assert_string_equal(said, "");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(broken_lists_abort), cmocka_unit_test(whole_lists_do_not)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
