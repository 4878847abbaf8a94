/* Leaves, boundary rules and origins: what a program declares next to its graphs. */
#include <aot/assert.h>
#include <aot/ext/leaf_part.h>
#include <aot/inline.h>
#include <ir/program_store.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

static aot_status_t too_new(aot_prog_t *p, const char *what) {
  return aoth_diagnose(p, AOT_E_TOO_NEW, "ir.too-new", "%s is made for a newer host", what);
}

/* Bytes that a storage needs to hold a tensor of this type; 0 when a dimension is symbolic or an empty tensor. */
static aot_status_t storage_nbytes(aot_prog_t *p, const aot_type_t *t, uint64_t *out) {
  uint64_t last = (uint64_t)t->offset;
  *out = 0;
  if (AOT_DIM_IS_SYM(t->offset)) return AOT_OK;
  for (int32_t i = 0; i < t->rank; i++) {
    uint64_t reach;
    if (AOT_DIM_IS_SYM(t->sizes[i]) || AOT_DIM_IS_SYM(t->strides[i]) || t->sizes[i] == 0) return AOT_OK;
    if (__builtin_mul_overflow((uint64_t)t->sizes[i] - 1, (uint64_t)t->strides[i], &reach) ||
        __builtin_add_overflow(last, reach, &last))
      return aoth_diagnose(p, AOT_E_RANGE, "ir.bad-type", "a tensor's last element lies beyond 2^64");
  }
  if (__builtin_add_overflow(last, 1, &last) || __builtin_mul_overflow(last, aot_dtype_size(t->dtype), out))
    return aoth_diagnose(p, AOT_E_RANGE, "ir.bad-type", "a tensor's last element lies beyond 2^64");
  return AOT_OK;
}

static aot_status_t check_leaf(aot_prog_t *p, const aot_leaf_info_t *l) {
  uint64_t needed;
  if (l->role < AOT_ROLE_PARAMETER || l->role > AOT_ROLE_STATE)
    return aoth_diagnose(p, AOT_E_INVALID, "ir.bad-role", "%s is not a role of leaves", aoth_role_name(l->role));
  if (l->n_names && !l->names)
    return aoth_diagnose(p, AOT_E_INVALID, "ir.bad-leaf", "%u names, but no array of them", l->n_names);
  if (!l->data) return AOT_OK;
  AOT_TRY(storage_nbytes(p, &l->type, &needed));
  if (needed <= l->nbytes) return AOT_OK;
  aot_str_t name = {"?", 1};
  if (l->n_names) name = l->names[0];
  return aoth_diagnose(p, AOT_E_INVALID, "ir.bad-leaf", "the data of leaf \"%.*s\" has %llu bytes; its type needs %llu",
                       STR_ARGS(name), (unsigned long long)l->nbytes, (unsigned long long)needed);
}

static const aot_str_t *copy_names(aot_prog_t *p, const aot_str_t *names, uint32_t n) {
  aot_str_t *copies = kit_arena_alloc(p->store, 8, (n + 1) * sizeof *copies);
  for (uint32_t i = 0; copies && i < n; i++) {
    copies[i] = aoth_store_text(p, names[i]);
    if (names[i].size && !copies[i].data) return NULL;
  }
  return copies;
}

void aoth_prog_leaf_data(aot_prog_t *p, aot_leaf_t leaf, const void *data, uint64_t nbytes) {
  if (!leaf.id || leaf.id >= p->leaves.n) return;
  p->leaves.at[leaf.id].data = data;
  p->leaves.at[leaf.id].nbytes = nbytes;
}

aot_status_t aoth_edit_leaf_create(aot_prog_t *p, const aot_leaf_info_t *leaf, aot_leaf_t *out) {
  aot_leaf_info_t l;
  uint32_t type;
  if (aot_import(&l, sizeof l, leaf) != AOT_OK) return too_new(p, "a leaf");
  l.struct_size = (uint32_t)sizeof l;
  if (l.type.kind == AOT_TYPE_TENSOR && (l.flags & AOT_LEAF_REQUIRES_GRAD)) l.type.flags |= AOT_TYPE_REQUIRES_GRAD;
  if (l.type.kind == AOT_TYPE_TENSOR && (l.type.flags & AOT_TYPE_REQUIRES_GRAD)) l.flags |= AOT_LEAF_REQUIRES_GRAD;
  AOT_TRY(aoth_type_intern(p, &l.type, &type));
  l.type = p->types.at[type];
  if (!l.nbytes) l.data = NULL;
  if (!l.data) l.nbytes = 0;
  AOT_ASSERT(!l.data == !l.nbytes);
  AOT_ASSERT(l.type.kind != AOT_TYPE_TENSOR ||
             !(l.flags & AOT_LEAF_REQUIRES_GRAD) == !(l.type.flags & AOT_TYPE_REQUIRES_GRAD));
  if (l.role != AOT_ROLE_USER_INPUT) l.ordinal = 0;
  l.reserved = 0;
  AOT_TRY(check_leaf(p, &l));
  l.names = copy_names(p, l.names, l.n_names);
  if (!l.names || !ROWS_ROOM(p->leaves, 1)) return aoth_no_memory(p, "a leaf", sizeof l);
  AOT_TRY(aoth_edit_begin(p));
  out->id = p->leaves.n;
  p->leaves.at[p->leaves.n++] = l;
  aoth_edit_record(p, EDIT_LEAF_CREATE, out->id, 0, 0, 0, 0, NULL);
  return AOT_OK;
}

aot_status_t aoth_edit_leaf_part(aot_prog_t *p, aot_leaf_t leaf, const aot_type_t *type, const void *data,
                                 uint64_t nbytes) {
  uint32_t id;
  if (!leaf.id || leaf.id >= p->leaves.n)
    return aoth_diagnose(p, AOT_E_RANGE, "ir.bad-id", "there is no leaf %u", leaf.id);
  aot_leaf_info_t l = p->leaves.at[leaf.id];
  if (l.role != AOT_ROLE_PARAMETER)
    return aoth_diagnose(p, AOT_E_INVALID, "ir.leaf-part", "parts are taken of parameters, not of a %s",
                         aoth_role_name(l.role));
  const aot_leaf_info_t *old = kit_arena_copy(p->store, 8, &l, sizeof l);
  if (!old) return aoth_no_memory(p, "a leaf", sizeof l);
  AOT_TRY(aoth_type_intern(p, type, &id));
  l.flags |= AOT_LEAF_PART | (l.type.rank ? (uint32_t)l.type.sizes[0] << AOT_LEAF_PART_ROWS_SHIFT : 0);
  l.type = p->types.at[id];
  l.data = nbytes ? data : NULL;
  l.nbytes = l.data ? nbytes : 0;
  AOT_TRY(check_leaf(p, &l));
  AOT_TRY(aoth_edit_begin(p));
  p->leaves.at[leaf.id] = l;
  aoth_edit_record(p, EDIT_LEAF_PART, leaf.id, 0, 0, 0, 0, old);
  return AOT_OK;
}

/* ---- boundary rules ---- */
#define USES_B 1u
#define USES_GEOMETRY 2u
#define A_IS_LEAF 4u
#define B_IS_LEAF 8u

static uint32_t rule_uses(int32_t kind) {
  switch (kind) {
    case AOT_RULE_COPY_BACK: return A_IS_LEAF;
    case AOT_RULE_RESTRIDE: return A_IS_LEAF | USES_GEOMETRY;
    case AOT_RULE_SAME_INPUT: return USES_B | B_IS_LEAF;
    case AOT_RULE_VIEW_INPUT: return USES_B | B_IS_LEAF | USES_GEOMETRY;
    case AOT_RULE_ENTRY_SAME: return A_IS_LEAF | USES_B | B_IS_LEAF;
    case AOT_RULE_ENTRY_VIEW: return A_IS_LEAF | USES_B | B_IS_LEAF | USES_GEOMETRY;
    case AOT_RULE_SAME_OUTPUT: return USES_B;
    case AOT_RULE_VIEW_OUTPUT:
    case AOT_RULE_VIEW_BASE: return USES_B | USES_GEOMETRY;
    default: return 0;
  }
}

int aoth_rule_has_b(int32_t kind) { return (rule_uses(kind) & USES_B) != 0; }
int aoth_rule_a_is_leaf(int32_t kind) { return (rule_uses(kind) & A_IS_LEAF) != 0; }
int aoth_rule_b_is_leaf(int32_t kind) { return (rule_uses(kind) & B_IS_LEAF) != 0; }
uint32_t aoth_rule_a_number(const aot_rule_t *r) { return r->a - (uint32_t)aoth_rule_a_is_leaf(r->kind); }
uint32_t aoth_rule_b_number(const aot_rule_t *r) { return r->b - (uint32_t)aoth_rule_b_is_leaf(r->kind); }
int aoth_rule_has_geometry(int32_t kind) { return (rule_uses(kind) & USES_GEOMETRY) != 0; }

static aot_status_t rule_geometry(aot_prog_t *p, const aot_rule_t *rule, aot_rule_t *r) {
  uint32_t type;
  if (rule->dtype && ((rule_uses(rule->kind) & A_IS_LEAF) || aot_dtype_size(rule->dtype) == 0))
    return aoth_diagnose(p, AOT_E_RANGE, "ir.bad-rule", "rule %s cannot have dtype %d", aoth_rule_name(rule->kind),
                         (int)rule->dtype);
  aot_type_t t = {
      .kind = AOT_TYPE_TENSOR,
      .dtype = AOT_U8,
      .rank = rule->rank,
      .sizes = rule->sizes,
      .strides = rule->strides,
      .offset = rule->offset,
  };
  AOT_TRY(aoth_type_intern(p, &t, &type));
  AOT_ASSERT(p->types.at[type].kind == AOT_TYPE_TENSOR && p->types.at[type].rank == rule->rank);
  r->rank = rule->rank;
  r->dtype = rule->dtype;
  r->sizes = p->types.at[type].sizes;
  r->strides = p->types.at[type].strides;
  r->offset = rule->offset;
  return AOT_OK;
}

aot_status_t aoth_edit_rule_add(aot_prog_t *p, const aot_rule_t *rule) {
  uint32_t uses = rule_uses(rule->kind);
  aot_rule_t r = {.kind = rule->kind, .a = rule->a, .b = (uses & USES_B) ? rule->b : 0};
  if (!uses) return aoth_diagnose(p, AOT_E_RANGE, "ir.bad-rule", "there is no boundary rule %d", (int)rule->kind);
  const int bad_a = (uses & A_IS_LEAF) && (!r.a || r.a >= p->leaves.n),
            bad_b = (uses & B_IS_LEAF) && (!r.b || r.b >= p->leaves.n);
  if (bad_a || bad_b)
    return aoth_diagnose(p, AOT_E_RANGE, "ir.bad-id", "rule %s names leaf %u; there are %u", aoth_rule_name(r.kind),
                         (bad_a ? r.a : r.b) - 1, p->leaves.n - 1);
  if (uses & USES_GEOMETRY) AOT_TRY(rule_geometry(p, rule, &r));
  if (!ROWS_ROOM(p->rules, 1)) return aoth_no_memory(p, "a boundary rule", sizeof r);
  AOT_TRY(aoth_edit_begin(p));
  p->rules.at[p->rules.n++] = r;
  aoth_edit_record(p, EDIT_RULE_ADD, p->rules.n - 1, 0, 0, 0, 0, NULL);
  return AOT_OK;
}

/* ---- origins: equal ones are one row ---- */
static uint32_t origin_hash(const aot_origin_info_t *o) {
  XXH64_hash_t h = ((uint64_t)o->line << 32) | o->parent.id;
  const aot_str_t texts[3] = {o->source_file, o->module_path, o->node_name};
  for (int i = 0; i < 3; i++) h = XXH3_64bits_withSeed(texts[i].data, (size_t)texts[i].size, h + texts[i].size);
  return (uint32_t)h;
}

static int origin_same(const void *prog, uint32_t row, const void *key) {
  const aot_prog_t *p = prog;
  const aot_origin_info_t *a = &p->origins.at[row], *b = key;
  return a->line == b->line && a->parent.id == b->parent.id && aot_str_eq(a->source_file, b->source_file) &&
         aot_str_eq(a->module_path, b->module_path) && aot_str_eq(a->node_name, b->node_name);
}

aot_status_t aoth_edit_origin_create(aot_prog_t *p, const aot_origin_info_t *origin, aot_origin_t *out) {
  aot_origin_info_t o;
  if (aot_import(&o, sizeof o, origin) != AOT_OK) return too_new(p, "an origin");
  o.struct_size = (uint32_t)sizeof o;
  o.reserved = 0;
  if (o.parent.id != NONE && o.parent.id >= p->origins.n)
    return aoth_diagnose(p, AOT_E_RANGE, "ir.bad-id", "an origin's parent is %u; %u origins were made", o.parent.id,
                         p->origins.n - 1);
  uint32_t hash = origin_hash(&o);
  out->id = aoth_row_find(&p->origin_index, hash, origin_same, p, &o);
  if (out->id != NONE) return AOT_OK;
  aot_str_t *texts[3] = {&o.source_file, &o.module_path, &o.node_name};
  for (int i = 0; i < 3; i++) {
    *texts[i] = aoth_store_text(p, *texts[i]);
    if (texts[i]->size && !texts[i]->data) return aoth_no_memory(p, "an origin", texts[i]->size);
  }
  if (!ROWS_ROOM(p->origins, 1) || !kit_map_reserve(&p->origin_index, p->origin_index.n + 1))
    return aoth_no_memory(p, "an origin", sizeof o);
  AOT_TRY(aoth_edit_begin(p));
  out->id = p->origins.n;
  AOT_ASSERT(o.parent.id < out->id); /* chains of parents end */
  p->origins.at[p->origins.n] = o;
  kit_map_add(&p->origin_index, hash, p->origins.n++);
  aoth_edit_record(p, EDIT_ORIGIN_CREATE, out->id, 0, 0, 0, 0, NULL);
  return AOT_OK;
}

void aoth_origin_forget(aot_prog_t *p) {
  uint32_t row = --p->origins.n;
  AOT_ASSERT(row != NONE);
  kit_map_remove(&p->origin_index, origin_hash(&p->origins.at[row]), row);
}
