#include "plan_cache.h"

#include "plan_cache_disk.h"
#include <stdlib.h>
#include <string.h>

/* Until it is made: it is taken to exist, and to want what such plans usually do. 0: no memory. */
static int wait_for(gc_cudnn_t *c, const gc_dnn_graph_t *g, gc_dnn_plan_t *p) {
  p->graph = malloc(sizeof *p->graph);
  if (!p->graph) return 0;
  *p->graph = *g;
  p->workspace_nbytes = gc_dnn_usual_workspace(g);
  if (gc_plans_make(c, p)) return 1;
  free(p->graph);
  p->graph = NULL;
  return 0;
}

static void make_now(gc_cudnn_t *c, const gc_dnn_graph_t *g, gc_dnn_plan_t *p) {
  gc_dnn_build(c, g, p);
  gc_plans_write(c, p);
  c->n_made += p->desc != NULL;
}

const gc_dnn_plan_t *gc_dnn_plan(gc_cudnn_t *c, const gc_dnn_graph_t *g) {
  lp_text_t text = {0};
  gc_dnn_print(g, &text);
  for (gc_dnn_plan_t *p = c->plans; p && !text.failed; p = p->next)
    if (strcmp(p->text, text.data) == 0) {
      lp_text_deinit(&text);
      return p;
    }
  gc_dnn_plan_t *p = text.failed ? NULL : calloc(1, sizeof *p);
  if (!p) {
    lp_text_deinit(&text);
    return NULL;
  }
  p->text = text.data;
  p->next = c->plans;
  c->plans = p;
  if (gc_plans_read(c, p)) return p;
  if (!c->making || !wait_for(c, g, p)) make_now(c, g, p);
  return p;
}

void gc_dnn_forget_plans(gc_cudnn_t *c) {
  while (c->plans) {
    gc_dnn_plan_t *p = c->plans;
    c->plans = p->next;
    if (p->desc) c->desc_destroy(p->desc);
    free(p->graph);
    free(p->text);
    free(p);
  }
}
