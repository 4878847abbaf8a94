/* What an instruction takes: the functions that its text calls, by scalar.def, and divisions. */
#include "loop.h"

#include <aot/assert.h>
#include <string.h>

enum { COST_OF_DIVISION = 2 };

typedef struct function {
  const char *name;
  uint32_t cost;
} function_t;

/* clang-format off */
#define FUNCTION(name, cost) {#name, cost},
static const function_t functions[] = {
#include "kit/reference/scalar.def"
};
/* clang-format on */

uint32_t lp_function_cost(const char *name, uint32_t size) {
  size_t low = 0, high = sizeof functions / sizeof *functions;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    const function_t *f = &functions[middle];
    AOT_ASSERT(middle == 0 || strcmp(functions[middle - 1].name, f->name) < 0); /* scalar.def is sorted */
    const int order = strncmp(f->name, name, size), is_longer = !order && f->name[size];
    if (!order && !is_longer) return f->cost;
    if (order < 0) low = middle + 1;
    else high = middle;
  }
  return 0;
}

uint32_t lp_text_cost(const char *text) {
  uint32_t cost = 1;
  lp_token_t t;
  while (lp_token(&text, &t)) {
    if (t.kind == LP_TK_CALL) cost += lp_function_cost(t.text, t.size);
    else if (*t.text == '/') cost += COST_OF_DIVISION;
  }
  return cost;
}
