//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef C_SYSTEM_LIBRARIES_H
#define C_SYSTEM_LIBRARIES_H

#include <stddef.h>
#include <stdint.h>

// System libraries that are opened on first use, so that a program runs without them. Their interfaces are declared here and in the
// sources, from their documentation; building needs none of their headers.

// MARK: Opening

struct csl_opening {
    // Never closed: none of these libraries supports being unloaded.
    void *handle;
    // The path of the library, or the dynamic linker's error.
    char text[512];
};
// Opens a library by name ("libfoo.so.2"), with the search rules of the dynamic linker. Returns 0 on failure.
int csl_open(const char *name, struct csl_opening *opening);

// MARK: GSSAPI (RFC 2743, RFC 2744)

// The function table of a GSSAPI library. Written once, never freed.
struct csl_gss;
// Returns NULL if a function is missing, and sets `missing` to its name.
const struct csl_gss *csl_gss_load(void *handle, const char **missing);

// The result of one step.
struct csl_gss_leg {
    uint32_t major_status;
    uint32_t minor_status;
    int is_done;
    int is_mutual;
    // Owned by the context, until its next step.
    const uint8_t *token;
    size_t token_length;
    // The error message.
    char text[1024];
};

// The initiator's security context. For use by one thread at a time; contexts are independent of each other.
struct csl_gss_context;
// service is HTTP@host. If user and password are NULL, the user's default credential is used; binding may be NULL.
struct csl_gss_context *csl_gss_context_create(
    const struct csl_gss *gss, const char *service, const char *user, const char *password, const uint8_t *binding,
    size_t binding_length
);
// Performs one step. token is NULL on the first step. May block until a KDC responds. Returns 1 on success, 0 on failure.
int csl_gss_context_step(struct csl_gss_context *context, const uint8_t *token, size_t length, struct csl_gss_leg *leg);
void csl_gss_context_free(struct csl_gss_context *context);

// MARK: Secret Service, by libsecret

struct csl_secret;
const struct csl_secret *csl_secret_load(void *handle, const char **missing);

struct csl_secret_attribute {
    const char *name;
    const char *value;
};
// The maximum number of attributes of an item.
#define CSL_SECRET_MAXIMUM_ATTRIBUTES 31

// The error of a call; empty if it succeeded.
struct csl_secret_failure {
    // There is no session bus, or no secret service on it.
    int is_absent;
    char text[512];
};

// Whether a secret service can be reached on the session bus.
int csl_secret_is_reachable(const struct csl_secret *secret, struct csl_secret_failure *failure);
// These functions return 1 on success, 0 on failure. They block until the service responds, which may take until the user unlocks
// the keyring.
int csl_secret_store(
    const struct csl_secret *secret, const char *schema, const struct csl_secret_attribute *attributes, int count,
    const char *label, const char *value, struct csl_secret_failure *failure
);
// value: NULL if there is no such item; otherwise the caller frees it with csl_secret_forget.
int csl_secret_look_up(
    const struct csl_secret *secret, const char *schema, const struct csl_secret_attribute *attributes, int count,
    char **value, struct csl_secret_failure *failure
);
void csl_secret_forget(const struct csl_secret *secret, char *value);
int csl_secret_remove(
    const struct csl_secret *secret, const char *schema, const struct csl_secret_attribute *attributes, int count,
    int *removed, struct csl_secret_failure *failure
);

// csl_secret_list calls its visitor for every item that has the given attributes, with all attributes of the item. value is NULL if
// the secret cannot be read. All strings are valid only during the call.
typedef void (*csl_secret_visitor)(
    void *context, const char *label, const struct csl_secret_attribute *attributes, int count, const char *value
);
int csl_secret_list(
    const struct csl_secret *secret, const char *schema, const struct csl_secret_attribute *attributes, int count,
    csl_secret_visitor item, void *context, struct csl_secret_failure *failure
);

// libunbound: addresses validated with DNSSEC

struct csl_unbound;
const struct csl_unbound *csl_unbound_load(void *handle, const char **missing);

struct csl_unbound_failure {
    char text[512];
};
// A context that asks the system's name servers, and trusts the key in a file. Several threads may use it at the same time.
void *csl_unbound_create(const struct csl_unbound *unbound, const char *key_file, struct csl_unbound_failure *failure);
void csl_unbound_free(const struct csl_unbound *unbound, void *context);

#define CSL_UNBOUND_MAXIMUM_ADDRESSES 16

struct csl_unbound_answer {
    int is_secure;
    int is_bogus;
    int is_name_unknown;
    // The RCODE of the DNS response.
    int code;
    int ttl;
    int count;
    uint8_t addresses[CSL_UNBOUND_MAXIMUM_ADDRESSES][16];
    // Why the answer is bogus or missing.
    char text[512];
};
int csl_unbound_look_up(
    const struct csl_unbound *unbound, void *context, const char *name, int is_v6, struct csl_unbound_answer *answer
);

// MARK: NetworkManager, by sd-bus

struct csl_bus;
const struct csl_bus *csl_bus_load(void *handle, const char **missing);

// A connection to the system bus, notified when NetworkManager starts, ends or changes a property. For use by one thread at a time.
struct csl_network_watch;
// address: NULL for the system bus. Returns NULL if there is no bus. Calls wait for an answer for at most `microseconds`.
struct csl_network_watch *csl_network_watch_open(const struct csl_bus *functions, const char *address, uint64_t microseconds);
// A descriptor that is readable when there is something to process.
int csl_network_watch_fd(struct csl_network_watch *watch);
// Processes what has arrived, without blocking. Returns 1 if something changed, 0 if not, negative if the bus is gone.
int csl_network_watch_process(struct csl_network_watch *watch);

struct csl_network_facts {
    int is_there;
    // NMMetered: 1 yes, 2 no, 3 guessed yes, 4 guessed no.
    uint32_t metered;
    // NMConnectivityState: 1 none, 2 behind a portal, 3 limited, 4 full.
    uint32_t connectivity;
};
// Returns a negative value if the answer is invalid or does not arrive in time.
int csl_network_watch_read(struct csl_network_watch *watch, struct csl_network_facts *facts);
void csl_network_watch_close(struct csl_network_watch *watch);

// c-ares: addresses from name servers, with their TTL

struct csl_ares;
const struct csl_ares *csl_ares_load(void *handle, const char **missing);

#define CSL_ARES_MAXIMUM_ADDRESSES 16

struct csl_ares_answer {
    // Whether a name server has answered, even if only that there is no address.
    int is_known;
    int ttl;
    int count;
    uint8_t addresses[CSL_ARES_MAXIMUM_ADDRESSES][16];
    // Why there is no answer.
    char text[256];
};

// The record types: A, AAAA.
enum { CSL_ARES_V4 = 1, CSL_ARES_V6 = 28 };

void csl_ares_look_up(
    const struct csl_ares *ares, const char *servers, const char *name, int type, int limit, struct csl_ares_answer *answer
);

// MARK: JavaScript, by JavaScriptCore

struct csl_js;
const struct csl_js *csl_js_load(void *handle, const char **missing);

// The maximum size in bytes of strings between a script and its caller.
#define CSL_JS_MAXIMUM_TEXT 65536

// Answers a script's __ask(what, name). Returns text that the caller frees, or NULL.
typedef char *(*csl_js_helper)(void *data, const char *what, const char *name);

struct csl_js_result {
    // The result of csl_js_call, which the caller frees; NULL if the result is null, or after a failure.
    char *text;
    // The exception that the script threw, or what is wrong with its result.
    char failure[512];
};

// A script's context. For use by one thread at a time. limit: the seconds after which a running script is terminated.
struct csl_js_context;
struct csl_js_context *csl_js_create(const struct csl_js *js, double limit, csl_js_helper helper, void *data);
void csl_js_free(struct csl_js_context *context);
// This function and csl_js_call return 1 on success, 0 on failure. All strings, including the script, end with a NUL.
int csl_js_run(struct csl_js_context *context, const char *script, struct csl_js_result *result);
// Calls the first of the functions that exists. names ends with NULL.
int csl_js_call(
    struct csl_js_context *context, const char *const *names, const char *first, const char *second, struct csl_js_result *result
);

// MARK: Settings of the desktop, by GSettings

struct csl_settings;
const struct csl_settings *csl_settings_load(void *handle, const char **missing);

// The value of a key. NULL or 0 if the schema or the key is missing. The caller frees the strings.
char *csl_settings_text(const struct csl_settings *settings, const char *schema, const char *key);
int csl_settings_number(const struct csl_settings *settings, const char *schema, const char *key, int is_boolean);
// The strings of a list, each followed by a line break.
char *csl_settings_list(const struct csl_settings *settings, const char *schema, const char *key);

// MARK: Services on the local network, by Avahi's client library

// An eventfd that interrupts a wait. Negative on failure.
int csl_bell_open(void);
// Interrupts the wait. May be called from any thread.
void csl_bell_ring(int bell);

struct csl_avahi;
const struct csl_avahi *csl_avahi_load(void *handle, const char **missing);

enum { CSL_AVAHI_IS_FOUND, CSL_AVAHI_IS_SILENT, CSL_AVAHI_IS_ABSENT, CSL_AVAHI_IS_INVALID, CSL_AVAHI_HAS_FAILED };

struct csl_avahi_failure {
    // Silent: no answer yet; the query continues. Absent: the bus, or the daemon on it, is missing. Invalid: the request is
    // invalid.
    int kind;
    char text[256];
};

// A connection to the daemon. For use by one thread. Returns NULL on failure. Each request may block until the daemon responds, for
// at most 25 s.
struct csl_avahi_client;
struct csl_avahi_client *csl_avahi_open(const struct csl_avahi *avahi, int bell, struct csl_avahi_failure *failure);
// Closes the connection. All questions must have been dropped.
void csl_avahi_close(struct csl_avahi_client *client);
// Waits until something arrives, the bell rings, or the timeout has passed. A negative timeout waits forever. Returns 0 if the
// daemon is lost.
int csl_avahi_wait(struct csl_avahi_client *client, int milliseconds, struct csl_avahi_failure *failure);

// The number of ways to ask a question, each with its own answers.
#define CSL_AVAHI_WAYS 3

struct csl_avahi_question;
// domain: NULL for the default. Returns NULL if memory is exhausted; all other failures are reported as events.
struct csl_avahi_question *csl_avahi_ask(
    struct csl_avahi_client *client, uint64_t number, const char *name, const char *type, const char *domain
);
// Ends a question. Its events that are already queued are still reported.
void csl_avahi_drop(struct csl_avahi_question *question);

struct csl_avahi_event {
    struct csl_avahi_event *next;
    uint64_t question;
    int way;
    struct csl_avahi_failure failure;
    // The interface on which the address is reached.
    uint32_t interface;
    uint16_t port;
    // The length of the address in bytes: 4 or 16.
    size_t address_length;
    uint8_t address[16];
    // Escaped by Avahi; empty if it is longer than a name can be.
    char host[1015];
    // The TXT record's data; empty if it is longer than 65,535 bytes.
    size_t text_length;
    uint8_t text[];
};
const uint8_t *csl_avahi_text(const struct csl_avahi_event *event);
// Returns the next event of waits and questions, in order; NULL if no event is left.
struct csl_avahi_event *csl_avahi_next(struct csl_avahi_client *client);
void csl_avahi_forget(struct csl_avahi_event *event);

// MARK: Content codings: brotli (RFC 7932) by libbrotlidec, zstd (RFC 8878) by libzstd

// The function table of a decoding library. Written once, never freed.
struct csl_codec;
// These two functions return NULL if the library lacks a function, or if memory is exhausted.
const struct csl_codec *csl_brotli_load(void *handle, const char **missing);
const struct csl_codec *csl_zstd_load(void *handle, const char **missing);

enum { CSL_DECODING_GOES_ON, CSL_DECODING_IS_OVER, CSL_DECODING_IS_DAMAGED, CSL_DECODING_HAS_NO_MEMORY };

// The result of a call.
struct csl_decoding {
    size_t read;
    size_t written;
    int outcome;
    // The library's description of the damage; never freed.
    const char *reason;
};

// The state of one body. For use by one thread at a time. Returns NULL if memory is exhausted.
void *csl_decoder_create(const struct csl_codec *codec);
void csl_decoder_free(const struct csl_codec *codec, void *decoder);
// Decodes until the output space is full, the input is used up, or a millisecond has passed. If the space is full, there may be
// more output even without more input; otherwise, unread input may be left for another call. After the end of a zstd frame, the
// next frame may begin.
void csl_decoder_decode(
    const struct csl_codec *codec, void *decoder, const uint8_t *bytes, size_t count, uint8_t *room, size_t capacity,
    struct csl_decoding *decoding
);

#endif
