// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "CSystemLibraries.h"
#include "Functions.h"
#define TABLE clib_secret

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// libsecret 0.19 or newer, and the parts of GLib and GIO that are needed to use it; gboolean and gint are int.

struct list {  // GList
    void *data;
    struct list *next;
    struct list *previous;
};

struct error {  // GError
    uint32_t domain;
    int code;
    char *message;
};

struct schema {  // SecretSchema
    const char *name;
    int flags;
    struct {
        const char *name;
        int type;
    } attributes[CLIB_SECRET_MAXIMUM_ATTRIBUTES + 1];
    int reserved;
    void *more_reserved[7];
};

enum {
    SESSION_BUS = 2,                        // G_BUS_TYPE_SESSION
    SEARCH = 1 << 1 | 1 << 2 | 1 << 3,      // SECRET_SEARCH_ALL, UNLOCK, LOAD_SECRETS
    START_TIMEOUT = 5000
};

#define FUNCTIONS(F) \
    F(int, secret_password_storev_sync, ( \
        const struct schema *, void *, const char *, const char *, const char *, void *, struct error ** \
    )) \
    F(int, secret_password_clearv_sync, (const struct schema *, void *, void *, struct error **)) \
    F(struct list *, secret_password_searchv_sync, (const struct schema *, void *, int, void *, struct error **)) \
    F(void *, secret_retrievable_get_attributes, (void *)) \
    F(char *, secret_retrievable_get_label, (void *)) \
    F(void *, secret_retrievable_retrieve_secret_sync, (void *, void *, struct error **)) \
    F(const char *, secret_value_get_text, (void *)) \
    F(void, secret_value_unref, (void *)) \
    F(void, secret_service_disconnect, (void)) \
    F(void *, g_hash_table_new, (uint32_t (*)(const void *), int (*)(const void *, const void *))) \
    F(int, g_hash_table_insert, (void *, void *, void *)) \
    F(void *, g_hash_table_lookup, (void *, const void *)) \
    F(struct list *, g_hash_table_get_keys, (void *)) \
    F(void, g_hash_table_unref, (void *)) \
    F(void, g_list_free, (struct list *)) \
    F(void, g_object_unref, (void *)) \
    F(void, g_free, (void *)) \
    F(void, g_error_free, (struct error *)) \
    F(uint32_t, g_dbus_error_quark, (void)) \
    F(void *, g_variant_new, (const char *, ...)) \
    F(void, g_variant_unref, (void *)) \
    F(void *, g_bus_get_sync, (int, void *, struct error **)) \
    F(void, g_dbus_connection_set_exit_on_close, (void *, int)) \
    F(int, g_dbus_connection_is_closed, (void *)) \
    F(void *, g_dbus_connection_call_sync, ( \
        void *, const char *, const char *, const char *, const char *, void *, const void *, int, int, \
        void *, struct error ** \
    )) \
    F(uint32_t, g_str_hash, (const void *)) \
    F(int, g_str_equal, (const void *, const void *))

struct clib_secret {
    FUNCTIONS(MEMBER)
};

static const struct clib_function functions[] = {FUNCTIONS(ROW)};

const struct clib_secret *clib_secret_load(void *handle, const char **missing) {
    return LOAD();
}

// MARK: Errors

static int is_absence(const struct clib_secret *secret, const struct error *error) {
    if (error->domain != secret->g_dbus_error_quark()) return 0;
    switch (error->code) {
    case 2: case 3: case 4:             // SERVICE_UNKNOWN, NAME_HAS_NO_OWNER, NO_REPLY
    case 9: case 10: case 11: case 12:  // ACCESS_DENIED, AUTH_FAILED, NO_SERVER, TIMEOUT
    case 15: case 20:                   // DISCONNECTED, TIMED_OUT
        return 1;
    default:
        return error->code >= 23 && error->code <= 33;  // SPAWN_…
    }
}

static int failed(
    const struct clib_secret *secret, struct error *error, int is_absent, struct clib_secret_failure *failure
) {
    failure->is_absent = is_absent || (error && is_absence(secret, error));
    snprintf(failure->text, sizeof failure->text, "%s", error && error->message ? error->message : "no reason was given");
    if (error) secret->g_error_free(error);
    return 0;
}

// MARK: The bus

// Returns the session bus, which the caller releases with g_object_unref; NULL if there is no bus.
static void *bus(const struct clib_secret *secret, struct clib_secret_failure *failure) {
    memset(failure, 0, sizeof *failure);
    struct error *error = NULL;
    void *connection = secret->g_bus_get_sync(SESSION_BUS, NULL, &error);
    if (!connection) {
        failed(secret, error, 1, failure);
        return NULL;
    }
    // By default, GIO ends the process when the bus connection closes.
    secret->g_dbus_connection_set_exit_on_close(connection, 0);
    if (!secret->g_dbus_connection_is_closed(connection)) return connection;
    // This makes the next attempt connect to the current bus.
    secret->secret_service_disconnect();
    secret->g_object_unref(connection);
    failure->is_absent = 1;
    snprintf(failure->text, sizeof failure->text, "the session bus was closed");
    return NULL;
}

int clib_secret_is_reachable(const struct clib_secret *secret, struct clib_secret_failure *failure) {
    void *connection = bus(secret, failure);
    if (!connection) return 0;
    struct error *error = NULL;
    void *answer = secret->g_dbus_connection_call_sync(
        connection, "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "StartServiceByName",
        secret->g_variant_new("(su)", "org.freedesktop.secrets", (uint32_t)0), NULL, 0, START_TIMEOUT, NULL, &error
    );
    secret->g_object_unref(connection);
    if (!answer) return failed(secret, error, 1, failure);
    secret->g_variant_unref(answer);
    return 1;
}

// MARK: Items

struct query {
    struct schema schema;
    void *attributes;  // GHashTable
    void *connection;
};

static int begin(
    const struct clib_secret *secret, const char *schema, const struct clib_secret_attribute *attributes, int count,
    struct query *query, struct clib_secret_failure *failure
) {
    memset(query, 0, sizeof *query);
    if (count < 0 || count > CLIB_SECRET_MAXIMUM_ATTRIBUTES) {
        memset(failure, 0, sizeof *failure);
        snprintf(failure->text, sizeof failure->text, "%d attributes are too many", count);
        return 0;
    }
    query->connection = bus(secret, failure);
    if (!query->connection) return 0;
    query->schema.name = schema;
    query->attributes = secret->g_hash_table_new(secret->g_str_hash, secret->g_str_equal);
    for (int index = 0; index < count; index++) {
        query->schema.attributes[index].name = attributes[index].name;
        secret->g_hash_table_insert(query->attributes, (void *)attributes[index].name, (void *)attributes[index].value);
    }
    return 1;
}

static void end(const struct clib_secret *secret, struct query *query) {
    secret->g_hash_table_unref(query->attributes);
    secret->g_object_unref(query->connection);
}

int clib_secret_store(
    const struct clib_secret *secret, const char *schema, const struct clib_secret_attribute *attributes, int count,
    const char *label, const char *value, struct clib_secret_failure *failure
) {
    struct query query;
    if (!begin(secret, schema, attributes, count, &query, failure)) return 0;
    struct error *error = NULL;
    // NULL means the default collection.
    int stored = secret->secret_password_storev_sync(&query.schema, query.attributes, NULL, label, value, NULL, &error);
    end(secret, &query);
    return stored ? 1 : failed(secret, error, 0, failure);
}

int clib_secret_remove(
    const struct clib_secret *secret, const char *schema, const struct clib_secret_attribute *attributes, int count,
    int *removed, struct clib_secret_failure *failure
) {
    *removed = 0;
    struct query query;
    if (!begin(secret, schema, attributes, count, &query, failure)) return 0;
    struct error *error = NULL;
    *removed = secret->secret_password_clearv_sync(&query.schema, query.attributes, NULL, &error);
    end(secret, &query);
    return error ? failed(secret, error, 0, failure) : 1;
}

static void visit(const struct clib_secret *secret, void *item, clib_secret_visitor visitor, void *context) {
    struct clib_secret_attribute attributes[CLIB_SECRET_MAXIMUM_ATTRIBUTES + 1];
    int count = 0;
    void *table = secret->secret_retrievable_get_attributes(item);
    struct list *keys = secret->g_hash_table_get_keys(table);
    for (struct list *key = keys; key && count <= CLIB_SECRET_MAXIMUM_ATTRIBUTES; key = key->next) {
        const char *value = secret->g_hash_table_lookup(table, key->data);
        attributes[count++] = (struct clib_secret_attribute){key->data, value ? value : ""};
    }
    char *label = secret->secret_retrievable_get_label(item);
    struct error *error = NULL;
    void *value = secret->secret_retrievable_retrieve_secret_sync(item, NULL, &error);
    if (error) secret->g_error_free(error);
    visitor(context, label ? label : "", attributes, count, value ? secret->secret_value_get_text(value) : NULL);
    if (value) secret->secret_value_unref(value);
    secret->g_free(label);
    secret->g_list_free(keys);
    secret->g_hash_table_unref(table);
}

int clib_secret_list(
    const struct clib_secret *secret, const char *schema, const struct clib_secret_attribute *attributes, int count,
    clib_secret_visitor item, void *context, struct clib_secret_failure *failure
) {
    struct query query;
    if (!begin(secret, schema, attributes, count, &query, failure)) return 0;
    struct error *error = NULL;
    struct list *items = secret->secret_password_searchv_sync(&query.schema, query.attributes, SEARCH, NULL, &error);
    end(secret, &query);
    if (error) return failed(secret, error, 0, failure);
    for (struct list *each = items; each; each = each->next) {
        visit(secret, each->data, item, context);
        secret->g_object_unref(each->data);
    }
    secret->g_list_free(items);
    return 1;
}
