/* libyaml events -> a tree with positions.
 *
 * Events are consumed with an explicit stack of open collections. What makes YAML dangerous or surprising is refused
 * where it is: tags, merge keys, further documents, non-scalar and duplicate keys, NUL characters, deep nesting. An
 * alias is a deep copy of its anchor, so that later merging may change one place alone; the total number of nodes is
 * bounded, which also bounds what aliases can blow up to.
 *
 * Positions are 1-based bytes. libyaml counts characters and breaks lines as YAML 1.1 does; the line table does the
 * same. */
#include <config/yaml.h>

#include <stdarg.h>
#include <string.h>
#include <yaml.h>

#define MAX_BYTES (1u << 20)
#define MAX_DEPTH 64
#define MAX_NODES 20000u
#define NO_TAGS "tags (!...) are not part of the pipeline language"

typedef struct anchor {
  const char *name;
  aoth_yaml_t *node;
  struct anchor *next;
} anchor_t;

typedef struct reader {
  kit_arena_t *arena;
  aoth_sink_t *sink;
  aoth_yaml_file_t *file;
  anchor_t *anchors;
  uint32_t n_nodes;
  uint32_t depth;
  uint32_t n_documents;
  int failed;  /* something was reported; reading continues */
  int stopped; /* what follows cannot be placed */
  aoth_yaml_t *root;
  struct level {
    aoth_yaml_t *node;
    aoth_yaml_t *key; /* MAP: the key whose value comes next */
    const char *anchor;
  } stack[MAX_DEPTH];
} reader_t;

/* ---- positions ---- */

/* Length of the line break at text[i], 0: none. The breaks of YAML 1.1: CR, LF, CRLF, NEL, LS, PS. */
static size_t break_size(const char *text, size_t size, size_t i) {
  const unsigned char *t = (const unsigned char *)text + i;
  const size_t left = size - i;
  if (t[0] == '\r') return left > 1 && t[1] == '\n' ? 2 : 1;
  if (t[0] == '\n') return 1;
  if (left > 1 && t[0] == 0xC2 && t[1] == 0x85) return 2;
  if (left > 2 && t[0] == 0xE2 && t[1] == 0x80 && (t[2] == 0xA8 || t[2] == 0xA9)) return 3;
  return 0;
}

static int make_lines(kit_arena_t *arena, aoth_yaml_file_t *file) {
  size_t n = 1;
  for (size_t i = 0; i < file->size;) {
    const size_t b = break_size(file->text, file->size, i);
    n += b != 0;
    i += b ? b : 1;
  }
  size_t *lines = kit_arena_alloc(arena, sizeof(size_t), n * sizeof *lines);
  if (!lines) return 0;
  uint32_t k = 1;
  for (size_t i = 0; i < file->size;) {
    const size_t b = break_size(file->text, file->size, i);
    i += b ? b : 1;
    if (b) lines[k++] = i;
  }
  file->lines = lines;
  file->n_lines = (uint32_t)n;
  return 1;
}

static size_t line_end(const aoth_yaml_file_t *file, uint32_t line) {
  size_t i = file->lines[line - 1];
  while (i < file->size && break_size(file->text, file->size, i) == 0) i++;
  return i;
}

/* 1-based byte column of the character number `chars` of a 1-based line. */
static uint32_t byte_column(const aoth_yaml_file_t *file, uint32_t line, size_t chars) {
  if (line < 1 || line > file->n_lines) return 1;
  const size_t begin = file->lines[line - 1], end = line_end(file, line);
  size_t i = begin;
  for (; chars > 0 && i < end; chars--) do
      i++;
    while (i < end && ((unsigned char)file->text[i] & 0xC0) == 0x80);
  return (uint32_t)(i - begin + 1);
}

static aoth_where_t where_at(kit_arena_t *arena, const aoth_yaml_file_t *file, uint32_t line, uint32_t column,
                             uint32_t end_column) {
  aoth_where_t w = {file->name, line, column, end_column, NULL};
  if (line >= 1 && line <= file->n_lines) {
    const size_t begin = file->lines[line - 1];
    w.source = kit_arena_text(arena, file->text + begin, line_end(file, line) - begin);
  }
  return w;
}

aoth_where_t aoth_yaml_where(kit_arena_t *arena, const aoth_yaml_t *node) {
  return where_at(arena, node->file, node->line, node->column, node->end_column);
}

void aoth_yaml_error(aoth_sink_t *sink, kit_arena_t *arena, const aoth_yaml_t *node, const char *code,
                     const char *format, ...) {
  const aoth_where_t w = aoth_yaml_where(arena, node);
  va_list args;
  va_start(args, format);
  aoth_sink_v(sink, AOT_SEVERITY_ERROR, &w, code, format, args);
  va_end(args);
  aoth_yaml_notes(sink, arena, node, code);
}

void aoth_yaml_notes(aoth_sink_t *sink, kit_arena_t *arena, const aoth_yaml_t *node, const char *code) {
  if (!node) return;
  if (node->variable) {
    const aoth_where_t v = aoth_yaml_where(arena, node->variable);
    aoth_sink_report(sink, AOT_SEVERITY_NOTE, &v, code, "the value comes from this variable");
  }
  for (const aoth_yaml_file_t *f = node->file; f->includer; f = f->includer) {
    const aoth_where_t i = where_at(arena, f->includer, f->include_line, 0, 0);
    aoth_sink_report(sink, AOT_SEVERITY_NOTE, &i, code, "included from here");
  }
}

/* ---- the tree ---- */

aoth_yaml_t *aoth_yaml_get(const aoth_yaml_t *map, const char *key) {
  if (!map || map->kind != AOTH_YAML_MAP) return NULL;
  const size_t size = strlen(key);
  for (uint32_t i = 0; i < map->n; i++) {
    const aot_str_t k = map->pairs[i].key->text;
    if (k.size == size && memcmp(k.data, key, size) == 0) return map->pairs[i].value;
  }
  return NULL;
}

/* Room for one more row in an array of an arena: old rows are left over. */
static void *grow(kit_arena_t *arena, void *rows, uint32_t n, uint32_t *capacity, size_t row_size) {
  if (n < *capacity) return rows;
  const uint32_t wanted = *capacity ? *capacity * 2 : 4;
  void *bigger = kit_arena_alloc(arena, sizeof(void *), wanted * row_size);
  if (!bigger) return NULL;
  if (n) memcpy(bigger, rows, n * row_size);
  *capacity = wanted;
  return bigger;
}

static int append_pair(kit_arena_t *arena, aoth_yaml_t *map, aoth_yaml_t *key, aoth_yaml_t *value) {
  aoth_yaml_pair_t *pairs = grow(arena, map->pairs, map->n, &map->capacity, sizeof *pairs);
  if (!pairs) return 0;
  map->pairs = pairs;
  pairs[map->n].key = key;
  pairs[map->n++].value = value;
  return 1;
}

static int append_item(kit_arena_t *arena, aoth_yaml_t *list, aoth_yaml_t *item) {
  aoth_yaml_t **items = grow(arena, list->items, list->n, &list->capacity, sizeof *items);
  if (!items) return 0;
  list->items = items;
  items[list->n++] = item;
  return 1;
}

int aoth_yaml_append(kit_arena_t *arena, aoth_yaml_t *list, aoth_yaml_t *item) {
  return append_item(arena, list, item);
}

int aoth_yaml_put(kit_arena_t *arena, aoth_yaml_t *map, aoth_yaml_t *key, aoth_yaml_t *value) {
  for (uint32_t i = 0; i < map->n; i++) {
    const aot_str_t k = map->pairs[i].key->text;
    if (k.size == key->text.size && memcmp(k.data, key->text.data, (size_t)k.size) == 0) {
      map->pairs[i].key = key;
      map->pairs[i].value = value;
      return 1;
    }
  }
  return append_pair(arena, map, key, value);
}

aoth_yaml_t *aoth_yaml_scalar(kit_arena_t *arena, const aoth_yaml_t *like, const char *text, size_t size) {
  aoth_yaml_t *node = kit_arena_copy(arena, sizeof(void *), like, sizeof *like);
  if (!node) return NULL;
  node->kind = AOTH_YAML_SCALAR;
  node->quoted = 0;
  node->n = node->capacity = 0;
  node->items = NULL;
  node->pairs = NULL;
  node->text.data = kit_arena_text(arena, text, size);
  node->text.size = size;
  return node->text.data ? node : NULL;
}

aoth_yaml_t *aoth_yaml_literal(kit_arena_t *arena, const char *name, const char *text) {
  aoth_yaml_file_t *file = kit_arena_alloc(arena, sizeof(void *), sizeof *file);
  aoth_yaml_t *node = kit_arena_alloc(arena, sizeof(void *), sizeof *node);
  if (!file || !node) return NULL;
  file->name = kit_arena_text(arena, name, strlen(name));
  file->dir = ".";
  file->text = kit_arena_text(arena, text, strlen(text));
  file->size = strlen(text);
  if (!file->name || !file->text || !make_lines(arena, file)) return NULL;
  *node = (aoth_yaml_t){
      .kind = AOTH_YAML_SCALAR,
      .quoted = 1,
      .text = {file->text, file->size},
      .file = file,
      .line = 1,
      .column = 1,
      .end_column = (uint32_t)file->size + 1,
      .expanded = 1,
  };
  return node;
}

aoth_yaml_t *aoth_yaml_map(kit_arena_t *arena, const aoth_yaml_t *like) {
  aoth_yaml_t *node = kit_arena_copy(arena, sizeof(void *), like, sizeof *like);
  if (!node) return NULL;
  node->kind = AOTH_YAML_MAP;
  node->quoted = 0;
  node->n = node->capacity = 0;
  node->items = NULL;
  node->pairs = NULL;
  node->text.data = "";
  node->text.size = 0;
  return node;
}

/* Recursion is bounded by MAX_DEPTH, which the reader has enforced. */
aoth_yaml_t *aoth_yaml_copy(kit_arena_t *arena, const aoth_yaml_t *node) {
  aoth_yaml_t *copy = kit_arena_copy(arena, sizeof(void *), node, sizeof *node);
  if (!copy) return NULL;
  copy->items = NULL;
  copy->pairs = NULL;
  copy->n = copy->capacity = 0;
  for (uint32_t i = 0; i < node->n; i++) {
    if (node->kind == AOTH_YAML_LIST) {
      aoth_yaml_t *item = aoth_yaml_copy(arena, node->items[i]);
      if (!item || !append_item(arena, copy, item)) return NULL;
    } else {
      aoth_yaml_t *key = aoth_yaml_copy(arena, node->pairs[i].key);
      aoth_yaml_t *value = aoth_yaml_copy(arena, node->pairs[i].value);
      if (!key || !value || !append_pair(arena, copy, key, value)) return NULL;
    }
  }
  return copy;
}

static uint32_t count_nodes(const aoth_yaml_t *node) {
  uint32_t n = 1;
  for (uint32_t i = 0; i < node->n; i++)
    n += node->kind == AOTH_YAML_LIST ? count_nodes(node->items[i]) : 1 + count_nodes(node->pairs[i].value);
  return n;
}

/* Levels below and including node: an alias must not carry the tree beyond MAX_DEPTH. */
static uint32_t height(const aoth_yaml_t *node) {
  uint32_t h = 0;
  for (uint32_t i = 0; i < node->n; i++) {
    const uint32_t below = height(node->kind == AOTH_YAML_LIST ? node->items[i] : node->pairs[i].value);
    h = below > h ? below : h;
  }
  return h + 1;
}

/* ---- reading ---- */

static void complain(reader_t *r, const yaml_mark_t *mark, const char *code, const char *message) {
  const uint32_t line = (uint32_t)mark->line + 1, column = byte_column(r->file, line, mark->column);
  const aoth_where_t w = where_at(r->arena, r->file, line, column, column + 1);
  aoth_sink_report(r->sink, AOT_SEVERITY_ERROR, &w, code, "%s", message);
  r->failed = 1;
}

static void fail(reader_t *r, const yaml_mark_t *mark, const char *code, const char *message) {
  complain(r, mark, code, message);
  r->stopped = 1;
}

static void fail_memory(reader_t *r) {
  aoth_sink_report(r->sink, AOT_SEVERITY_ERROR, NULL, "pipeline.memory", "%s: no memory for its tree", r->file->name);
  r->failed = r->stopped = 1;
}

static aoth_yaml_t *node_make(reader_t *r, int32_t kind, const yaml_event_t *e) {
  if (++r->n_nodes > MAX_NODES) {
    fail(r, &e->start_mark, "pipeline.too-big", "too many values; a pipeline file can have 20000");
    return NULL;
  }
  aoth_yaml_t *node = kit_arena_alloc(r->arena, sizeof(void *), sizeof *node);
  if (!node) {
    fail_memory(r);
    return NULL;
  }
  node->kind = kind;
  node->file = r->file;
  node->line = (uint32_t)e->start_mark.line + 1;
  node->column = byte_column(r->file, node->line, e->start_mark.column);
  node->end_column = node->column + 1;
  if (kind == AOTH_YAML_SCALAR && e->end_mark.line == e->start_mark.line) {
    const uint32_t end = byte_column(r->file, node->line, e->end_mark.column);
    if (end > node->column) node->end_column = end;
  }
  node->text.data = "";
  return node;
}

/* A finished node takes its place in the open collection. */
static void place(reader_t *r, aoth_yaml_t *node, const yaml_event_t *e) {
  if (r->depth == 0) {
    r->root = node;
    return;
  }
  struct level *top = &r->stack[r->depth - 1];
  if (top->node->kind == AOTH_YAML_LIST) {
    if (!append_item(r->arena, top->node, node)) fail_memory(r);
  } else if (!top->key) {
    if (node->kind != AOTH_YAML_SCALAR) {
      fail(r, &e->start_mark, "pipeline.key", "a key must be a single word, not a list or a map");
    } else if (!node->quoted && node->text.size == 2 && memcmp(node->text.data, "<<", 2) == 0) {
      fail(r, &e->start_mark, "pipeline.merge-key",
           "merge keys (<<) are not part of the pipeline language; use include: or an alias");
    } else {
      for (uint32_t i = 0; i < top->node->n; i++) {
        const aoth_yaml_t *other = top->node->pairs[i].key;
        if (other->text.size != node->text.size ||
            memcmp(other->text.data, node->text.data, (size_t)node->text.size) != 0)
          continue;
        const aoth_where_t w = aoth_yaml_where(r->arena, node), first = aoth_yaml_where(r->arena, other);
        aoth_sink_report(r->sink, AOT_SEVERITY_ERROR, &w, "pipeline.duplicate-key", "'%s' is defined twice",
                         node->text.data);
        aoth_sink_report(r->sink, AOT_SEVERITY_NOTE, &first, "pipeline.duplicate-key", "first defined here");
        r->failed = 1;
        break;
      }
    }
    top->key = node;
  } else {
    if (!append_pair(r->arena, top->node, top->key, node)) fail_memory(r);
    top->key = NULL;
  }
}

static void remember_anchor(reader_t *r, const char *name, aoth_yaml_t *node) {
  if (!name) return;
  anchor_t *a = kit_arena_alloc(r->arena, sizeof(void *), sizeof *a);
  if (!a) {
    fail_memory(r);
    return;
  }
  a->name = name;
  a->node = node;
  a->next = r->anchors; /* the latest of a name counts, as YAML says */
  r->anchors = a;
}

static const char *anchor_text(reader_t *r, const yaml_char_t *name) {
  return name ? kit_arena_text(r->arena, (const char *)name, strlen((const char *)name)) : NULL;
}

static void on_scalar(reader_t *r, const yaml_event_t *e) {
  if (e->data.scalar.tag) complain(r, &e->start_mark, "pipeline.tag", NO_TAGS);
  aoth_yaml_t *node = node_make(r, AOTH_YAML_SCALAR, e);
  if (!node) return;
  const char *text = (const char *)e->data.scalar.value;
  if (memchr(text, 0, e->data.scalar.length))
    complain(r, &e->start_mark, "pipeline.nul", "a string cannot contain a NUL character");
  node->quoted = e->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
  node->text.data = kit_arena_text(r->arena, text, e->data.scalar.length);
  node->text.size = e->data.scalar.length;
  if (!node->text.data) {
    fail_memory(r);
    return;
  }
  remember_anchor(r, anchor_text(r, e->data.scalar.anchor), node);
  place(r, node, e);
}

static void on_begin(reader_t *r, int32_t kind, const yaml_char_t *tag, const yaml_char_t *anchor,
                     const yaml_event_t *e) {
  if (tag) complain(r, &e->start_mark, "pipeline.tag", NO_TAGS);
  if (r->depth == MAX_DEPTH) {
    fail(r, &e->start_mark, "pipeline.too-deep", "nested too deeply: 64 levels are the limit");
    return;
  }
  aoth_yaml_t *node = node_make(r, kind, e);
  if (!node) return;
  r->stack[r->depth].node = node;
  r->stack[r->depth].key = NULL;
  r->stack[r->depth++].anchor = anchor_text(r, anchor);
}

static void on_end(reader_t *r, const yaml_event_t *e) {
  const struct level top = r->stack[--r->depth];
  remember_anchor(r, top.anchor, top.node); /* only now: an alias inside it would be endless */
  place(r, top.node, e);
}

static void on_alias(reader_t *r, const yaml_event_t *e) {
  const char *name = (const char *)e->data.alias.anchor;
  anchor_t *a = r->anchors;
  while (a && strcmp(a->name, name) != 0) a = a->next;
  if (!a) {
    fail(r, &e->start_mark, "pipeline.alias", "undefined anchor; it must name a complete value earlier in the file");
    return;
  }
  const uint32_t n = count_nodes(a->node);
  if (n > MAX_NODES - r->n_nodes || height(a->node) + r->depth > MAX_DEPTH) {
    fail(r, &e->start_mark, "pipeline.too-big",
         "file too large after alias expansion; the limits are 20000 values and 64 levels");
    return;
  }
  r->n_nodes += n;
  aoth_yaml_t *copy = aoth_yaml_copy(r->arena, a->node);
  if (copy) place(r, copy, e);
  else fail_memory(r);
}

static void on_event(reader_t *r, const yaml_event_t *e) {
  switch (e->type) {
    case YAML_DOCUMENT_START_EVENT:
      if (++r->n_documents > 1)
        fail(r, &e->start_mark, "pipeline.documents", "second YAML document; a file can have only one pipeline");
      break;
    case YAML_SCALAR_EVENT: on_scalar(r, e); break;
    case YAML_SEQUENCE_START_EVENT:
      on_begin(r, AOTH_YAML_LIST, e->data.sequence_start.tag, e->data.sequence_start.anchor, e);
      break;
    case YAML_MAPPING_START_EVENT:
      on_begin(r, AOTH_YAML_MAP, e->data.mapping_start.tag, e->data.mapping_start.anchor, e);
      break;
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT: on_end(r, e); break;
    case YAML_ALIAS_EVENT: on_alias(r, e); break;
    default: break;
  }
}

/* libyaml's own complaint, with the place it means. */
static void report_parser(reader_t *r, const yaml_parser_t *p) {
  yaml_mark_t mark = p->problem_mark;
  if (p->error == YAML_READER_ERROR) { /* knows a byte offset only */
    uint32_t line = 1;
    while (line < r->file->n_lines && r->file->lines[line] <= p->problem_offset) line++;
    const uint32_t column = (uint32_t)(p->problem_offset - r->file->lines[line - 1]) + 1;
    const aoth_where_t w = {r->file->name, line, column, column + 1, NULL}; /* the line is not text: do not show it */
    aoth_sink_report(r->sink, AOT_SEVERITY_ERROR, &w, "pipeline.yaml", "invalid YAML: %s",
                     p->problem ? p->problem : "invalid bytes");
  } else {
    kit_text_t text = {0};
    kit_text_f(&text, "invalid YAML: %s", p->problem ? p->problem : "unexpected end of file");
    if (p->context) kit_text_f(&text, ", %s that began at line %zu", p->context, p->context_mark.line + 1);
    fail(r, &mark, "pipeline.yaml", text.data ? text.data : "invalid YAML");
    const uint32_t line = (uint32_t)mark.line + 1;
    const char *at = line <= r->file->n_lines ? r->file->text + r->file->lines[line - 1] : "",
               *variable = strstr(at, "${");
    if (variable && (size_t)(variable - r->file->text) < line_end(r->file, line))
      aoth_sink_line(r->sink, "hint: quote a variable inside { } and [ ]: \"${name}\"");
    kit_text_deinit(&text);
  }
  r->failed = r->stopped = 1;
}

static void read_events(reader_t *r) {
  yaml_parser_t parser;
  if (!yaml_parser_initialize(&parser)) {
    fail_memory(r);
    return;
  }
  yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
  yaml_parser_set_input_string(&parser, (const unsigned char *)r->file->text, r->file->size);
  for (int done = 0; !done && !r->stopped;) {
    yaml_event_t event;
    if (!yaml_parser_parse(&parser, &event)) {
      report_parser(r, &parser);
      break;
    }
    done = event.type == YAML_STREAM_END_EVENT;
    on_event(r, &event);
    yaml_event_delete(&event);
  }
  yaml_parser_delete(&parser);
}

aot_status_t aoth_yaml_parse(kit_arena_t *arena, const char *name, const char *dir, const char *text, size_t size,
                             const aoth_yaml_file_t *includer, uint32_t include_line, aoth_sink_t *sink,
                             aoth_yaml_t **out) {
  *out = NULL;
  if (size > MAX_BYTES) {
    aoth_sink_report(sink, AOT_SEVERITY_ERROR, NULL, "pipeline.too-big",
                     "%s: file too large (%zu bytes); the limit is %u", name, size, MAX_BYTES);
    return AOT_E_INVALID;
  }
  if (size >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) { /* a byte order mark says nothing in UTF-8 */
    text += 3;
    size -= 3;
  }
  aoth_yaml_file_t *file = kit_arena_alloc(arena, sizeof(void *), sizeof *file);
  reader_t *r = kit_arena_alloc(arena, sizeof(void *), sizeof *r);
  if (!file || !r) return AOT_E_EXHAUSTED;
  file->name = kit_arena_text(arena, name, strlen(name));
  file->dir = kit_arena_text(arena, dir, strlen(dir));
  file->text = kit_arena_text(arena, text, size);
  file->size = size;
  file->includer = includer;
  file->include_line = include_line;
  if (!file->name || !file->dir || !file->text || !make_lines(arena, file)) return AOT_E_EXHAUSTED;
  r->arena = arena;
  r->sink = sink;
  r->file = file;
  read_events(r);
  if (!r->root && !r->failed) {
    const aoth_where_t w = {file->name, 1, 1, 1, NULL};
    aoth_sink_report(sink, AOT_SEVERITY_ERROR, &w, "pipeline.empty", "the file is empty");
    return AOT_E_INVALID;
  }
  if (!r->stopped) *out = r->root;
  return r->failed ? AOT_E_INVALID : AOT_OK;
}
