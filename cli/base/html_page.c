#include <cli/base/html_page.h>

#include <base/file.h>
#include <cli/base/svg.h>

static const char common_style[] =
    "body{margin:2em;font:14px system-ui,sans-serif;background:#fff;color:#222}\n"
    "table{border-collapse:collapse;margin:.5em 0 2em;font-size:13px}\n"
    "th,td{padding:3px 10px;text-align:left;border-bottom:1px solid #8884;white-space:nowrap}\n"
    "td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}\n"
    "td.t{font-family:ui-monospace,Menlo,Consolas,monospace;font-size:12px}\n"
    "@media (prefers-color-scheme:dark){body{background:#15181c;color:#e8e8e8}}\n"
    "@media print{body{background:#fff;color:#000}}\n";

void aoth_html_begin(kit_text_t *out, const char *title, const char *style) {
  kit_text_z(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
                  "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n");
  aoth_html_element(out, "title", title);
  kit_text_f(out, "\n<style>\n%s%s</style>\n</head>\n<body>\n", common_style, style);
}

void aoth_html_end(kit_text_t *out) { kit_text_z(out, "</body>\n</html>\n"); }

void aoth_html_element(kit_text_t *out, const char *tag, const char *text) {
  kit_text_f(out, "<%s>", tag);
  aoth_xml_escape(out, text);
  kit_text_f(out, "</%s>", tag);
}

void aoth_html_cell(kit_text_t *out, const char *classes, const char *text) {
  kit_text_f(out, *classes ? "<td class=\"%s\">" : "<td>%s", classes);
  aoth_xml_escape(out, text);
  kit_text_z(out, "</td>");
}

aot_status_t aoth_page_write(const kit_text_t *page, const char *path, aoth_sink_t *sink) {
  if (page->failed) {
    aoth_sink_report(sink, AOT_SEVERITY_ERROR, NULL, "page.memory", "no memory for the page %s", path);
    return AOT_E_EXHAUSTED;
  }
  aoth_writer_t *w = aoth_writer_begin(path, sink);
  if (!w) return AOT_E_INVALID;
  aoth_writer_write(w, page->data ? page->data : "", page->size);
  return aoth_writer_commit(w);
}
