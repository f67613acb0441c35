// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "CSystemLibraries.h"
#include "Functions.h"
#define TABLE clib_bus

#include <stdlib.h>
#include <string.h>

// sd-bus of libsystemd 240 or newer.

typedef int (*handler)(void *message, void *context, void *error);

#define FUNCTIONS(F) \
    F(int, sd_bus_open_system, (void **)) \
    F(int, sd_bus_new, (void **)) \
    F(int, sd_bus_set_address, (void *, const char *)) \
    F(int, sd_bus_set_bus_client, (void *, int)) \
    F(int, sd_bus_start, (void *)) \
    F(int, sd_bus_set_method_call_timeout, (void *, uint64_t)) \
    F(int, sd_bus_get_property_trivial, ( \
        void *, const char *, const char *, const char *, const char *, void *, char, void * \
    )) \
    F(int, sd_bus_add_match, (void *, void **, const char *, handler, void *)) \
    F(int, sd_bus_call_method, ( \
        void *, const char *, const char *, const char *, const char *, void *, void **, const char *, ... \
    )) \
    F(int, sd_bus_message_read, (void *, const char *, ...)) \
    F(void *, sd_bus_message_unref, (void *)) \
    F(int, sd_bus_process, (void *, void **)) \
    F(int, sd_bus_get_fd, (void *)) \
    F(void *, sd_bus_flush_close_unref, (void *))

struct clib_bus {
    FUNCTIONS(MEMBER)
};

static const struct clib_function functions[] = {FUNCTIONS(ROW)};

struct clib_network_watch {
    const struct clib_bus *functions;
    void *bus;
    int has_changed;
};

const struct clib_bus *clib_bus_load(void *handle, const char **missing) {
    return LOAD();
}

static const char *const name = "org.freedesktop.NetworkManager";
static const char *const path = "/org/freedesktop/NetworkManager";

static int note_change(void *message, void *context, void *error) {
    (void)message;
    (void)error;
    ((struct clib_network_watch *)context)->has_changed = 1;
    return 0;
}

static int open_bus(const struct clib_bus *functions, const char *address, void **bus) {
    if (address == NULL) return functions->sd_bus_open_system(bus);
    int result = functions->sd_bus_new(bus);
    if (result < 0) return result;
    if ((result = functions->sd_bus_set_address(*bus, address)) < 0 || (result = functions->sd_bus_set_bus_client(*bus, 1)) < 0
        || (result = functions->sd_bus_start(*bus)) < 0) {
        functions->sd_bus_flush_close_unref(*bus);
    }
    return result;
}

struct clib_network_watch *clib_network_watch_open(const struct clib_bus *functions, const char *address, uint64_t microseconds) {
    struct clib_network_watch *watch = calloc(1, sizeof *watch);
    if (watch == NULL) return NULL;
    watch->functions = functions;
    if (open_bus(functions, address, &watch->bus) < 0) {
        free(watch);
        return NULL;
    }
    functions->sd_bus_set_method_call_timeout(watch->bus, microseconds);
    const char *changes =
        "type='signal',sender='org.freedesktop.NetworkManager',path='/org/freedesktop/NetworkManager',"
        "interface='org.freedesktop.DBus.Properties',member='PropertiesChanged'";
    const char *owners =
        "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',member='NameOwnerChanged',"
        "arg0='org.freedesktop.NetworkManager'";
    if (functions->sd_bus_add_match(watch->bus, NULL, changes, note_change, watch) < 0
        || functions->sd_bus_add_match(watch->bus, NULL, owners, note_change, watch) < 0) {
        clib_network_watch_close(watch);
        return NULL;
    }
    return watch;
}

int clib_network_watch_fd(struct clib_network_watch *watch) { return watch->functions->sd_bus_get_fd(watch->bus); }

int clib_network_watch_process(struct clib_network_watch *watch) {
    // The number of messages per call is limited. The descriptor stays readable for the rest.
    for (int count = 0; count < 256; count++) {
        int result = watch->functions->sd_bus_process(watch->bus, NULL);
        if (result < 0) return result;
        if (result == 0) break;
    }
    int changed = watch->has_changed;
    watch->has_changed = 0;
    return changed;
}

static int is_owned(struct clib_network_watch *watch) {
    const struct clib_bus *functions = watch->functions;
    void *reply = NULL;
    int owned = 0;
    // The owner of the name is checked first, because a call to the service would start the service.
    int result = functions->sd_bus_call_method(
        watch->bus, "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "NameHasOwner", NULL, &reply, "s", name
    );
    if (result >= 0) result = functions->sd_bus_message_read(reply, "b", &owned);
    if (reply != NULL) functions->sd_bus_message_unref(reply);
    return result < 0 ? result : owned;
}

int clib_network_watch_read(struct clib_network_watch *watch, struct clib_network_facts *facts) {
    memset(facts, 0, sizeof *facts);
    int owned = is_owned(watch);
    if (owned <= 0) return owned;
    facts->is_there = 1;
    int result = watch->functions->sd_bus_get_property_trivial(watch->bus, name, path, name, "Metered", NULL, 'u', &facts->metered);
    if (result < 0) return result;
    return watch->functions->sd_bus_get_property_trivial(
        watch->bus, name, path, name, "Connectivity", NULL, 'u', &facts->connectivity
    );
}

void clib_network_watch_close(struct clib_network_watch *watch) {
    watch->functions->sd_bus_flush_close_unref(watch->bus);
    free(watch);
}
