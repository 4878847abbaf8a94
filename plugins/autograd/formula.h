/* Derivative formulas as text: the one-line rules of rules.def, similar to PyTorch's derivatives.yaml.
 *
 *     rule    = part { ";" part }
 *     part    = targets ":" expr        the gradient of an argument; several targets: of a call with as many results
 *             | name "=" expr           a shorthand; evaluated at most once, at its first use
 *     targets = name { "," name }
 *     expr    = term { ("+" | "-") term }
 *     term    = factor { ("*" | "/") factor }
 *     factor  = "-" factor | number | "'" text "'" | name | call | "(" expr ")"
 *     call    = name "(" [ expr { "," expr } ] ")"
 *
 * Names: arguments of the operator by schema name (numbers, lists and strings unchanged); g, g0, g1, ..: cotangents of
 * the results; y, y0, ..: the results; none, true, false; mask: which targets are wanted. Calls: the functions of
 * formula.c, else an ATen operator without ".default". An operator call whose first argument is NONE is NONE. ag_set()
 * sums gradients to the operand's shape and casts them to its dtype. 0 is a zero gradient. */
#ifndef AG_FORMULA_H
#define AG_FORMULA_H

#include "ag_emit.h"

/* Emit what the formula says for the node in *a. */
void ag_formula_apply(em_t *a, const char *text);
/* Nothing is emitted: are grammar and names right for the operator a->desc? Sets out_covered's bit of every argument
 * that has a target. */
void ag_formula_check(em_t *a, const char *text, uint64_t *out_covered);

#endif
