// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "CSystemLibraries.h"
#include "Functions.h"
#define TABLE clib_avahi

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

// libavahi-client.so.3, and libavahi-common.so.3 which it loads: Avahi 0.6.16 or newer.

enum { ANY_INTERFACE = -1, V4 = 0, V6 = 1, CLIENT_FAILURE = 100, FOUND = 0 };
enum { INVALID_DOMAIN = -4, INVALID_NAME = -10, INVALID_TYPE = -11, INVALID_SUBTYPE = -33 };
enum { TIMED_OUT = -15, DBUS_ERROR = -22, DISCONNECTED = -23, NO_DAEMON = -26 };
enum { LONGEST_HOST = 1014, LONGEST_TEXT = 65535, SOCKETS = 32 };

struct address {  // AvahiAddress
    int family;
    union {
        uint8_t v6[16];
        uint32_t v4;
        uint8_t bytes[1];
    } data;
};

typedef void (*client_callback)(void *client, int state, void *context);
typedef void (*resolver_callback)(
    void *resolver, int interface, int family, int event, const char *name, const char *type, const char *domain, const char *host,
    const struct address *address, uint16_t port, void *text, int flags, void *context
);
typedef int (*poll_function)(struct pollfd *polls, unsigned int count, int timeout, void *context);

#define FUNCTIONS(F) \
    F(void *, avahi_simple_poll_new, (void)) \
    F(void, avahi_simple_poll_free, (void *)) \
    F(const void *, avahi_simple_poll_get, (void *)) \
    F(void, avahi_simple_poll_set_func, (void *, poll_function, void *)) \
    F(int, avahi_simple_poll_iterate, (void *, int)) \
    F(void *, avahi_client_new, (const void *, int, client_callback, void *, int *)) \
    F(void, avahi_client_free, (void *)) \
    F(int, avahi_client_errno, (void *)) \
    F(void *, avahi_service_resolver_new, ( \
        void *, int, int, const char *, const char *, const char *, int, int, resolver_callback, void * \
    )) \
    F(int, avahi_service_resolver_free, (void *)) \
    F(size_t, avahi_string_list_serialize, (void *, void *, size_t)) \
    F(const char *, avahi_strerror, (int))

struct clib_avahi {
    FUNCTIONS(MEMBER)
};

static const struct clib_function functions[] = {FUNCTIONS(ROW)};

// A resolver sends its query over one family, and asks for addresses of one family. Hosts usually announce their IPv6 addresses
// over IPv4 as well, but not their IPv4 addresses over IPv6.
static const struct {
    int query, address;
} ways[CLIB_AVAHI_WAYS] = {{V4, V4}, {V6, V6}, {V4, V6}};

struct clib_avahi_question {
    struct clib_avahi_client *client;
    uint64_t number;
    void *resolvers[CLIB_AVAHI_WAYS];
};

struct clib_avahi_client {
    const struct clib_avahi *functions;
    void *poll;
    void *client;
    int bell;
    // Avahi's error, if the connection was lost; otherwise 0.
    int lost;
    struct clib_avahi_event *first, **end;
};

const struct clib_avahi *clib_avahi_load(void *handle, const char **missing) {
    return LOAD();
}

// MARK: The bell

int clib_bell_open(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }

void clib_bell_ring(int bell) {
    // The write fails only if the event is already signaled.
    uint64_t one = 1;
    if (write(bell, &one, sizeof one) < 0) return;
}

static int poll_with_bell(struct pollfd *polls, unsigned int count, int timeout, void *context) {
    struct clib_avahi_client *client = context;
    struct pollfd few[SOCKETS];
    struct pollfd *all = count < SOCKETS ? few : malloc((count + 1) * sizeof *all);
    if (all == NULL) {
        errno = ENOMEM;
        return -1;
    }
    memcpy(all, polls, count * sizeof *all);
    all[count] = (struct pollfd){.fd = client->bell, .events = POLLIN};
    int result = poll(all, count + 1, timeout);
    int error = errno;
    if (result > 0) {
        memcpy(polls, all, count * sizeof *all);
        if (all[count].revents) {
            uint64_t rung;
            if (read(client->bell, &rung, sizeof rung) < 0) rung = 0;
            result--;
        }
    } else {
        for (unsigned int index = 0; index < count; index++) polls[index].revents = 0;
    }
    if (all != few) free(all);
    errno = error;
    return result;
}

// MARK: The client

static void state_changed(void *client, int state, void *context) {
    struct clib_avahi_client *made = context;
    if (state == CLIENT_FAILURE) made->lost = made->functions->avahi_client_errno(client);
}

static int failure_kind(int code) {
    if (code == TIMED_OUT) return CLIB_AVAHI_IS_SILENT;
    if (code == NO_DAEMON || code == DBUS_ERROR || code == DISCONNECTED) return CLIB_AVAHI_IS_ABSENT;
    int is_invalid = code == INVALID_DOMAIN || code == INVALID_NAME || code == INVALID_TYPE || code == INVALID_SUBTYPE;
    return is_invalid ? CLIB_AVAHI_IS_INVALID : CLIB_AVAHI_HAS_FAILED;
}

static void explain(const struct clib_avahi *avahi, int code, struct clib_avahi_failure *failure) {
    const char *text = avahi->avahi_strerror(code);
    failure->kind = failure_kind(code);
    snprintf(failure->text, sizeof failure->text, "%s", text ? text : "unknown error");
}

struct clib_avahi_client *clib_avahi_open(const struct clib_avahi *avahi, int bell, struct clib_avahi_failure *failure) {
    memset(failure, 0, sizeof *failure);
    failure->kind = CLIB_AVAHI_HAS_FAILED;
    snprintf(failure->text, sizeof failure->text, "out of memory");
    struct clib_avahi_client *client = calloc(1, sizeof *client);
    if (client == NULL) return NULL;
    client->functions = avahi;
    client->bell = bell;
    client->end = &client->first;
    client->poll = avahi->avahi_simple_poll_new();
    if (client->poll != NULL) {
        avahi->avahi_simple_poll_set_func(client->poll, poll_with_bell, client);
        int code = 0;
        client->client = avahi->avahi_client_new(avahi->avahi_simple_poll_get(client->poll), 0, state_changed, client, &code);
        if (client->client != NULL) return client;
        explain(avahi, code, failure);
        avahi->avahi_simple_poll_free(client->poll);
    }
    free(client);
    return NULL;
}

void clib_avahi_close(struct clib_avahi_client *client) {
    client->functions->avahi_client_free(client->client);
    client->functions->avahi_simple_poll_free(client->poll);
    for (struct clib_avahi_event *event; (event = clib_avahi_next(client));) clib_avahi_forget(event);
    free(client);
}

int clib_avahi_wait(struct clib_avahi_client *client, int milliseconds, struct clib_avahi_failure *failure) {
    memset(failure, 0, sizeof *failure);
    int result = client->lost ? 0 : client->functions->avahi_simple_poll_iterate(client->poll, milliseconds);
    if (result == 0 && !client->lost) return 1;
    explain(client->functions, client->lost ? client->lost : DBUS_ERROR, failure);
    return 0;
}

// MARK: Events

static struct clib_avahi_event *append(struct clib_avahi_client *client, size_t text_length) {
    struct clib_avahi_event *event = calloc(1, sizeof *event + text_length);
    if (event == NULL) return NULL;
    *client->end = event;
    client->end = &event->next;
    return event;
}

struct clib_avahi_event *clib_avahi_next(struct clib_avahi_client *client) {
    struct clib_avahi_event *event = client->first;
    if (event == NULL) return NULL;
    client->first = event->next;
    if (client->first == NULL) client->end = &client->first;
    return event;
}

const uint8_t *clib_avahi_text(const struct clib_avahi_event *event) { return event->text; }

void clib_avahi_forget(struct clib_avahi_event *event) { free(event); }

static int way_of(const struct clib_avahi_question *question, const void *resolver) {
    for (int way = 0; way < CLIB_AVAHI_WAYS; way++) {
        if (question->resolvers[way] == resolver) return way;
    }
    return -1;
}

static void note_failure(struct clib_avahi_question *question, int way, int code) {
    struct clib_avahi_event *event = append(question->client, 0);
    if (event == NULL) return;
    event->question = question->number;
    event->way = way;
    explain(question->client->functions, code, &event->failure);
}

static void resolved(
    void *resolver, int interface, int family, int happened, const char *name, const char *type, const char *domain, const char *host,
    const struct address *address, uint16_t port, void *text, int flags, void *context
) {
    (void)family, (void)name, (void)type, (void)domain, (void)flags;
    struct clib_avahi_question *question = context;
    const struct clib_avahi *avahi = question->client->functions;
    int way = way_of(question, resolver);
    if (way < 0) return;
    if (happened != FOUND || host == NULL || address == NULL) {
        return note_failure(question, way, happened == FOUND ? TIMED_OUT : avahi->avahi_client_errno(question->client->client));
    }
    size_t length = text ? avahi->avahi_string_list_serialize(text, NULL, 0) : 0;
    if (length > LONGEST_TEXT) length = 0;
    struct clib_avahi_event *event = append(question->client, length);
    if (event == NULL) return;
    event->question = question->number;
    event->way = way;
    event->failure.kind = CLIB_AVAHI_IS_FOUND;
    event->interface = interface > 0 ? (uint32_t)interface : 0;
    event->port = port;
    event->address_length = address->family == V6 ? 16 : 4;
    memcpy(event->address, address->data.bytes, event->address_length);
    snprintf(event->host, sizeof event->host, "%s", strlen(host) <= LONGEST_HOST ? host : "");
    if (length > 0) event->text_length = avahi->avahi_string_list_serialize(text, event->text, length);
}

// MARK: Questions

struct clib_avahi_question *clib_avahi_ask(
    struct clib_avahi_client *client, uint64_t number, const char *name, const char *type, const char *domain
) {
    struct clib_avahi_question *question = calloc(1, sizeof *question);
    if (question == NULL) return NULL;
    question->client = client;
    question->number = number;
    for (int way = 0; way < CLIB_AVAHI_WAYS; way++) {
        // The callback is not called before the next wait.
        question->resolvers[way] = client->functions->avahi_service_resolver_new(
            client->client, ANY_INTERFACE, ways[way].query, name, type, domain, ways[way].address, 0, resolved, question
        );
        if (question->resolvers[way] == NULL) note_failure(question, way, client->functions->avahi_client_errno(client->client));
    }
    return question;
}

void clib_avahi_drop(struct clib_avahi_question *question) {
    for (int way = 0; way < CLIB_AVAHI_WAYS; way++) {
        if (question->resolvers[way]) question->client->functions->avahi_service_resolver_free(question->resolvers[way]);
    }
    free(question);
}
