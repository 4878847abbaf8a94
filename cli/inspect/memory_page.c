/* The page around the picture: tables of holders, and a tip that follows the pointer. */
#include <cli/inspect/memory_plot.h>

#include <cli/base/html_page.h>
#include <cli/base/svg.h>
#include <aot/status.h>

const char *aoth_memory_style(void) {
  return "#am-tip{position:fixed;display:none;white-space:pre;pointer-events:none;padding:6px "
         "9px;border-radius:5px;background:#222;color:#fff;"
         "font:12px system-ui,sans-serif;box-shadow:0 2px 8px #0006;z-index:9} .am{max-width:100%;height:auto}\n"
         ".am-table i{display:inline-block;width:10px;height:10px;margin-right:6px}\n"
         ".am-table .input{background:#a3a8ae}.am-table .output{background:#3a9a4d}.am-table .saved{background:#4477aa}"
         ".am-table .gradient{background:#aa4488}.am-table .temporary{background:#d6b845}.am-table "
         ".scratch{background:#66bbdd}\n";
}

/* Titles become tips, so that the browser's own do not show as well. */
const char *aoth_memory_script(void) {
  return "<div id=\"am-tip\"></div>\n<script>\n"
         "(function(){var tip=document.getElementById('am-tip');\n"
         "document.querySelectorAll('.am-a').forEach(function(e){var t=e.querySelector('title');if(!t)return;\n"
         "var s=t.textContent;t.remove();\n"
         "e.addEventListener('mousemove',function(v){tip.textContent=s;tip.style.display='block';\n"
         "var w=tip.offsetWidth,h=tip.offsetHeight,x=v.clientX+14,y=v.clientY+14;\n"
         "if(x+w>innerWidth)x=v.clientX-w-10;if(y+h>innerHeight)y=v.clientY-h-10;\n"
         "tip.style.left=x+'px';tip.style.top=y+'px'});\n"
         "e.addEventListener('mouseleave',function(){tip.style.display='none'})})})();\n"
         "</script>\n";
}

void aoth_memory_table(const aoth_memory_report_t *r, const aoth_memory_view_t *v, kit_text_t *out) {
  char text[AOTH_BYTES_SIZE];
  kit_text_z(out, "<table class=\"am-table\">\n<tr><th class=\"n\">size</th><th>kind</th><th class=\"n\">steps</th>"
                  "<th>type</th><th>value</th><th>operator</th><th>module</th></tr>\n");
  for (uint32_t i = 0; i < v->n_largest && i < r->top; i++) {
    const aoth_holder_t *h = &v->holders[v->largest[i]];
    kit_text_z(out, "<tr>");
    aoth_html_cell(out, "n", aoth_bytes_text(h->nbytes, text));
    kit_text_f(out, "<td><i class=\"%s\"></i>%s</td>", aoth_memory_kind(h->kind), aoth_memory_kind(h->kind));
    kit_text_f(out, "<td class=\"n\">%llu to %llu</td>", (unsigned long long)h->first + 1,
               (unsigned long long)h->last + 1);
    aoth_html_cell(out, "t", h->type);
    aoth_html_cell(out, "t", h->name);
    aoth_html_cell(out, "t", h->op);
    aoth_html_cell(out, "t", h->module);
    kit_text_z(out, "</tr>\n");
  }
  if (v->n_largest > r->top)
    kit_text_f(out, "<tr><td></td><td colspan=\"6\">and %u smaller ones</td></tr>\n", v->n_largest - r->top);
  kit_text_z(out, "</table>\n");
}

static void section(const aoth_memory_report_t *r, const aoth_memory_view_t *v, kit_text_t *out) {
  char held[AOTH_BYTES_SIZE], alive[AOTH_BYTES_SIZE], budget[AOTH_BYTES_SIZE];
  aoth_html_element(out, "h2", v->title);
  kit_text_f(out, "\n<p>Held at most: %s. Alive at most: %s, at step %llu of %llu",
             aoth_bytes_text(v->plan.peak_nbytes, held), aoth_bytes_text(v->peak_alive, alive),
             (unsigned long long)v->plan.peak_step + 1, (unsigned long long)v->plan.n_steps);
  if (*v->peak_at) {
    kit_text_z(out, " (");
    aoth_xml_escape(out, v->peak_at);
    kit_text_z(out, ")");
  }
  if (r->budget)
    kit_text_f(out, ". Budget: %s, %s", aoth_bytes_text(r->budget, budget),
               v->plan.peak_nbytes <= r->budget ? "kept" : "exceeded");
  kit_text_z(out, ". The largest at that step:</p>\n");
  aoth_memory_table(r, v, out);
}

aot_status_t aoth_memory_html(const aoth_memory_report_t *r, kit_text_t *out) {
  kit_text_t title = {0};
  kit_text_f(&title, "Memory of a training step: %s", r->file);
  aoth_html_begin(out, title.data ? title.data : "", aoth_memory_style());
  kit_text_deinit(&title);
  aoth_html_element(out, "h1", "Memory of a training step");
  AOT_TRY(aoth_memory_svg(r, out));
  for (uint32_t i = 0; i < r->n_views; i++) section(r, &r->views[i], out);
  kit_text_z(out, aoth_memory_script());
  aoth_html_end(out);
  return out->failed ? AOT_E_EXHAUSTED : AOT_OK;
}
