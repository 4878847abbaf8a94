/* Attention without dropout: one fused operator forward and one backward (rules.def). */
#include "rules.h"

int ag_when_no_dropout(em_t *a) { return ag_number(a, ag_arg(a, "dropout_p"), 0) == 0; }
