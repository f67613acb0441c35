// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "CSystemLibraries.h"
#include "Functions.h"
#define TABLE clib_gss

#include <stdlib.h>
#include <string.h>

// The types and constants of the C bindings: RFC 2744, appendix A. They are the same for MIT and Heimdal.

typedef struct {
    size_t length;
    void *value;
} gss_buffer;

typedef struct {
    uint32_t length;
    void *elements;
} gss_oid;

typedef struct {
    size_t count;
    gss_oid *elements;
} gss_oid_set;

typedef struct {
    uint32_t initiator_address_type;
    gss_buffer initiator_address;
    uint32_t acceptor_address_type;
    gss_buffer acceptor_address;
    gss_buffer application_data;
} gss_bindings;

typedef void *gss_name;
typedef void *gss_credential;
typedef void *gss_security_context;

enum {
    INITIATE = 1,       // GSS_C_INITIATE
    MUTUAL_FLAG = 2,    // GSS_C_MUTUAL_FLAG
    GSS_CODE = 1,       // GSS_C_GSS_CODE
    MECHANISM_CODE = 2  // GSS_C_MECH_CODE
};
#define INDEFINITE 0xFFFFFFFFu
#define IS_ERROR(major) (((major) & 0xFFFF0000u) != 0)
#define CONTINUE_NEEDED 1u

// 1.3.6.1.5.5.2 (RFC 4178), 1.2.840.113554.1.2.2 (RFC 1964), and the names 1.2.840.113554.1.2.1.4 and .1 (RFC 2744).
static gss_oid spnego = {6, "\x2b\x06\x01\x05\x05\x02"};
static gss_oid kerberos = {9, "\x2a\x86\x48\x86\xf7\x12\x01\x02\x02"};
static gss_oid host_based_service = {10, "\x2a\x86\x48\x86\xf7\x12\x01\x02\x01\x04"};
static gss_oid user_name = {10, "\x2a\x86\x48\x86\xf7\x12\x01\x02\x01\x01"};

#define FUNCTIONS(F) \
    F(uint32_t, gss_import_name, (uint32_t *, const gss_buffer *, const gss_oid *, gss_name *)) \
    F(uint32_t, gss_release_name, (uint32_t *, gss_name *)) \
    F(uint32_t, gss_acquire_cred, ( \
        uint32_t *, gss_name, uint32_t, const gss_oid_set *, int, gss_credential *, gss_oid_set **, \
        uint32_t * \
    )) \
    F(uint32_t, gss_acquire_cred_with_password, ( \
        uint32_t *, gss_name, const gss_buffer *, uint32_t, const gss_oid_set *, int, gss_credential *, \
        gss_oid_set **, uint32_t * \
    )) \
    F(uint32_t, gss_release_cred, (uint32_t *, gss_credential *)) \
    F(uint32_t, gss_init_sec_context, ( \
        uint32_t *, gss_credential, gss_security_context *, gss_name, const gss_oid *, uint32_t, uint32_t, \
        const gss_bindings *, const gss_buffer *, gss_oid **, gss_buffer *, uint32_t *, uint32_t * \
    )) \
    F(uint32_t, gss_delete_sec_context, (uint32_t *, gss_security_context *, gss_buffer *)) \
    F(uint32_t, gss_release_buffer, (uint32_t *, gss_buffer *)) \
    F(uint32_t, gss_display_status, (uint32_t *, uint32_t, int, const gss_oid *, uint32_t *, gss_buffer *))

struct clib_gss {
    FUNCTIONS(MEMBER)
    // Only MIT's library and newer versions of Heimdal have this function; otherwise NULL.
    MEMBER(uint32_t, gss_set_neg_mechs, (uint32_t *, gss_credential, const gss_oid_set *))
};

static const struct clib_function functions[] = {FUNCTIONS(ROW) {"gss_set_neg_mechs", offsetof(struct TABLE, gss_set_neg_mechs), 1}};

const struct clib_gss *clib_gss_load(void *handle, const char **missing) {
    return LOAD();
}

// MARK: Errors

static void append(struct clib_gss_leg *leg, const char *bytes, size_t length) {
    size_t used = strlen(leg->text), room = sizeof leg->text - 1 - used;
    if (length > room) length = room;
    memcpy(leg->text + used, bytes, length);
    leg->text[used + length] = 0;
}

static void append_status(
    const struct clib_gss *gss, struct clib_gss_leg *leg, uint32_t status, int kind, const gss_oid *mechanism
) {
    uint32_t more = 0;
    for (int line = 0; line < 8; line++) {
        uint32_t minor = 0;
        gss_buffer text = {0, NULL};
        uint32_t major = gss->gss_display_status(&minor, status, kind, mechanism, &more, &text);
        if (IS_ERROR(major)) return;
        if (text.length) {
            if (leg->text[0]) append(leg, ": ", 2);
            append(leg, text.value, text.length);
        }
        gss->gss_release_buffer(&minor, &text);
        if (!more) return;
    }
}

static int failed(const struct clib_gss *gss, struct clib_gss_leg *leg, uint32_t major, uint32_t minor) {
    leg->major_status = major;
    leg->minor_status = minor;
    append_status(gss, leg, major, GSS_CODE, NULL);
    if (minor) append_status(gss, leg, minor, MECHANISM_CODE, &spnego);
    return 0;
}

// MARK: Contexts

struct clib_gss_context {
    const struct clib_gss *gss;
    char *service;
    // Freed after the first step; the password is zeroed.
    char *user;
    char *password;
    gss_bindings bindings;
    int has_bindings;
    int is_prepared;
    gss_name target;
    gss_credential credential;
    gss_security_context context;
    gss_buffer output;
};

static void forget_password(struct clib_gss_context *context) {
    if (context->password) {
        explicit_bzero(context->password, strlen(context->password));
        free(context->password);
    }
    free(context->user);
    context->user = context->password = NULL;
}

struct clib_gss_context *clib_gss_context_create(
    const struct clib_gss *gss, const char *service, const char *user, const char *password, const uint8_t *binding,
    size_t binding_length
) {
    struct clib_gss_context *context = calloc(1, sizeof *context);
    if (!context) return NULL;
    context->gss = gss;
    context->service = strdup(service);
    int complete = context->service != NULL;
    if (user) {
        context->user = strdup(user);
        context->password = strdup(password ? password : "");
        complete = complete && context->user && context->password;
    }
    if (binding && complete) {
        context->has_bindings = 1;
        context->bindings.application_data.length = binding_length;
        context->bindings.application_data.value = malloc(binding_length ? binding_length : 1);
        complete = context->bindings.application_data.value != NULL;
        if (complete) memcpy(context->bindings.application_data.value, binding, binding_length);
    }
    if (complete) return context;
    clib_gss_context_free(context);
    return NULL;
}

void clib_gss_context_free(struct clib_gss_context *context) {
    if (!context) return;
    const struct clib_gss *gss = context->gss;
    uint32_t minor = 0;
    if (context->output.value) gss->gss_release_buffer(&minor, &context->output);
    if (context->context) gss->gss_delete_sec_context(&minor, &context->context, NULL);
    if (context->credential) gss->gss_release_cred(&minor, &context->credential);
    if (context->target) gss->gss_release_name(&minor, &context->target);
    forget_password(context);
    free(context->bindings.application_data.value);
    free(context->service);
    free(context);
}

static int acquire(struct clib_gss_context *context, struct clib_gss_leg *leg) {
    const struct clib_gss *gss = context->gss;
    gss_oid_set mechanisms = {1, &spnego};
    uint32_t minor = 0, major;
    if (context->user) {
        gss_buffer text = {strlen(context->user), context->user};
        gss_buffer password = {strlen(context->password), context->password};
        gss_name name = NULL;
        major = gss->gss_import_name(&minor, &text, &user_name, &name);
        if (IS_ERROR(major)) return failed(gss, leg, major, minor);
        major = gss->gss_acquire_cred_with_password(
            &minor, name, &password, INDEFINITE, &mechanisms, INITIATE, &context->credential, NULL, NULL
        );
        uint32_t ignored;
        gss->gss_release_name(&ignored, &name);
    } else {
        major = gss->gss_acquire_cred(&minor, NULL, INDEFINITE, &mechanisms, INITIATE, &context->credential, NULL, NULL);
    }
    if (IS_ERROR(major)) return failed(gss, leg, major, minor);
    // Only Kerberos is offered: never NTLM within SPNEGO, whatever plug-ins the library has.
    gss_oid_set only = {1, &kerberos};
    if (gss->gss_set_neg_mechs) gss->gss_set_neg_mechs(&minor, context->credential, &only);
    return 1;
}

static int prepare(struct clib_gss_context *context, struct clib_gss_leg *leg) {
    if (context->is_prepared) return 1;
    uint32_t minor = 0;
    gss_buffer text = {strlen(context->service), context->service};
    uint32_t major = context->gss->gss_import_name(&minor, &text, &host_based_service, &context->target);
    if (IS_ERROR(major)) return failed(context->gss, leg, major, minor);
    int acquired = acquire(context, leg);
    forget_password(context);
    context->is_prepared = acquired;
    return acquired;
}

int clib_gss_context_step(struct clib_gss_context *context, const uint8_t *token, size_t length, struct clib_gss_leg *leg) {
    const struct clib_gss *gss = context->gss;
    memset(leg, 0, sizeof *leg);
    uint32_t minor = 0, flags = 0;
    if (context->output.value) gss->gss_release_buffer(&minor, &context->output);
    if (!prepare(context, leg)) return 0;
    gss_buffer input = {length, (void *)token};
    uint32_t major = gss->gss_init_sec_context(
        &minor, context->credential, &context->context, context->target, &spnego, MUTUAL_FLAG, 0,
        context->has_bindings ? &context->bindings : NULL, token ? &input : NULL, NULL, &context->output, &flags, NULL
    );
    if (IS_ERROR(major)) return failed(gss, leg, major, minor);
    leg->major_status = major;
    leg->is_done = !(major & CONTINUE_NEEDED);
    leg->is_mutual = leg->is_done && (flags & MUTUAL_FLAG);
    leg->token = context->output.value;
    leg->token_length = context->output.length;
    return 1;
}
