#include "random_rules.h"

static const rg_row_t ROWS[] = {
#define RULE(op, rule) {op, rule},
#include "random_rules.def"
#undef RULE
};

uint32_t rg_n_rows(void) { return (uint32_t)(sizeof ROWS / sizeof *ROWS); }
const rg_row_t *rg_row_at(uint32_t i) { return &ROWS[i]; }
