/* NVIDIA's library as the sampler sees it, where there is no GPU: one card of 80 GiB. Which process
   has how much of it stands in the file that FAKE_GPU names: lines of PID BYTES. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef struct { unsigned long long total, free, used; } memory;
typedef struct { unsigned pid; unsigned long long bytes; unsigned a, b; } process;
typedef struct { unsigned gpu, memory; } use;
int nvmlInit_v2(void) { return getenv("FAKE_GPU") ? 0 : 9; }
int nvmlDeviceGetCount_v2(unsigned *n) { *n = 1; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **d) { *d = (void *)8; return i ? 2 : 0; }
int nvmlDeviceGetHandleByUUID(const char *u, void **d) {
  *d = (void *)8;
  return strcmp(u, "GPU-fake") ? 2 : 0;
}
int nvmlDeviceGetUUID(void *d, char *text, unsigned size) { snprintf(text, size, "GPU-fake"); return 0; }
int nvmlDeviceGetName(void *d, char *text, unsigned size) { snprintf(text, size, "FAKE A100"); return 0; }
int nvmlDeviceGetUtilizationRates(void *d, use *u) { u->gpu = 75; u->memory = 10; return 0; }
int nvmlDeviceGetComputeMode(void *d, unsigned *m) { *m = getenv("FAKE_EXCLUSIVE") ? 3 : 0; return 0; }
static unsigned read_all(process *out, unsigned most) {
  unsigned n = 0, pid;
  unsigned long long bytes;
  FILE *file = fopen(getenv("FAKE_GPU"), "r");
  while (file && fscanf(file, "%u %llu", &pid, &bytes) == 2) {
    if (n < most) { out[n].pid = pid; out[n].bytes = bytes; }
    n++;
  }
  if (file) fclose(file);
  return n;
}
int nvmlDeviceGetMemoryInfo(void *d, memory *m) {
  static process all[4096];
  unsigned n = read_all(all, 4096), i;
  m->total = 80ULL << 30;
  for (m->used = 0, i = 0; i < n; i++) m->used += all[i].bytes;
  m->free = m->total - m->used;
  return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void *d, unsigned *n, process *out) {
  unsigned room = *n;
  *n = read_all(out, room);
  return *n > room ? 7 : 0;
}
const char *nvmlErrorString(int code) { return "driver not loaded"; }
