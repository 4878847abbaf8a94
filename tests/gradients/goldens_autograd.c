/* Goldens: NAME.ir through autograd is NAME.expect, a program or what was said against it.
 *
 * goldens_autograd FOLDER [--save] [NAME..]; --save writes the .expect files. The first lines of a .ir file are
 * comments that say what it shows. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grad_harness.h"

static char *read_all(const char *path) {
  FILE *f = fopen(path, "r");
  long size;
  char *text;
  if (!f) return NULL;
  fseek(f, 0, SEEK_END);
  size = ftell(f);
  rewind(f);
  text = calloc(1, (size_t)size + 1);
  if (text && fread(text, 1, (size_t)size, f) != (size_t)size) *text = '\0';
  fclose(f);
  return text;
}

/* Diagnostics name files of a temporary folder: leave the file names. */
static void put_without(kit_text_t *out, const char *text, const char *folder) {
  size_t n = strlen(folder);
  while (*text) {
    const char *at = strstr(text, folder);
    if (!at) at = text + strlen(text);
    kit_text_f(out, "%.*s", (int)(at - text), text);
    text = *at ? at + n + 1 : at;
  }
}

static void run(const char *ir, kit_text_t *out) {
  gh_prog_t p;
  if (gh_open(&p, ir, "autograd")) {
    if (*aoth_sink_text(p.sink)) put_without(out, aoth_sink_text(p.sink), p.folder);
    gh_print(&p, out);
  } else put_without(out, p.why, p.folder);
  gh_close(&p);
}

static int check(const char *folder, const char *name, int save) {
  char path[1024];
  char *ir, *want;
  kit_text_t got = {0};
  int ok = 1;
  snprintf(path, sizeof path, "%s/%s.ir", folder, name);
  if (!(ir = read_all(path))) return 0;
  run(ir, &got);
  snprintf(path, sizeof path, "%s/%s.expect", folder, name);
  if (save) {
    FILE *f = fopen(path, "w");
    if (f) ok = fputs(got.data, f) >= 0;
    if (f) fclose(f);
  } else {
    want = read_all(path);
    ok = want && strcmp(want, got.data) == 0;
    if (!ok) printf("FAILED %s\n--- expected\n%s\n--- got\n%s\n", name, want ? want : "(no .expect file)", got.data);
    free(want);
  }
  free(ir);
  kit_text_deinit(&got);
  return ok;
}

int main(int argc, char **argv) {
  const char *folder = argc > 1 ? argv[1] : ".";
  int save = 0, named = 0, n = 0, n_failed = 0;
  DIR *dir = opendir(folder);
  struct dirent *e;
  for (int i = 2; i < argc; i++) {
    save |= strcmp(argv[i], "--save") == 0;
    named |= *argv[i] != '-';
  }
  while (dir && (e = readdir(dir))) {
    char name[256];
    const char *dot = strrchr(e->d_name, '.');
    int wanted = !named;
    if (!dot || strcmp(dot, ".ir") != 0) continue;
    snprintf(name, sizeof name, "%.*s", (int)(dot - e->d_name), e->d_name);
    for (int i = 2; i < argc; i++) wanted |= strcmp(argv[i], name) == 0;
    if (!wanted) continue;
    n++;
    n_failed += !check(folder, name, save);
  }
  if (dir) closedir(dir);
  printf("%d goldens, %d failed\n", n, n_failed);
  return n_failed != 0 || n == 0;
}
