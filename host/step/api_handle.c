#include <step/api_handle.h>

#include <stdlib.h>
#include <string.h>

/* Hand on what was said during a call, and pass its status through. */
aot_status_t aoth_api_tell(aothost_t *h, aot_status_t status) {
  const char *text = h->owned ? aoth_sink_text(h->sink) : NULL;
  size_t size = text ? strlen(text) : 0;
  int32_t worst = AOT_SEVERITY_NOTE;
  if (size <= h->told) return status;
  for (int32_t severity = AOT_SEVERITY_NOTE; severity <= AOT_SEVERITY_ERROR; severity++) {
    uint32_t n = aoth_sink_count(h->sink, severity);
    if (n > h->counted[severity]) worst = severity;
    h->counted[severity] = n;
  }
  if (h->message) h->message(h->message_self, worst, text + h->told);
  h->told = size;
  return status;
}

aot_status_t aoth_api_refuse(aothost_t *h, aot_status_t status, const char *what) {
  aoth_sink_report(h->sink, AOT_SEVERITY_ERROR, NULL, "api.order", "%s", what);
  return aoth_api_tell(h, status);
}
