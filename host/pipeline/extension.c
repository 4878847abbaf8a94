/* The extensions that a unit offers by its table, whatever its kind. */
#include <pipeline/session.h>

#include <aot/inline.h>
#include <string.h>

static const void *offered(const aoth_instance_t *i, const char *id) {
  const char *kind = i->unit->kind;
  if (strcmp(kind, "pass/1") == 0) return i->table.pass.get_ext ? i->table.pass.get_ext(i->self, id) : NULL;
  if (strcmp(kind, "partition/1") == 0) return i->table.partition.get_ext ? i->table.partition.get_ext(i->self, id) : NULL;
  if (strcmp(kind, "backend/2") == 0) return i->table.backend.get_ext ? i->table.backend.get_ext(i->self, id) : NULL;
  if (strcmp(kind, "import/1") == 0) return i->table.import.get_ext ? i->table.import.get_ext(i->self, id) : NULL;
  if (strcmp(kind, "opset/1") == 0) return i->table.opset.get_ext ? i->table.opset.get_ext(i->self, id) : NULL;
  return NULL;
}

aot_status_t aoth_instance_extension(const aoth_instance_t *i, const char *id, void *out, uint32_t size) {
  const void *given = offered(i, id);
  return given ? aot_import(out, size, given) : AOT_E_NOT_FOUND;
}
