/* A handful of operators for testing the store without any plugin: one of every kind of argument, result and flag. */
#ifndef TINY_OPSET_H
#define TINY_OPSET_H

#include <ir/program.h>

const aot_opset_t *tiny_opset(void);

/* A program with its operators and a sink that collects silently. */
typedef struct fixture {
  aoth_ops_t *ops;
  aoth_sink_t *sink;
  kit_arena_t *session, *scratch;
  aot_ctx_t ctx;
  aot_prog_t *p;
} fixture_t;

void world_init(fixture_t *w);
void world_deinit(fixture_t *w);
void world_reset(fixture_t *w); /* an empty program and an empty sink again */
aot_status_t world_parse(fixture_t *w, const char *text);
char *world_print(fixture_t *w); /* to be freed */

aot_op_t tiny_op(fixture_t *w, const char *name);
aot_type_t f32_type(uint32_t rank, const int64_t *sizes);

#endif
