/* Derivative formulas as text: the one-line rules of rules.def, in the spirit of PyTorch's derivatives.yaml.
 *
 *     rule    = part { ";" part }
 *     part    = targets ":" expr        the gradient of an argument; several targets: of a call with as many results
 *             | name "=" expr           a shorthand; computed where it is first used, once
 *     targets = name { "," name }
 *     expr    = term { ("+" | "-") term }
 *     term    = factor { ("*" | "/") factor }
 *     factor  = "-" factor | number | "'" text "'" | name | call | "(" expr ")"
 *     call    = name "(" [ expr { "," expr } ] ")"
 *
 * Names: arguments of the operator by their schema names (numbers, lists and strings pass through as they stand); g,
 * g0, g1, ..: cotangents of the results, y, y0, ..: the results; none, true, false; mask: which of the targets are
 * wanted. Calls: the functions of formula.c, else an ATen operator, ".default" left out. An operator call whose first
 * argument is NONE is NONE. Gradients are summed to the operand's shape and cast to its dtype by ag_set(). 0 is a
 * zero gradient. */
#ifndef AG_FORMULA_H
#define AG_FORMULA_H

#include "ag_emit.h"

/* Emit what the formula says for the node in *a. */
void ag_formula_apply(em_t *a, const char *text);
/* Nothing is emitted: are grammar and names right for the operator a->desc? Sets out_covered's bit of every argument
 * that has a target. */
void ag_formula_check(em_t *a, const char *text, uint64_t *out_covered);

#endif
