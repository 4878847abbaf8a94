#include "groups.h"

#include "kit/base/errors.h"
#include "kit/base/glob.h"
#include <aot/inline.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* ---- words ---- */

static int is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
static int ends_rule(char c) { return c == ';' || c == '\n'; }

static aot_str_t trim(aot_str_t s) {
  while (s.size && is_blank(s.data[0])) s = (aot_str_t){s.data + 1, s.size - 1};
  while (s.size && is_blank(s.data[s.size - 1])) s.size--;
  return s;
}

static uint64_t find(aot_str_t s, char c) {
  uint64_t i = 0;
  while (i < s.size && s.data[i] != c) i++;
  return i;
}

/* The part up to the separator, and the rest after it. */
static aot_str_t next_part(aot_str_t *rest, char separator) {
  const uint64_t n = find(*rest, separator), skip = n < rest->size ? n + 1 : n;
  const aot_str_t part = {rest->data, n};
  *rest = (aot_str_t){rest->data + skip, rest->size - skip};
  return trim(part);
}

/* ---- options ---- */

#define ADAM(option, member)                                                                                           \
  { OPT_RULE_ADAM, option, offsetof(opt_rule_t, adam.member), 0 }
#define ADAM_SWITCH(option, member)                                                                                    \
  { OPT_RULE_ADAM, option, offsetof(opt_rule_t, adam.member), 1 }
#define SGD(option, member)                                                                                            \
  { OPT_RULE_SGD, option, offsetof(opt_rule_t, sgd.member), 0 }
#define SGD_SWITCH(option, member)                                                                                     \
  { OPT_RULE_SGD, option, offsetof(opt_rule_t, sgd.member), 1 }

static const struct {
  int kind; /* 0: any */
  const char *name;
  size_t at;
  int is_switch;
} options[] = {
    {0, "lr-scale", offsetof(opt_rule_t, lr_scale), 0},
    ADAM("beta1", beta1),
    ADAM("beta2", beta2),
    ADAM("eps", eps),
    ADAM("weight-decay", weight_decay),
    ADAM_SWITCH("amsgrad", amsgrad),
    ADAM_SWITCH("maximize", maximize),
    SGD("momentum", momentum),
    SGD("dampening", dampening),
    SGD("weight-decay", weight_decay),
    SGD_SWITCH("nesterov", nesterov),
    SGD_SWITCH("maximize", maximize),
};

static int read_number(aot_str_t text, double *out) {
  char buffer[64], *end;
  if (text.size == 0 || text.size >= sizeof buffer) return 0;
  memcpy(buffer, text.data, (size_t)text.size);
  buffer[text.size] = '\0';
  *out = strtod(buffer, &end);
  return *end == '\0' && *out >= -1e9 && *out <= 1e9;
}

/* NULL, or what is wrong. */
static const char *read_option(aot_str_t text, opt_rule_t *out) {
  aot_str_t value = text;
  const aot_str_t name = next_part(&value, '=');
  value = trim(value);
  for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
    if ((options[i].kind && options[i].kind != out->kind) || !aot_str_eq(name, aot_str(options[i].name))) continue;
    void *at = (char *)out + options[i].at;
    double number;
    if (options[i].is_switch) {
      const int on = aot_str_eq(value, aot_str("true"));
      if (!on && !aot_str_eq(value, aot_str("false"))) return "a switch is true or false";
      memcpy(at, &on, sizeof on);
      return NULL;
    }
    if (!read_number(value, &number)) return "a value is no number from -1e9 to 1e9";
    memcpy(at, &number, sizeof number);
    return NULL;
  }
  return out->kind == OPT_RULE_SGD ? "the options are lr-scale, momentum, dampening, weight-decay, nesterov, maximize"
                                   : "the options are lr-scale, beta1, beta2, eps, weight-decay, amsgrad, maximize";
}

const char *opt_rule_error(const opt_rule_t *r) {
  const double low = r->kind == OPT_RULE_SGD ? fmin(r->sgd.momentum, r->sgd.weight_decay)
                                             : fmin(fmin(r->adam.beta1, r->adam.beta2), r->adam.eps);
  if (low < 0 || r->lr_scale < 0 || (r->kind == OPT_RULE_ADAM && r->adam.weight_decay < 0))
    return "only dampening may be negative";
  if (r->kind == OPT_RULE_ADAM && (r->adam.beta1 >= 1 || r->adam.beta2 >= 1))
    return "beta1 and beta2 must be less than 1; the usual values are 0.9 and 0.999";
  if (r->kind == OPT_RULE_SGD && r->sgd.nesterov && (r->sgd.momentum <= 0 || r->sgd.dampening != 0))
    return "nesterov needs a momentum, for instance 0.9, and no dampening";
  return NULL;
}

/* ---- rules ---- */

static const char *read_rule(aot_str_t text, opt_rule_t *out) {
  if (find(text, ':') == text.size) return "expected PATTERN, ..: OPTION=VALUE, ..";
  out->patterns = next_part(&text, ':');
  if (out->patterns.size == 0) return "a pattern of parameters is missing before ':'";
  const char *error = NULL;
  while (!error && trim(text).size) error = read_option(next_part(&text, ','), out);
  return error ? error : opt_rule_error(out);
}

aot_status_t opt_groups_parse(const aot_host_t *host, aot_ctx_t *ctx, aot_str_t text, const opt_rule_t *unit,
                              opt_groups_t *out) {
  uint32_t capacity = 1;
  for (uint64_t i = 0; i < text.size; i++) capacity += (uint32_t)ends_rule(text.data[i]);
  *out =
      (opt_groups_t){.rule = host->alloc(host, ctx, AOT_ARENA_SESSION, sizeof(void *), capacity * sizeof *out->rule)};
  if (!out->rule) return AOT_E_EXHAUSTED;
  for (uint64_t i = 0, begin = 0; i <= text.size; i++) {
    if (i < text.size && !ends_rule(text.data[i])) continue;
    const aot_str_t rule = i > begin ? trim((aot_str_t){text.data + begin, i - begin}) : aot_str("");
    begin = i + 1;
    if (rule.size == 0) continue;
    opt_rule_t *r = &out->rule[out->n++];
    *r = *unit;
    r->lr_scale = 1;
    const char *what = read_rule(rule, r);
    if (what)
      return kit_fail(host, ctx, AOT_E_OPTION, "optimizer.groups", "option groups, rule %u, \"%.*s\": %s", out->n,
                      (int)(rule.size < 80 ? rule.size : 80), rule.data, what);
  }
  return AOT_OK;
}

int opt_rule_matches(const opt_rule_t *rule, const aot_str_t *names, uint32_t n_names) {
  aot_str_t rest = rule->patterns;
  while (rest.size) {
    const aot_str_t pattern = next_part(&rest, ',');
    for (uint32_t i = 0; i < n_names; i++)
      if (kit_glob(pattern, names[i])) return 1;
  }
  return 0;
}
