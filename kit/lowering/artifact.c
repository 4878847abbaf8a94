#include "artifact.h"

#include "lower.h"
#include <stdlib.h>
#include <string.h>

enum { VERSION = 1 };
typedef struct head {
  uint32_t magic, version;
  uint64_t snapshot_at, snapshot_nbytes;
} head_t;

aot_status_t lw_write_artifact(const aot_snapshot_t *s, uint32_t magic, const aot_bytes_sink_t *sink) {
  const head_t head = {magic, VERSION, sizeof head, s->nbytes};
  AOT_TRY(sink->write(sink, &head, sizeof head));
  return sink->write(sink, s, s->nbytes);
}

aot_status_t lw_read_artifact(const void *bytes, uint64_t nbytes, uint32_t magic, const char *backend,
                              const aot_snapshot_t **out, void **own, lw_error_t *e) {
  head_t head;
  sn_error_t wrong;
  if (nbytes >= sizeof head) memcpy(&head, bytes, sizeof head);
  if (nbytes < sizeof head || head.magic != magic)
    return lw_fail(e, AOT_E_DATA_LOSS, "bad-artifact", "these %llu bytes are no artifact of %s",
                   (unsigned long long)nbytes, backend);
  if (head.version != VERSION)
    return lw_fail(e, AOT_E_TOO_NEW, "bad-artifact", "the artifact has version %u, not %u", head.version, VERSION);
  if (head.snapshot_at > nbytes || head.snapshot_at % 8 || head.snapshot_nbytes > nbytes - head.snapshot_at)
    return lw_fail(e, AOT_E_DATA_LOSS, "bad-artifact", "the artifact of %llu bytes is cut short",
                   (unsigned long long)nbytes);
  const char *block = (const char *)bytes + head.snapshot_at;
  if ((uintptr_t)block % 8) {
    *own = malloc((size_t)head.snapshot_nbytes);
    if (!*own) return lw_no_memory(e, "for %llu bytes", (unsigned long long)head.snapshot_nbytes);
    block = memcpy(*own, block, (size_t)head.snapshot_nbytes);
  }
  aot_status_t status = sn_check(block, head.snapshot_nbytes, out, &wrong);
  return status == AOT_OK ? AOT_OK : lw_fail(e, status, "bad-artifact", "%s", wrong.text);
}
