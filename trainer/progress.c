#include <trainer/progress.h>

#include <string.h>

#define LIVE_EVERY_NS UINT64_C(100000000)

void aoth_progress_duration(double seconds, char *out, size_t size) {
  if (!(seconds < 1e9)) snprintf(out, size, "?");
  else if (seconds < 60) snprintf(out, size, "%.0fs", seconds);
  else if (seconds < 3600) snprintf(out, size, "%dm %02ds", (int)(seconds / 60), (int)seconds % 60);
  else snprintf(out, size, "%dh %02dm", (int)(seconds / 3600), (int)(seconds / 60) % 60);
}

void aoth_progress_begin(aoth_progress_t *p, int64_t first_step, uint64_t now_ns) {
  p->began_ns = p->line_ns = p->live_ns = now_ns;
  p->first = p->line_step = first_step;
}

static double rate(const aoth_progress_t *p, int64_t steps, uint64_t ns) {
  return ns ? (double)steps * (double)p->items * 1e9 / (double)ns : 0;
}

static void show_live(aoth_progress_t *p, int64_t done, double loss, uint64_t now_ns) {
  char left[32];
  double per_step = (double)(now_ns - p->began_ns) / 1e9 / (double)(done - p->first);
  aoth_progress_duration(per_step * (double)(p->steps - done), left, sizeof left);
  fprintf(p->out, "\r\033[Kstep %lld/%lld  loss %.4f  %.0f %s/s  %s left", (long long)done, (long long)p->steps, loss,
          rate(p, done - p->first, now_ns - p->began_ns), p->unit, left);
  fflush(p->out);
  p->live_ns = now_ns;
}

void aoth_progress_step(aoth_progress_t *p, int64_t done, double loss, double lr, uint64_t now_ns) {
  if (!p->out) return;
  if (p->log_every && (done % p->log_every == 0 || done == p->steps || done == p->first + 1)) {
    fprintf(p->out, "%sstep %lld/%lld  loss %.4f  lr %.3g  %.0f %s/s\n", p->live ? "\r\033[K" : "", (long long)done,
            (long long)p->steps, loss, lr, rate(p, done - p->line_step, now_ns - p->line_ns), p->unit);
    fflush(p->out);
    p->line_step = done;
    p->line_ns = now_ns;
  }
  if (p->live && (now_ns - p->live_ns >= LIVE_EVERY_NS || done == p->first + 1)) show_live(p, done, loss, now_ns);
}

void aoth_progress_end(aoth_progress_t *p) {
  if (!p->out || !p->live) return;
  fprintf(p->out, "\r\033[K");
  fflush(p->out);
}
