// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "CSystemLibraries.h"
#include "Functions.h"
#define TABLE clib_unbound

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// libunbound.so.8: unbound 1.8 or newer.

struct result {  // struct ub_result
    char *question;
    int type;
    int class;
    char **data;
    int *lengths;
    char *canonical_name;
    int code;
    void *packet;
    int packet_length;
    int has_data;
    int is_name_unknown;
    int is_secure;
    int is_bogus;
    char *why_bogus;
    int was_rate_limited;
    int ttl;
};

#define FUNCTIONS(F) \
    F(void *, ub_ctx_create, (void)) \
    F(void, ub_ctx_delete, (void *)) \
    F(int, ub_ctx_debugout, (void *, void *)) \
    F(int, ub_ctx_set_option, (void *, const char *, const char *)) \
    F(int, ub_ctx_resolvconf, (void *, const char *)) \
    F(int, ub_ctx_add_ta_file, (void *, const char *)) \
    F(int, ub_resolve, (void *, const char *, int, int, struct result **)) \
    F(void, ub_resolve_free, (struct result *)) \
    F(const char *, ub_strerror, (int))

struct clib_unbound {
    FUNCTIONS(MEMBER)
};

static const struct clib_function functions[] = {FUNCTIONS(ROW)};

const struct clib_unbound *clib_unbound_load(void *handle, const char **missing) {
    return LOAD();
}

void *clib_unbound_create(const struct clib_unbound *unbound, const char *key_file, struct clib_unbound_failure *failure) {
    failure->text[0] = 0;
    void *context = unbound->ub_ctx_create();
    if (!context) {
        snprintf(failure->text, sizeof failure->text, "out of memory");
        return NULL;
    }
    unbound->ub_ctx_debugout(context, NULL);
    // Allow name servers on loopback: most machines have a local resolver there.
    int error = unbound->ub_ctx_set_option(context, "do-not-query-localhost:", "no");
    if (!error) error = unbound->ub_ctx_resolvconf(context, NULL);
    if (!error) error = unbound->ub_ctx_add_ta_file(context, key_file);
    if (!error) return context;
    snprintf(failure->text, sizeof failure->text, "%s", unbound->ub_strerror(error));
    unbound->ub_ctx_delete(context);
    return NULL;
}

void clib_unbound_free(const struct clib_unbound *unbound, void *context) { unbound->ub_ctx_delete(context); }

// Returns NULL if the question cannot be asked.
static struct result *
resolve(const struct clib_unbound *unbound, void *context, const char *name, int type, struct clib_unbound_answer *answer) {
    memset(answer, 0, sizeof *answer);
    struct result *result = NULL;
    int error = unbound->ub_resolve(context, name, type, 1, &result);
    if (error || !result) {
        snprintf(answer->text, sizeof answer->text, "%s", unbound->ub_strerror(error));
        return NULL;
    }
    answer->is_secure = result->is_secure;
    answer->is_bogus = result->is_bogus;
    answer->is_name_unknown = result->is_name_unknown;
    answer->code = result->code;
    answer->ttl = result->ttl;
    if (result->why_bogus) snprintf(answer->text, sizeof answer->text, "%s", result->why_bogus);
    return result;
}

int clib_unbound_look_up(
    const struct clib_unbound *unbound, void *context, const char *name, int is_v6, struct clib_unbound_answer *answer
) {
    struct result *result = resolve(unbound, context, name, is_v6 ? 28 : 1, answer);
    if (!result) return 0;
    int length = is_v6 ? 16 : 4;
    for (int index = 0; result->data && result->data[index]; index++) {
        if (result->lengths[index] != length || answer->count == CLIB_UNBOUND_MAXIMUM_ADDRESSES) continue;
        memcpy(answer->addresses[answer->count++], result->data[index], length);
    }
    unbound->ub_resolve_free(result);
    return 1;
}

int clib_unbound_ask(
    const struct clib_unbound *unbound, void *context, const char *name, int type, uint8_t *message, int capacity,
    struct clib_unbound_answer *answer
) {
    struct result *result = resolve(unbound, context, name, type, answer);
    if (!result) return -1;
    int length = result->packet && result->packet_length <= capacity ? result->packet_length : 0;
    if (length > 0) memcpy(message, result->packet, length);
    unbound->ub_resolve_free(result);
    return length;
}
