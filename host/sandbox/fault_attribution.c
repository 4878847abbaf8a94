#include <sandbox/fault_attribution.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_CODES 512

/* Executable memory of a plugin, or of the host. */
typedef struct code {
  uint64_t begin, end;
  const aoth_plugin_t *plugin; /* NULL: the host */
} code_t;

typedef struct codes {
  code_t at[N_CODES];
  uint32_t n;
} codes_t;

static const aoth_plugin_t *plugin_of(const aoth_session_t *s, const char *path) {
  for (uint32_t i = 0; i < aoth_registry_n_plugins(s->registry); i++) {
    const aoth_plugin_t *p = aoth_registry_plugin(s->registry, i);
    if (p->state == AOTH_PLUGIN_OPEN && p->n_units && strcmp(p->path, path) == 0) return p;
  }
  return NULL;
}

/* /proc/self/maps: "55d0-55e0 r-xp 00000000 08:01 1234    /path" */
static void read_codes(const aoth_session_t *s, codes_t *out) {
  aoth_blame_t (*const host)(const aoth_session_t *, const aoth_unit_t *, const aoth_crash_t *) = aoth_blame;
  uintptr_t here;
  char *line = NULL;
  size_t capacity = 0;
  FILE *f = fopen("/proc/self/maps", "r");
  memcpy(&here, &host, sizeof here);
  while (f && out->n < N_CODES && getline(&line, &capacity, f) > 0) {
    code_t c = {.plugin = NULL};
    char mode[8] = "";
    int at = 0;
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %*s %*s %*s %n", &c.begin, &c.end, mode, &at) < 3) continue;
    if (mode[2] != 'x' || !at || line[at] != '/') continue;
    line[strcspn(line, "\n")] = 0;
    c.plugin = plugin_of(s, line + at);
    if (c.plugin || (here >= c.begin && here < c.end)) out->at[out->n++] = c;
  }
  free(line);
  if (f) fclose(f);
}

static const code_t *code_at(const codes_t *codes, uint64_t address) {
  for (uint32_t i = 0; i < codes->n; i++)
    if (address >= codes->at[i].begin && address < codes->at[i].end) return &codes->at[i];
  return NULL;
}

/* Where an operator's kernel can be reported, an opset of the plugin is to blame. */
static const aoth_unit_t *unit_of(const aoth_plugin_t *p, int is_opset) {
  for (uint32_t i = 0; i < p->n_units; i++)
    if ((strcmp(p->units[i].kind, "opset/1") == 0) == is_opset) return &p->units[i];
  return &p->units[0];
}

static aoth_blame_t blame_code(const aoth_session_t *s, const aoth_unit_t *called, const code_t *code,
                               uint64_t address) {
  const int is_run = strcmp(called->kind, "backend/2") == 0;
  if (!code->plugin || code->plugin == called->plugin) return (aoth_blame_t){.unit = NULL};
  const aot_str_t op = is_run ? aoth_ops_kernel_at(s->ops, code->begin, address) : (aot_str_t){NULL, 0};
  return (aoth_blame_t){unit_of(code->plugin, op.size > 0), op};
}

aoth_blame_t aoth_blame(const aoth_session_t *s, const aoth_unit_t *called, const aoth_crash_t *crash) {
  codes_t codes = {.n = 0};
  read_codes(s, &codes);
  const code_t *code = code_at(&codes, crash->pc);
  if (code) return blame_code(s, called, code, crash->pc);
  for (uint32_t i = 0; i < crash->n_callers; i++) {
    const uint64_t call = crash->callers[i] - 1; /* it may have been the last instruction of its function */
    code = code_at(&codes, call);
    if (code) return blame_code(s, called, code, call);
  }
  return (aoth_blame_t){.unit = NULL};
}
