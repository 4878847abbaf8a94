/* Nodes with effects, as functionalize makes them: with_effects(token, op, ..). They are differentiated as their inner
 * operator (ag_look_through); a gradient never executes an effect. */
#ifndef AG_EFFECT_NODES_H
#define AG_EFFECT_NODES_H

#include "joint.h"

/* Erases the effects of a region that was made to compute gradients, those of regions that it runs again, too. One
 * whose results are read cannot go: it is refused. */
aot_status_t ag_drop_effects(ag_joint_t *j);

#endif
