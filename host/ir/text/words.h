/* The vocabulary of the text form. */
#ifndef AOTH_WORDS_H
#define AOTH_WORDS_H

#include <ir/program.h>

typedef struct aoth_word { /* tables end with word NULL */
  const char *word;
  int64_t number;
} aoth_word_t;

extern const aoth_word_t aoth_role_words[], aoth_graph_kind_words[], aoth_rule_words[], aoth_dtype_words[],
    aoth_device_words[], aoth_layout_words[], aoth_memory_words[], aoth_node_flag_words[], aoth_leaf_flag_words[],
    aoth_property_words[], aoth_expr_words[];

const char *aoth_word_of(const aoth_word_t *words, int64_t number); /* NULL: none */
int aoth_word_find(const aoth_word_t *words, aot_str_t text, int64_t *out);

/* NULL-free names for messages. */
const char *aoth_role_name(int32_t role);
const char *aoth_rule_name(int32_t kind);
const char *aoth_graph_kind_name(int32_t kind);
const char *aoth_property_name(uint32_t bit);

int aoth_is_word(aot_str_t s);        /* a letter or _, then letters, digits, _ and . */
int aoth_is_vendor_name(aot_str_t s); /* words of a-z, 0-9, _ and - with dots between: what a vendor calls its own */
int aoth_is_reserved(aot_str_t s);    /* a word that means something in an argument: no symbol may print as it */

#endif
