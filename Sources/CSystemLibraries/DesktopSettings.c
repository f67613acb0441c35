// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "CSystemLibraries.h"
#include "Functions.h"
#define TABLE clib_settings

#include <stdlib.h>
#include <string.h>

// GSettings, a part of GLib's GIO; gboolean and gint are int.

#define FUNCTIONS(F) \
    F(void *, g_settings_schema_source_get_default, (void)) \
    F(void *, g_settings_schema_source_lookup, (void *, const char *, int)) \
    F(void, g_settings_schema_unref, (void *)) \
    F(int, g_settings_schema_has_key, (void *, const char *)) \
    F(void *, g_settings_new, (const char *)) \
    F(char *, g_settings_get_string, (void *, const char *)) \
    F(int, g_settings_get_int, (void *, const char *)) \
    F(int, g_settings_get_boolean, (void *, const char *)) \
    F(char **, g_settings_get_strv, (void *, const char *)) \
    F(void, g_free, (void *)) \
    F(void, g_strfreev, (char **)) \
    F(void, g_object_unref, (void *))

struct clib_settings {
    FUNCTIONS(MEMBER)
};

static const struct clib_function functions[] = {FUNCTIONS(ROW)};

const struct clib_settings *clib_settings_load(void *handle, const char **missing) {
    return LOAD();
}

// Looks up the schema and the key first, because GLib aborts the process if one of them is missing.
static void *open_schema(const struct clib_settings *settings, const char *schema, const char *key) {
    void *source = settings->g_settings_schema_source_get_default();
    void *found = source ? settings->g_settings_schema_source_lookup(source, schema, 1) : NULL;
    if (!found) return NULL;
    int has_key = settings->g_settings_schema_has_key(found, key);
    settings->g_settings_schema_unref(found);
    return has_key ? settings->g_settings_new(schema) : NULL;
}

char *clib_settings_text(const struct clib_settings *settings, const char *schema, const char *key) {
    void *group = open_schema(settings, schema, key);
    if (!group) return NULL;
    char *value = settings->g_settings_get_string(group, key);
    char *copy = value ? strdup(value) : NULL;
    settings->g_free(value);
    settings->g_object_unref(group);
    return copy;
}

int clib_settings_number(const struct clib_settings *settings, const char *schema, const char *key, int is_boolean) {
    void *group = open_schema(settings, schema, key);
    if (!group) return 0;
    int value = is_boolean ? settings->g_settings_get_boolean(group, key) : settings->g_settings_get_int(group, key);
    settings->g_object_unref(group);
    return value;
}

char *clib_settings_list(const struct clib_settings *settings, const char *schema, const char *key) {
    void *group = open_schema(settings, schema, key);
    if (!group) return NULL;
    char **values = settings->g_settings_get_strv(group, key);
    settings->g_object_unref(group);
    if (!values) return NULL;
    size_t length = 1;
    for (char **value = values; *value; value++) length += strlen(*value) + 1;
    char *joined = calloc(1, length);
    for (char **value = values; joined && *value; value++) {
        strcat(joined, *value);
        strcat(joined, "\n");
    }
    settings->g_strfreev(values);
    return joined;
}
