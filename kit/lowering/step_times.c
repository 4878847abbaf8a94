#include "step_times.h"

#include <aot/assert.h>
#include <aot/inline.h>
#include <string.h>

static void forget(lw_schedule_t *s) {
  for (uint32_t k = 0; k < s->n_steps; k++) s->steps[k].n_runs = s->steps[k].ns = 0;
}

void lw_times_clear(lw_schedule_t *s) {
  forget(s);
  s->n_timed = s->n_left_out = 0;
}

void lw_times_begin(lw_schedule_t *s) {
  if (s->n_timed == 1) {
    forget(s);
    s->n_left_out = 1;
  }
  s->n_timed++;
}

void lw_times_add(lw_step_t *step, uint64_t at, uint64_t ns) {
  step->n_runs++;
  step->ns += ns;
  step->last_at = at;
  step->last_ns = ns;
}

/* The longer of its moves and its work. */
static uint64_t limit_of(const lw_step_t *step, const nc_rates_t *rates) {
  const double move_ns = (double)step->nbytes / rates->bytes;
  const double work_ns = step->flops ? (double)step->flops / nc_rate_of(rates, step->flops_dtype) : 0;
  return (uint64_t)(move_ns > work_ns ? move_ns : work_ns);
}

/* run_max_pool is called max_pool */
aot_profile_row_t lw_times_row(const lw_schedule_t *s, const lw_step_t *step, const nc_rates_t *rates) {
  AOT_ASSERT(step->n_runs == 0 || step->last_ns <= step->ns);
  return (aot_profile_row_t){
      .kernel = aot_str(strncmp(step->kernel, "run_", 4) == 0 ? step->kernel + 4 : step->kernel),
      .node = {step->node},
      .n_runs = step->n_runs,
      .ns = step->ns,
      .nbytes = step->nbytes,
      .flops = step->flops,
      .limit_ns = rates ? limit_of(step, rates) : 0,
      .n_left_out = s->n_left_out,
      .last_at = step->last_at,
      .last_ns = step->last_ns,
  };
}
