/* Types: `f32[4, s0] strides [1, 4] offset 2 cuda:0 memory 1 encoding 0 grad`, `symint(s0)`, `token`, `none`. */
#include <ir/text/parser.h>
#include <string.h>

aot_status_t aoth_parse_geometry(aoth_parser_t *s, aot_type_t *out) {
  const int64_t *strides;
  uint32_t rank, n;
  aoth_token_t t = s->token;
  AOT_TRY(aoth_parse_dim_list(s, &out->sizes, &rank));
  if (rank > AOT_MAX_RANK) return aoth_parse_fail(s, &t, "%u dimensions; the most are %d", rank, AOT_MAX_RANK);
  out->rank = (int32_t)rank;
  if (aoth_at_word(s, "strides")) {
    AOT_TRY(aoth_parse_next(s));
    t = s->token;
    AOT_TRY(aoth_parse_dim_list(s, &strides, &n));
    if (n != rank) return aoth_parse_fail(s, &t, "%u strides for %u dimensions", n, rank);
    out->strides = strides;
  }
  if (aoth_at_word(s, "offset")) {
    AOT_TRY(aoth_parse_next(s));
    AOT_TRY(aoth_parse_dim(s, &out->offset));
  }
  return AOT_OK;
}

aot_status_t aoth_parse_device(aoth_parser_t *s, int32_t *kind, int32_t *index) {
  int64_t number, which;
  *index = 0;
  AOT_TRY(aoth_parse_word_of(s, aoth_device_words, "a device", &which));
  if (aoth_at_punct(s, ":")) {
    AOT_TRY(aoth_parse_next(s));
    aoth_token_t t = s->token;
    AOT_TRY(aoth_parse_i64(s, &number));
    if (number < 0 || number > 0xffff) return aoth_parse_fail(s, &t, "a device number is between 0 and 65535");
    *index = (int32_t)number + 1;
  }
  *kind = (int32_t)which;
  return AOT_OK;
}

static aot_status_t parse_tensor(aoth_parser_t *s, aot_type_t *out) {
  int64_t dtype, ignored;
  AOT_TRY(aoth_parse_word_of(s, aoth_dtype_words, "a type", &dtype));
  out->kind = AOT_TYPE_TENSOR;
  out->dtype = (int32_t)dtype;
  AOT_TRY(aoth_parse_geometry(s, out));
  if (s->token.kind == TOKEN_WORD && aoth_word_find(aoth_device_words, s->token.text, &ignored))
    AOT_TRY(aoth_parse_device(s, &out->device, &out->device_index));
  if (aoth_at_word(s, "memory")) {
    AOT_TRY(aoth_parse_next(s));
    AOT_TRY(aoth_parse_u32(s, &out->memory));
  }
  if (aoth_at_word(s, "encoding")) {
    uint32_t number;
    AOT_TRY(aoth_parse_next(s));
    aoth_token_t t = s->token;
    AOT_TRY(aoth_parse_u32(s, &number));
    if (number >= s->encodings.n) return aoth_parse_fail(s, &t, "encoding %u comes later or not at all", number);
    out->encoding = s->encodings.at[number];
  }
  return AOT_OK;
}

static aot_status_t parse_symbolic(aoth_parser_t *s, int32_t kind, aot_type_t *out) {
  out->kind = kind;
  AOT_TRY(aoth_parse_next(s));
  AOT_TRY(aoth_parse_punct(s, "("));
  AOT_TRY(aoth_parse_dim(s, &out->expr));
  return aoth_parse_punct(s, ")");
}

static aot_status_t parse_plain(aoth_parser_t *s, int32_t kind, aot_type_t *out) {
  out->kind = kind;
  return aoth_parse_next(s);
}

aot_status_t aoth_parse_type(aoth_parser_t *s, aot_type_t *out) {
  memset(out, 0, sizeof *out);
  if (aoth_at_word(s, "symint")) AOT_TRY(parse_symbolic(s, AOT_TYPE_SYMINT, out));
  else if (aoth_at_word(s, "symbool")) AOT_TRY(parse_symbolic(s, AOT_TYPE_SYMBOOL, out));
  else if (aoth_at_word(s, "symfloat")) AOT_TRY(parse_plain(s, AOT_TYPE_SYMFLOAT, out));
  else if (aoth_at_word(s, "token")) AOT_TRY(parse_plain(s, AOT_TYPE_TOKEN, out));
  else if (aoth_at_word(s, "none")) AOT_TRY(parse_plain(s, AOT_TYPE_NONE, out));
  else AOT_TRY(parse_tensor(s, out));
  if (aoth_at_word(s, "grad")) {
    out->flags |= AOT_TYPE_REQUIRES_GRAD;
    AOT_TRY(aoth_parse_next(s));
  }
  if (!aoth_at_word(s, "flags")) return AOT_OK;
  uint32_t bits;
  AOT_TRY(aoth_parse_next(s));
  AOT_TRY(aoth_parse_punct(s, "("));
  AOT_TRY(aoth_parse_u32(s, &bits));
  out->flags |= bits;
  return aoth_parse_punct(s, ")");
}
