/* far_away MICROSECONDS PROGRAM: runs the program; what it is sent arrives that much later.
 *
 * Between sshfs and its server on the same machine, it stands for a network: however many requests
 * are under way at once, each waits for its own time, and none for another's. */
#define _GNU_SOURCE
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PART = 1 << 16 };

struct part {
    struct part *next;
    long long due;
    ssize_t size;
    char bytes[PART];
};

static long long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static int send_all(int to, const char *bytes, ssize_t size) {
    while (size > 0) {
        ssize_t sent = write(to, bytes, size);
        if (sent <= 0) return 0;
        bytes += sent;
        size -= sent;
    }
    return 1;
}

int main(int count, char **words) {
    int to[2], from[2], open_in = 1;
    if (count < 3 || pipe(to) || pipe(from)) return 2;
    if (fork() == 0) {
        dup2(to[0], 0);
        dup2(from[1], 1);
        close(to[0]), close(to[1]), close(from[0]), close(from[1]);
        execvp(words[2], words + 2);
        _exit(127);
    }
    close(to[0]), close(from[1]);
    long long late = atoll(words[1]) * 1000;
    struct part *first = NULL, **last = &first;
    static char back[PART];
    for (;;) {
        while (first && first->due <= now()) {
            struct part *one = first;
            if (!send_all(to[1], one->bytes, one->size)) return 1;
            if (!(first = one->next)) last = &first;
            free(one);
        }
        if (!open_in && !first) close(to[1]);
        struct pollfd watched[] = {{open_in ? 0 : -1, POLLIN, 0}, {from[0], POLLIN, 0}};
        long long left = first ? first->due - now() : 1000000000LL;
        if (left < 0) left = 0;
        struct timespec wait_for = {left / 1000000000LL, left % 1000000000LL};
        ppoll(watched, 2, &wait_for, NULL);
        if (watched[0].revents) {
            struct part *one = malloc(sizeof *one);
            one->next = NULL;
            one->size = read(0, one->bytes, PART);
            one->due = now() + late;
            if (one->size <= 0) {
                open_in = 0;
                free(one);
            } else {
                *last = one;
                last = &one->next;
            }
        }
        if (watched[1].revents) {
            ssize_t size = read(from[0], back, PART);
            if (size <= 0 || !send_all(1, back, size)) return 0;
        }
    }
}
