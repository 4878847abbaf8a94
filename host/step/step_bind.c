/* Contents of a step: what a program says of its tables and leaves. */
#include <step/step_ports.h>

aot_status_t aoth_step_bind(aoth_step_t *s, aot_prog_t *prog, const aoth_exec_t *exec, aoth_sink_t *sink) {
  s->prog = prog;
  s->exec = *exec;
  s->sink = sink;
  s->arena = kit_arena_create();
  if (!s->arena || !aoth_sizes_init(&s->sizes, prog)) {
    aoth_sink_report(sink, AOT_SEVERITY_ERROR, NULL, "run.memory", "no memory for the program's sizes");
    return AOT_E_EXHAUSTED;
  }
  AOT_TRY(aoth_leaves_init(&s->leaves, prog, exec->queue, sink));
  for (uint32_t i = 1; i < s->leaves.n && exec->home; i++)
    aoth_leaf_live(&s->leaves, i, exec->home(exec->self, prog, i));
  return aoth_step_read(s);
}

void aoth_step_unbind(aoth_step_t *s) {
  aoth_step_free_memory(s);
  aoth_step_free_lent(s);
  aoth_sizes_deinit(&s->sizes);
  aoth_leaves_deinit(&s->leaves);
  kit_arena_destroy(s->arena);
}
