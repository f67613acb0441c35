// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "CSystemLibraries.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#ifdef __GLIBC__

#include <netinet/in.h>
#include <resolv.h>

// The functions are looked up when they are needed: before glibc 2.34, they were in a library of their own, under other names.
struct clib_resolver {
    int (*init)(res_state);
    int (*make)(res_state, int, const char *, int, int, const unsigned char *, int, const unsigned char *, unsigned char *, int);
    int (*send)(res_state, const unsigned char *, int, unsigned char *, int);
    void (*close)(res_state);
};

// How long to wait for a server at first, in seconds, and how often all servers are asked; resolv.conf(5) may set less.
enum { PATIENCE = 2, ATTEMPTS = 2 };

// `name` begins with two underscores.
static int find(void *handle, const char *name, void *function) {
    void *found = dlsym(handle, name + 2);
    if (!found) found = dlsym(handle, name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

const struct clib_resolver *clib_resolver_load(void) {
    // This also finds the functions of the C library, to which the library is linked.
    void *handle = dlopen("libresolv.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!handle) return NULL;
    struct clib_resolver *resolver = calloc(1, sizeof *resolver);
    if (!resolver) return NULL;
    int is_complete = find(handle, "__res_ninit", &resolver->init) && find(handle, "__res_nmkquery", &resolver->make)
        && find(handle, "__res_nsend", &resolver->send) && find(handle, "__res_nclose", &resolver->close);
    if (is_complete) return resolver;
    free(resolver);
    return NULL;
}

int clib_resolver_ask(const struct clib_resolver *resolver, const char *name, int type, uint8_t *message, int capacity) {
    struct __res_state state;
    memset(&state, 0, sizeof state);
    if (resolver->init(&state) != 0) return 0;
    if (state.retrans > PATIENCE) state.retrans = PATIENCE;
    if (state.retry > ATTEMPTS) state.retry = ATTEMPTS;
    unsigned char query[512];
    int length = resolver->make(&state, 0, name, 1, type, NULL, 0, NULL, query, sizeof query);
    // Answers that were truncated are asked for again over TCP.
    if (length > 0) length = resolver->send(&state, query, length, message, capacity);
    resolver->close(&state);
    return length < 0 ? 0 : length > capacity ? capacity : length;
}

#else

const struct clib_resolver *clib_resolver_load(void) { return NULL; }

int clib_resolver_ask(const struct clib_resolver *resolver, const char *name, int type, uint8_t *message, int capacity) {
    (void)resolver, (void)name, (void)type, (void)message, (void)capacity;
    return 0;
}

#endif
