/* NVIDIA's library as the sampler sees it, where there is no GPU: it gives the answers that stand in
   the file which RECORDED_GPU names (see recorded_driver.py for the lines), one card, and adds a
   letter to the file beside it whenever it is asked which processes compute. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef struct { unsigned long long total, free, used; } memory;
typedef struct { unsigned pid; unsigned long long bytes; unsigned instance, compute; } process;
typedef struct { unsigned gpu, memory; } use;
static int find(const char *name, char *rest, unsigned size) {
  char line[256];
  int found = 0;
  FILE *file = fopen(getenv("RECORDED_GPU"), "r");
  while (file && fgets(line, sizeof line, file)) {
    size_t length = strlen(name);
    if (strncmp(line, name, length) || line[length] != ' ') continue;
    line[strcspn(line, "\n")] = 0;
    snprintf(rest, size, "%s", line + length + 1);
    found = 1;
  }
  if (file) fclose(file);
  return found;
}
int nvmlInit_v2(void) { return getenv("RECORDED_GPU") ? 0 : 9; }
int nvmlDeviceGetCount_v2(unsigned *n) { *n = 1; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **d) { *d = (void *)8; return i ? 2 : 0; }
int nvmlDeviceGetHandleByUUID(const char *u, void **d) {
  char own[256] = "";
  find("uuid", own, sizeof own);
  *d = (void *)8;
  return strcmp(u, own) ? 2 : 0;
}
int nvmlDeviceGetUUID(void *d, char *text, unsigned size) { return find("uuid", text, size) ? 0 : 999; }
int nvmlDeviceGetName(void *d, char *text, unsigned size) { return find("model", text, size) ? 0 : 999; }
int nvmlDeviceGetUtilizationRates(void *d, use *u) {
  char text[256];
  if (!find("use", text, sizeof text)) return 3;
  return sscanf(text, "%u %u", &u->gpu, &u->memory) == 2 ? 0 : 999;
}
int nvmlDeviceGetComputeMode(void *d, unsigned *m) {
  char text[256];
  return find("mode", text, sizeof text) && sscanf(text, "%u", m) == 1 ? 0 : 999;
}
int nvmlDeviceGetMemoryInfo(void *d, memory *m) {
  char text[256];
  if (!find("memory", text, sizeof text)) return 999;
  return sscanf(text, "%llu %llu %llu", &m->total, &m->free, &m->used) == 3 ? 0 : 999;
}
static int list(const char *format, unsigned *n, process *out) {
  char line[256];
  process one;
  unsigned room = *n, count = 0;
  FILE *file = fopen(getenv("RECORDED_GPU"), "r");
  while (file && fgets(line, sizeof line, file)) {
    if (sscanf(line, format, &one.pid, &one.bytes, &one.instance, &one.compute) != 4) continue;
    if (count < room) out[count] = one;
    count++;
  }
  if (file) fclose(file);
  *n = count;
  return count > room ? 7 : 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void *d, unsigned *n, process *out) {
  char beside[4096];
  snprintf(beside, sizeof beside, "%s.asked", getenv("RECORDED_GPU"));
  FILE *file = fopen(beside, "a");
  if (file) { fputc('x', file); fclose(file); }
  return list("compute %u %llu %u %u", n, out);
}
int nvmlDeviceGetMPSComputeRunningProcesses_v3(void *d, unsigned *n, process *out) {
  return list("mps %u %llu %u %u", n, out);
}
const char *nvmlErrorString(int code) { return "driver not loaded"; }
