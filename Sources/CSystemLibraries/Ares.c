// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "CSystemLibraries.h"
#include "Functions.h"
#define TABLE clib_ares

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

// libcares.so.2: c-ares 1.11 or newer.

enum { SUCCESS = 0, NO_DATA = 1, NOT_FOUND = 4, TIMED_OUT = 12, INIT_ALL = 1, SOCKETS = 16 };

struct address_ttl {  // struct ares_addrttl
    uint8_t address[4];
    int ttl;
};

struct address6_ttl {  // struct ares_addr6ttl
    uint8_t address[16];
    int ttl;
};

typedef void (*callback)(void *, int, int, unsigned char *, int);

#define FUNCTIONS(F) \
    F(int, ares_library_init, (int)) \
    F(int, ares_init, (void **)) \
    F(void, ares_destroy, (void *)) \
    F(int, ares_set_servers_ports_csv, (void *, const char *)) \
    F(void, ares_search, (void *, const char *, int, int, callback, void *)) \
    F(void, ares_query, (void *, const char *, int, int, callback, void *)) \
    F(int, ares_getsock, (void *, int *, int)) \
    F(struct timeval *, ares_timeout, (void *, struct timeval *, struct timeval *)) \
    F(void, ares_process_fd, (void *, int, int)) \
    F(int, ares_parse_a_reply, (const unsigned char *, int, void **, struct address_ttl *, int *)) \
    F(int, ares_parse_aaaa_reply, (const unsigned char *, int, void **, struct address6_ttl *, int *)) \
    F(const char *, ares_strerror, (int))

struct clib_ares {
    FUNCTIONS(MEMBER)
};

static const struct clib_function functions[] = {FUNCTIONS(ROW)};

const struct clib_ares *clib_ares_load(void *handle, const char **missing) {
    struct clib_ares *ares = LOAD();
    if (!ares) return NULL;
    ares->ares_library_init(INIT_ALL);
    return ares;
}

static const char nobody[] = "no name server answered";

struct search {
    const struct clib_ares *ares;
    int type;
    int is_over;
    // What was found, and, if that is a message, the space for it.
    struct clib_ares_answer *answer;
    uint8_t *message;
    int capacity;
};

static void note(struct clib_ares_answer *answer, const uint8_t *address, int length, int ttl) {
    if (answer->count == 0 || ttl < answer->ttl) answer->ttl = ttl;
    memcpy(answer->addresses[answer->count++], address, length);
}

static void found(void *context, int status, int timeouts, unsigned char *reply, int length) {
    (void)timeouts;
    struct search *search = context;
    struct clib_ares_answer *answer = search->answer;
    search->is_over = 1;
    int count = CLIB_ARES_MAXIMUM_ADDRESSES;
    if (status == SUCCESS && search->type == CLIB_ARES_V6) {
        struct address6_ttl addresses[CLIB_ARES_MAXIMUM_ADDRESSES];
        status = search->ares->ares_parse_aaaa_reply(reply, length, NULL, addresses, &count);
        for (int index = 0; status == SUCCESS && index < count; index++) note(answer, addresses[index].address, 16, addresses[index].ttl);
    } else if (status == SUCCESS) {
        struct address_ttl addresses[CLIB_ARES_MAXIMUM_ADDRESSES];
        status = search->ares->ares_parse_a_reply(reply, length, NULL, addresses, &count);
        for (int index = 0; status == SUCCESS && index < count; index++) note(answer, addresses[index].address, 4, addresses[index].ttl);
    }
    answer->is_known = status == SUCCESS || status == NO_DATA || status == NOT_FOUND;
    const char *reason = status == TIMED_OUT ? nobody : search->ares->ares_strerror(status);
    if (!answer->is_known) snprintf(answer->text, sizeof answer->text, "%s", reason);
}

// Keeps the whole reply; a reply may also say that there is nothing to find.
static void replied(void *context, int status, int timeouts, unsigned char *reply, int length) {
    (void)timeouts;
    struct search *search = context;
    struct clib_ares_answer *answer = search->answer;
    search->is_over = 1;
    int is_reply = status == SUCCESS || status == NO_DATA || status == NOT_FOUND;
    answer->is_known = is_reply && reply && length > 0 && length <= search->capacity;
    if (answer->is_known) {
        memcpy(search->message, reply, length);
        answer->count = length;
    } else {
        const char *reason = is_reply ? "the answer is incomplete" : status == TIMED_OUT ? nobody : search->ares->ares_strerror(status);
        snprintf(answer->text, sizeof answer->text, "%s", reason);
    }
}

static long long milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

// Waits for the channel's sockets, for at most `limit` milliseconds.
static void wait(const struct clib_ares *ares, void *channel, int limit) {
    int sockets[SOCKETS];
    int bits = ares->ares_getsock(channel, sockets, SOCKETS);
    struct pollfd polls[SOCKETS];
    nfds_t count = 0;
    for (int index = 0; index < SOCKETS; index++) {
        short events = (bits >> index & 1 ? POLLIN : 0) | (bits >> (index + SOCKETS) & 1 ? POLLOUT : 0);
        if (events) polls[count++] = (struct pollfd){.fd = sockets[index], .events = events};
    }
    struct timeval most = {limit / 1000, limit % 1000 * 1000}, buffer;
    struct timeval *time = ares->ares_timeout(channel, &most, &buffer);
    int ready = poll(polls, count, (int)(time->tv_sec * 1000 + (time->tv_usec + 999) / 1000));
    if (ready <= 0) ares->ares_process_fd(channel, -1, -1);
    for (nfds_t index = 0; ready > 0 && index < count; index++) {
        if (!polls[index].revents) continue;
        int fails = polls[index].revents & (POLLERR | POLLHUP);
        ares->ares_process_fd(
            channel, fails || polls[index].revents & POLLIN ? polls[index].fd : -1, polls[index].revents & POLLOUT ? polls[index].fd : -1
        );
    }
}

static void *channel_to(const struct clib_ares *ares, const char *servers, struct clib_ares_answer *answer) {
    memset(answer, 0, sizeof *answer);
    void *channel = NULL;
    int status = ares->ares_init(&channel);
    if (status == SUCCESS) {
        status = ares->ares_set_servers_ports_csv(channel, servers);
        if (status != SUCCESS) ares->ares_destroy(channel);
    }
    if (status == SUCCESS) return channel;
    snprintf(answer->text, sizeof answer->text, "%s", ares->ares_strerror(status));
    return NULL;
}

// Waits for the end of the search, for at most `limit` milliseconds, and frees the channel.
static void finish(struct search *search, void *channel, int limit) {
    // A single clock reading decides both whether to wait and for how long. With two readings, a thread that is preempted between
    // them could wait forever.
    long long now = milliseconds();
    for (long long end = now + limit; !search->is_over && now < end; now = milliseconds()) wait(search->ares, channel, (int)(end - now));
    int was_late = !search->is_over;
    // This calls the callback if no answer has arrived yet.
    search->ares->ares_destroy(channel);
    // In that case, the callback has only reported that the channel was destroyed.
    if (was_late) snprintf(search->answer->text, sizeof search->answer->text, "%s", nobody);
}

void clib_ares_look_up(
    const struct clib_ares *ares, const char *servers, const char *name, int type, int limit, struct clib_ares_answer *answer
) {
    void *channel = channel_to(ares, servers, answer);
    if (!channel) return;
    struct search search = {.ares = ares, .type = type, .answer = answer};
    // A name with a dot is queried as it is: with a search domain, c-ares could resolve another name if this name merely has no
    // addresses of the family.
    const char *dot = strchr(name, '.');
    if (dot && dot[1]) ares->ares_query(channel, name, 1, type, found, &search);
    else ares->ares_search(channel, name, 1, type, found, &search);
    finish(&search, channel, limit);
}

int clib_ares_ask(
    const struct clib_ares *ares, const char *servers, const char *name, int type, int limit, uint8_t *message, int capacity,
    struct clib_ares_answer *answer
) {
    void *channel = channel_to(ares, servers, answer);
    if (!channel) return 0;
    struct search search = {.ares = ares, .type = type, .answer = answer, .message = message, .capacity = capacity};
    ares->ares_query(channel, name, 1, type, replied, &search);
    finish(&search, channel, limit);
    return answer->is_known ? answer->count : 0;
}
