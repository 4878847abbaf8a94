/* What a scalar means: the core schema of YAML 1.2 (section 10.3), without octal numbers.
 *
 * Plain scalars are null, bool, integer, number or string by their spelling; quoted ones are always strings. yes, no,
 * on and off are strings here, as 1.2 has it. An integer with a leading zero is none: 010 has meant eight elsewhere. */
#include <config/yaml.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int is_word(const aoth_yaml_t *node, const char *word) {
  return node->kind == AOTH_YAML_SCALAR && !node->quoted && strcmp(node->text.data, word) == 0;
}

int aoth_yaml_is_null(const aoth_yaml_t *node) {
  return is_word(node, "") || is_word(node, "~") || is_word(node, "null") || is_word(node, "Null") ||
         is_word(node, "NULL");
}

int aoth_yaml_bool(const aoth_yaml_t *node, int *out) {
  if (is_word(node, "true") || is_word(node, "True") || is_word(node, "TRUE")) return *out = 1, 1;
  if (is_word(node, "false") || is_word(node, "False") || is_word(node, "FALSE")) return *out = 0, 1;
  return 0;
}

static size_t digits(const char *s) { return strspn(s, "0123456789"); }

int aoth_yaml_i64(const aoth_yaml_t *node, int64_t *out) {
  if (node->kind != AOTH_YAML_SCALAR || node->quoted) return 0;
  const char *text = node->text.data, *s = text + (*text == '-' || *text == '+');
  int base = 10;
  if (s[0] == '0' && s[1] == 'x' && s == text) {
    base = 16;
    s += 2;
    if (strspn(s, "0123456789abcdefABCDEF") != strlen(s) || !*s) return 0;
  } else if (digits(s) != strlen(s) || !*s || (s[0] == '0' && s[1])) {
    return 0;
  }
  errno = 0;
  const long long value = strtoll(text, NULL, base);
  if (errno) return 0;
  *out = value;
  return 1;
}

int aoth_yaml_f64(const aoth_yaml_t *node, double *out) {
  if (node->kind != AOTH_YAML_SCALAR || node->quoted) return 0;
  const char *text = node->text.data, *s = text + (*text == '-' || *text == '+');
  if (!strcmp(s, ".inf") || !strcmp(s, ".Inf") || !strcmp(s, ".INF"))
    return *out = *text == '-' ? -INFINITY : INFINITY, 1;
  if (!strcmp(text, ".nan") || !strcmp(text, ".NaN") || !strcmp(text, ".NAN")) return *out = NAN, 1;
  const size_t whole = digits(s);
  if (whole > 1 && *s == '0') return 0; /* 010 again */
  s += whole;
  size_t part = 0;
  if (*s == '.') {
    part = digits(++s);
    s += part;
  }
  if (whole + part == 0) return 0;
  if (*s == 'e' || *s == 'E') {
    s++;
    s += *s == '-' || *s == '+';
    const size_t n = digits(s);
    if (n == 0) return 0;
    s += n;
  }
  if (*s) return 0;
  const double value = strtod(text, NULL);
  if (!isfinite(value)) return 0; /* 1e999 */
  *out = value;
  return 1;
}

/* Spelled like a number, but none that this machine holds. */
static const char *odd_number(const aoth_yaml_t *node) {
  const char *text = node->text.data, *s = text + (*text == '-' || *text == '+');
  if (node->quoted || !*s) return NULL;
  if (digits(s) == strlen(s))
    return *s == '0' && s[1] ? "an integer with a leading zero" : "an integer of more than 64 bits";
  char *end;
  const int is_number = strspn(s, "0123456789.eE+-") == strlen(s) && digits(s) && (strtod(s, &end), *end == 0);
  return is_number ? "a number out of range" : NULL;
}

const char *aoth_yaml_kind(const aoth_yaml_t *node) {
  int b;
  int64_t i;
  double f;
  if (node->kind == AOTH_YAML_MAP) return "a map";
  if (node->kind == AOTH_YAML_LIST) return "a list";
  if (aoth_yaml_is_null(node)) return "nothing";
  if (aoth_yaml_bool(node, &b)) return "a boolean";
  if (aoth_yaml_i64(node, &i)) return "an integer";
  if (odd_number(node) && (digits(node->text.data) == node->text.size || !aoth_yaml_f64(node, &f)))
    return odd_number(node);
  if (aoth_yaml_f64(node, &f)) return "a number";
  return "a string";
}

/* Plain when nothing in it could be read as YAML and it is no other type's spelling. A dollar is doubled: it begins a
 * variable otherwise. */
void aoth_yaml_print_text(kit_text_t *out, aot_str_t text) {
  static const char first[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ/_.";
  static const char rest[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/_.+-";
  static const char *const old_bools[] = {"y",  "Y",  "yes", "Yes", "YES", "n",   "N",   "no",
                                          "No", "NO", "on",  "On",  "ON",  "off", "Off", "OFF"};
  kit_text_t copy = {0};
  kit_text_str(&copy, text);
  aoth_yaml_t node = {.kind = AOTH_YAML_SCALAR, .text = {copy.data ? copy.data : "", text.size}};
  int plain = text.size > 0 && strchr(first, node.text.data[0]) && node.text.data[0] &&
              strspn(node.text.data, rest) == text.size && strcmp(aoth_yaml_kind(&node), "a string") == 0;
  for (size_t i = 0; plain && i < sizeof old_bools / sizeof *old_bools; i++) /* readers of YAML 1.1 see a bool */
    if (strcmp(node.text.data, old_bools[i]) == 0) plain = 0;
  if (plain) {
    kit_text_str(out, text);
  } else {
    kit_text_t doubled = {0};
    for (size_t i = 0; i < text.size; i++) {
      kit_text_add(&doubled, node.text.data + i, 1);
      if (node.text.data[i] == '$') kit_text_add(&doubled, "$", 1);
    }
    kit_text_json(out, (aot_str_t){doubled.data ? doubled.data : "", doubled.size});
    kit_text_deinit(&doubled);
  }
  kit_text_deinit(&copy);
}
