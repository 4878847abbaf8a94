/* The vocabulary of the text form: numbers of the plugin interface and their words, for the printer, the parser and
 * messages. docs/IR.md lists them. */
#include <aot/contract.h>
#include <ir/text/words.h>
#include <string.h>

/* clang-format off */
const aoth_word_t aoth_role_words[] = {
    {"parameter", AOT_ROLE_PARAMETER},     {"buffer", AOT_ROLE_BUFFER},     {"constant", AOT_ROLE_CONSTANT},
    {"user_input", AOT_ROLE_USER_INPUT},   {"state", AOT_ROLE_STATE},       {"tangent", AOT_ROLE_TANGENT},
    {"saved", AOT_ROLE_SAVED},             {"gradient", AOT_ROLE_GRADIENT}, {"user_output", AOT_ROLE_USER_OUTPUT},
    {"loss", AOT_ROLE_LOSS},               {"update", AOT_ROLE_UPDATE},     {"hyper", AOT_ROLE_HYPER},
    {"seed", AOT_ROLE_SEED},               {"offset", AOT_ROLE_OFFSET},     {"token", AOT_ROLE_TOKEN},
    {"region", AOT_ROLE_REGION},           {"base", AOT_ROLE_BASE},         {NULL, 0}};

const aoth_word_t aoth_graph_kind_words[] = {{"forward", AOT_GRAPH_FORWARD},   {"joint", AOT_GRAPH_JOINT},
                                             {"backward", AOT_GRAPH_BACKWARD}, {"update", AOT_GRAPH_UPDATE},
                                             {"region", AOT_GRAPH_REGION},     {"step", AOT_GRAPH_STEP},
                                             {"part", AOT_GRAPH_PART},         {NULL, 0}};

const aoth_word_t aoth_rule_words[] = {
    {"copy_back", AOT_RULE_COPY_BACK},     {"restride", AOT_RULE_RESTRIDE},       {"same_input", AOT_RULE_SAME_INPUT},
    {"view_input", AOT_RULE_VIEW_INPUT},   {"same_output", AOT_RULE_SAME_OUTPUT}, {"view_output", AOT_RULE_VIEW_OUTPUT},
    {"view_base", AOT_RULE_VIEW_BASE},     {"entry_same", AOT_RULE_ENTRY_SAME},   {"entry_view", AOT_RULE_ENTRY_VIEW},
    {NULL, 0}};

const aoth_word_t aoth_dtype_words[] = {
#define DTYPE_WORD(c, n, text, bytes) {text, n},
    AOT_DTYPE_MAP(DTYPE_WORD)
#undef DTYPE_WORD
    {NULL, 0}};

const aoth_word_t aoth_device_words[] = {
    {"cpu", AOT_DEVICE_CPU}, {"cuda", AOT_DEVICE_CUDA}, {"meta", AOT_DEVICE_META}, {NULL, 0}};
/* clang-format on */

const aoth_word_t aoth_layout_words[] = {{"strided", AOT_LAYOUT_STRIDED}, {NULL, 0}};

const aoth_word_t aoth_memory_words[] = {{"contiguous", AOT_MEMORY_CONTIGUOUS},
                                         {"channels_last", AOT_MEMORY_CHANNELS_LAST},
                                         {"channels_last_3d", AOT_MEMORY_CHANNELS_LAST_3D},
                                         {"preserve", AOT_MEMORY_PRESERVE},
                                         {NULL, 0}};

const aoth_word_t aoth_node_flag_words[] = {{"backward", AOT_NODE_BACKWARD},
                                            {"must_save", AOT_NODE_MUST_SAVE},
                                            {"prefer_save", AOT_NODE_PREFER_SAVE},
                                            {"must_recompute", AOT_NODE_MUST_RECOMPUTE},
                                            {"prefer_recompute", AOT_NODE_PREFER_RECOMPUTE},
                                            {"no_grad", AOT_NODE_NO_GRAD},
                                            {"update", AOT_NODE_UPDATE},
                                            {NULL, 0}};

const aoth_word_t aoth_leaf_flag_words[] = {
    {"requires_grad", AOT_LEAF_REQUIRES_GRAD}, {"persistent", AOT_LEAF_PERSISTENT}, {NULL, 0}};

const aoth_word_t aoth_property_words[] = {
#define PROPERTY_WORD(c, bit, text, meaning) {text, (int64_t)1 << (bit)},
    AOT_PROPERTY_MAP(PROPERTY_WORD)
#undef PROPERTY_WORD
        {NULL, 0}};

/* Functions of the expression syntax; the infix operators are in expr_text.c. */
const aoth_word_t aoth_expr_words[] = {
    {"max", AOT_EXPR_MAX}, {"min", AOT_EXPR_MIN}, {"mod", AOT_EXPR_MOD}, {"where", AOT_EXPR_WHERE}, {NULL, 0}};

const char *aoth_word_of(const aoth_word_t *words, int64_t number) {
  for (; words->word; words++)
    if (words->number == number) return words->word;
  return NULL;
}

int aoth_word_find(const aoth_word_t *words, aot_str_t text, int64_t *out) {
  for (; words->word; words++)
    if (strlen(words->word) == text.size && memcmp(words->word, text.data, (size_t)text.size) == 0) {
      *out = words->number;
      return 1;
    }
  return 0;
}

static const char *word_or(const aoth_word_t *words, int64_t number) {
  const char *word = aoth_word_of(words, number);
  return word ? word : "?";
}

const char *aoth_role_name(int32_t role) { return word_or(aoth_role_words, role); }
const char *aoth_rule_name(int32_t kind) { return word_or(aoth_rule_words, kind); }
const char *aoth_graph_kind_name(int32_t kind) { return word_or(aoth_graph_kind_words, kind); }
const char *aoth_property_name(uint32_t bit) { return word_or(aoth_property_words, (int64_t)bit); }

static int is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

int aoth_is_word(aot_str_t s) {
  if (!s.size || !is_letter(s.data[0])) return 0;
  for (uint64_t i = 1; i < s.size; i++)
    if (!is_letter(s.data[i]) && !(s.data[i] >= '0' && s.data[i] <= '9') && s.data[i] != '.') return 0;
  return 1;
}

int aoth_is_vendor_name(aot_str_t s) {
  int n_dots = 0;
  char before = '.'; /* a word does not begin with another dot */
  for (uint64_t i = 0; i < s.size; before = s.data[i++]) {
    const char c = s.data[i];
    if (c == '.' ? before == '.' : !(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '_' && c != '-') return 0;
    n_dots += c == '.';
  }
  return n_dots > 0 && before != '.';
}

int aoth_is_reserved(aot_str_t s) {
  static const char *const others[] = {"none",          "true",   "false",    "inf",    "nan",    "int",    "float",
                                       "value",         "op",     "flags",    "grad",   "region", "symint", "symfloat",
                                       "symbool",       "token",  "strides",  "offset", "dtype",  "layout", "device",
                                       "memory_format", "memory", "encoding", NULL};
  const aoth_word_t *const tables[] = {aoth_dtype_words, aoth_device_words, aoth_layout_words, aoth_memory_words,
                                       aoth_expr_words};
  int64_t ignored;
  for (int i = 0; others[i]; i++)
    if (strlen(others[i]) == s.size && memcmp(others[i], s.data, (size_t)s.size) == 0) return 1;
  for (unsigned i = 0; i < sizeof tables / sizeof *tables; i++)
    if (aoth_word_find(tables[i], s, &ignored)) return 1;
  return 0;
}
