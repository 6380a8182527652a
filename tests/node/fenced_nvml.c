/* NVIDIA's library on a node with four GPUs where a control group fences off those of other jobs: one
   can be used if its file in the folder FENCED_GPUS can be opened, or only has no driver behind it.
   FENCED_COUNT says what the library does with the others, as NVIDIA documents both: "usable" does
   not count them, "all" counts and refuses them. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define GPUS 4
#define NO_PERMISSION 4
typedef struct { unsigned long long total, free, used; } memory;
static int can_use(unsigned number) {
  char path[4096];
  snprintf(path, sizeof path, "%s/nvidia%u", getenv("FENCED_GPUS"), number);
  int file = open(path, O_RDWR);
  if (file >= 0) close(file);
  return file >= 0 || errno == ENXIO;
}
static int counts_all(void) { return !strcmp(getenv("FENCED_COUNT"), "all"); }
int nvmlInit_v2(void) { return getenv("FENCED_GPUS") && getenv("FENCED_COUNT") ? 0 : 9; }
int nvmlDeviceGetCount_v2(unsigned *n) {
  *n = 0;
  for (unsigned gpu = 0; gpu < GPUS; gpu++) *n += counts_all() || can_use(gpu);
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
  for (unsigned long gpu = 0; gpu < GPUS; gpu++) {
    if (!counts_all() && !can_use(gpu)) continue;
    *device = (void *)(gpu + 1);
    if (index-- == 0) return can_use(gpu) ? 0 : NO_PERMISSION;
  }
  return 2;
}
static unsigned number_of(void *device) { return (unsigned)((unsigned long)device - 1); }
int nvmlDeviceGetHandleByUUID(const char *uuid, void **device) {
  unsigned long gpu;
  if (sscanf(uuid, "GPU-%lu", &gpu) != 1 || !can_use(gpu)) return 2;
  *device = (void *)(gpu + 1);
  return 0;
}
int nvmlDeviceGetUUID(void *device, char *text, unsigned size) {
  snprintf(text, size, "GPU-%u", number_of(device));
  return 0;
}
int nvmlDeviceGetName(void *device, char *text, unsigned size) {
  snprintf(text, size, "Fenced %u", number_of(device));
  return 0;
}
int nvmlDeviceGetMemoryInfo(void *device, memory *m) {
  m->total = 1ull << 34;
  m->used = (unsigned long long)number_of(device) << 30;
  m->free = m->total - m->used;
  return 0;
}
int nvmlDeviceGetUtilizationRates(void *device, void *use) { return 3; }
int nvmlDeviceGetComputeMode(void *device, unsigned *mode) { *mode = 0; return 0; }
const char *nvmlErrorString(int code) { return "driver not loaded"; }
