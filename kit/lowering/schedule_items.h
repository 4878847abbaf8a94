/* What is lowered at one time: a node, or the members of a group, with the copies that it makes of others' nodes. */
#ifndef LW_SCHEDULE_ITEMS_H
#define LW_SCHEDULE_ITEMS_H

#include "lower.h"

typedef struct lw_schedule_item { /* in the order of nodes */
  uint32_t *nodes;
  uint8_t *is_copy; /* nodes that other units make, too */
  uint32_t n;
} lw_schedule_item_t;
typedef struct lw_units {   /* of the graph that is being lowered */
  uint32_t *order;          /* by place: the last node of the unit that is lowered there; LW_NONE: none */
  uint32_t *previous;       /* by node: the one before it in its unit; LW_NONE: it is the first */
  lw_schedule_item_t *unit; /* the one that was found last */
} lw_units_t;

/* units->unit becomes the one with that last node. */
void lw_find_unit(const lw_build_t *b, const lw_units_t *units, uint32_t last);
/* A group as its loop; without one, the members one by one. */
aot_status_t lw_lower_unit(lw_build_t *b, const lw_schedule_item_t *u);
aot_status_t lw_lower_node(lw_build_t *b); /* the node at hand, by itself and not as a loop */

#endif
