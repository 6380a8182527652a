/* Python's clock is OFFSET seconds ahead: what it gets when it asks for the time of day. Files,
   monotonic clocks and all other programs (the daemons too) keep the machine's time. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/time.h>

static long offset;

__attribute__((constructor)) static void look_who_we_are(void) {
    char program[4096] = "";
    if (readlink("/proc/self/exe", program, sizeof program - 1) < 0) return;
    char *name = strrchr(program, '/');
    if (name && strncmp(name + 1, "python", 6) == 0) offset = OFFSET;
}

int clock_gettime(clockid_t clock, struct timespec *moment) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int code = real(clock, moment);
    if (code == 0 && clock == CLOCK_REALTIME) moment->tv_sec += offset;
    return code;
}

int gettimeofday(struct timeval *moment, void *zone) {
    struct timespec exact;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &exact);
    moment->tv_sec = exact.tv_sec;
    moment->tv_usec = exact.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *moment) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (moment) *moment = exact.tv_sec;
    return exact.tv_sec;
}
