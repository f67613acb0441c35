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

// Libraries of the system that are opened when they are first wanted, so that a program runs without them. Their interfaces are
// written down here and in the sources, from their documentation; none of their headers is needed to build.

// MARK: Opening

struct csl_opening {
    // Never closed again: none of these libraries is made to be unloaded.
    void *handle;
    // Where it was found, or what the dynamic linker says against it.
    char text[512];
};
// Opens the library of this name ("libfoo.so.2"), found as the dynamic linker finds things. 0 if it cannot be.
int csl_open(const char *name, struct csl_opening *opening);

// A function of an opened library, or NULL.
void *csl_find(void *handle, const char *name);

// MARK: GSSAPI (RFC 2743, RFC 2744)

// The functions of one GSSAPI library. Written once, never freed.
struct csl_gss;
// NULL if one of them is missing; `missing` then says which.
const struct csl_gss *csl_gss_load(void *handle, const char **missing);

// What one leg came to.
struct csl_gss_leg {
    uint32_t major_status;
    uint32_t minor_status;
    int is_done;
    int is_mutual;
    // Belongs to the context, until its next leg.
    const uint8_t *token;
    size_t token_length;
    // Of a failure.
    char text[1024];
};

// One security context on the initiator's side. To be used by one thread at a time; different contexts by as many as you like.
struct csl_gss_context;
// service is HTTP@host. user and password are NULL for whatever credential the user has; binding may be NULL.
struct csl_gss_context *csl_gss_context_create(
    const struct csl_gss *gss, const char *service, const char *user, const char *password, const uint8_t *binding,
    size_t binding_length
);
// Goes one leg further; token is NULL on the first. May talk to a KDC for as long as that takes. 1 unless it failed.
int csl_gss_context_step(struct csl_gss_context *context, const uint8_t *token, size_t length, struct csl_gss_leg *leg);
void csl_gss_context_free(struct csl_gss_context *context);

// MARK: Secret Service, by libsecret

struct csl_secret;
const struct csl_secret *csl_secret_load(void *handle, const char **missing);

struct csl_secret_attribute {
    const char *name;
    const char *value;
};
// At most this many in one item.
#define CSL_SECRET_MAXIMUM_ATTRIBUTES 31

// The error of a call, empty if there was none.
struct csl_secret_failure {
    // There is no session bus, or nobody on it who keeps secrets.
    int is_absent;
    char text[512];
};

// Whether there is a session bus to ask on.
int csl_secret_is_reachable(const struct csl_secret *secret, struct csl_secret_failure *failure);
// All of these return 1 unless they failed; they wait for the service, and it perhaps for the user who has to unlock it.
int csl_secret_store(
    const struct csl_secret *secret, const char *schema, const struct csl_secret_attribute *attributes, int count,
    const char *label, const char *value, struct csl_secret_failure *failure
);
// value: NULL if there is none, else to be given back to csl_secret_forget.
int csl_secret_look_up(
    const struct csl_secret *secret, const char *schema, const struct csl_secret_attribute *attributes, int count,
    char **value, struct csl_secret_failure *failure
);
void csl_secret_forget(const struct csl_secret *secret, char *value);
int csl_secret_remove(
    const struct csl_secret *secret, const char *schema, const struct csl_secret_attribute *attributes, int count,
    int *removed, struct csl_secret_failure *failure
);

// Calls `item` for every item that has these attributes, with all that it has. value is NULL where it cannot be read. All
// strings last for the call only.
typedef void (*csl_secret_visitor)(
    void *context, const char *label, const struct csl_secret_attribute *attributes, int count, const char *value
);
int csl_secret_list(
    const struct csl_secret *secret, const char *schema, const struct csl_secret_attribute *attributes, int count,
    csl_secret_visitor item, void *context, struct csl_secret_failure *failure
);

// libunbound: addresses that DNSSEC vouches for

struct csl_unbound;
const struct csl_unbound *csl_unbound_load(void *handle, const char **missing);

struct csl_unbound_failure {
    char text[512];
};
// A context that asks the system's name servers and trusts the key in a file; several threads may use it at a time.
void *csl_unbound_create(const struct csl_unbound *unbound, const char *key_file, struct csl_unbound_failure *failure);
void csl_unbound_free(const struct csl_unbound *unbound, void *context);

#define CSL_UNBOUND_MAXIMUM_ADDRESSES 16

struct csl_unbound_answer {
    int is_secure;
    int is_bogus;
    int is_name_unknown;
    // DNS's RCODE.
    int code;
    int ttl;
    int count;
    uint8_t addresses[CSL_UNBOUND_MAXIMUM_ADDRESSES][16];
    // Why an answer is bogus, or why there is none.
    char text[512];
};
int csl_unbound_look_up(
    const struct csl_unbound *unbound, void *context, const char *name, int is_v6, struct csl_unbound_answer *answer
);

// MARK: NetworkManager, by sd-bus

struct csl_bus;
const struct csl_bus *csl_bus_load(void *handle, const char **missing);

// A connection to the system's bus that hears what changes. To be used by one thread at a time.
struct csl_network_watch;
// At another address than the system's where that is not NULL. NULL where there is no bus. No call waits longer than these microseconds for
// an answer.
struct csl_network_watch *csl_network_watch_open(const struct csl_bus *functions, const char *address, uint64_t microseconds);
// Readable when there is something to process.
int csl_network_watch_fd(struct csl_network_watch *watch);
// Takes what came without waiting: 1 where something changed, 0 where not, negative where the bus is gone.
int csl_network_watch_process(struct csl_network_watch *watch);

struct csl_network_facts {
    int is_there;
    // NMMetered: 1 yes, 2 no, 3 yes by a guess, 4 no by a guess.
    uint32_t metered;
    // NMConnectivityState: 1 none, 2 behind a portal, 3 limited, 4 full.
    uint32_t connectivity;
};
// Negative where it did not answer in time, or not so.
int csl_network_watch_read(struct csl_network_watch *watch, struct csl_network_facts *facts);
void csl_network_watch_close(struct csl_network_watch *watch);

// c-ares: addresses from name servers, with the time that they hold

struct csl_ares;
const struct csl_ares *csl_ares_load(void *handle, const char **missing);

#define CSL_ARES_MAXIMUM_ADDRESSES 16

struct csl_ares_answer {
    // Somebody who knows has answered, if only that there is no address.
    int is_known;
    int ttl;
    int count;
    uint8_t addresses[CSL_ARES_MAXIMUM_ADDRESSES][16];
    // Why there is no answer.
    char text[256];
};

// What is asked for: A, AAAA.
enum { CSL_ARES_V4 = 1, CSL_ARES_V6 = 28 };

void csl_ares_look_up(
    const struct csl_ares *ares, const char *servers, const char *name, int type, int limit, struct csl_ares_answer *answer
);

// MARK: JavaScript, by JavaScriptCore

struct csl_js;
const struct csl_js *csl_js_load(void *handle, const char **missing);

// Texts between a script and its caller have at most this many bytes.
#define CSL_JS_MAXIMUM_TEXT 65536

// What a script asks by __ask(what, name): text to be freed, or NULL.
typedef char *(*csl_js_helper)(void *data, const char *what, const char *name);

struct csl_js_result {
    // To be freed; NULL where the answer is null.
    char *text;
    // What the script threw, or what is wrong with its answer.
    char failure[512];
};

// A script's world. To be used by one thread at a time. limit: seconds after which whatever runs is ended.
struct csl_js_context;
struct csl_js_context *csl_js_create(const struct csl_js *js, double limit, csl_js_helper helper, void *data);
void csl_js_free(struct csl_js_context *context);
// Both return 1 unless they failed. The script ends with a NUL, as do all texts.
int csl_js_run(struct csl_js_context *context, const char *script, struct csl_js_result *result);
// Calls the first function that is there; names ends with NULL.
int csl_js_call(
    struct csl_js_context *context, const char *const *names, const char *first, const char *second, struct csl_js_result *result
);

// MARK: Settings of the desktop, by GSettings

struct csl_settings;
const struct csl_settings *csl_settings_load(void *handle, const char **missing);

// What a key of a schema has; nothing where there is no such schema or key. Texts are to be freed.
char *csl_settings_text(const struct csl_settings *settings, const char *schema, const char *key);
int csl_settings_number(const struct csl_settings *settings, const char *schema, const char *key, int is_boolean);
// With a line break behind each.
char *csl_settings_list(const struct csl_settings *settings, const char *schema, const char *key);

// MARK: Services on the local network, by Avahi's client library

// An event descriptor that ends a wait. Negative on failure.
int csl_bell_open(void);
// From any thread.
void csl_bell_ring(int bell);

struct csl_avahi;
const struct csl_avahi *csl_avahi_load(void *handle, const char **missing);

enum { CSL_AVAHI_IS_FOUND, CSL_AVAHI_IS_SILENT, CSL_AVAHI_IS_ABSENT, CSL_AVAHI_IS_INVALID, CSL_AVAHI_HAS_FAILED };

struct csl_avahi_failure {
    // Silent: there is no answer yet, and the query continues. Absent: there is no bus, or no daemon on it. Invalid: what was asked for.
    int kind;
    char text[256];
};

// A connection to the daemon. To be used by one thread. NULL on failure; may wait for the daemon, 25 s at each question.
struct csl_avahi_client;
struct csl_avahi_client *csl_avahi_open(const struct csl_avahi *avahi, int bell, struct csl_avahi_failure *failure);
// No questions may be left.
void csl_avahi_close(struct csl_avahi_client *client);
// Until something comes, the bell rings, or this time is over; negative for as long as it takes. 0 where the daemon is lost.
int csl_avahi_wait(struct csl_avahi_client *client, int milliseconds, struct csl_avahi_failure *failure);

// A question is asked in so many ways, each with answers of its own.
#define CSL_AVAHI_WAYS 3

struct csl_avahi_question;
// domain: NULL for the default. NULL where there is no memory; what else goes wrong is an event.
struct csl_avahi_question *csl_avahi_ask(
    struct csl_avahi_client *client, uint64_t number, const char *name, const char *type, const char *domain
);
// Events of it may still come.
void csl_avahi_drop(struct csl_avahi_question *question);

struct csl_avahi_event {
    struct csl_avahi_event *next;
    uint64_t question;
    int way;
    struct csl_avahi_failure failure;
    // By which the address is reached.
    uint32_t interface;
    uint16_t port;
    // 4 or 16.
    size_t address_length;
    uint8_t address[16];
    // As Avahi escapes it; empty where it is longer than a name can be.
    char host[1015];
    // The TXT record's data; none where there is more than 65,535 bytes.
    size_t text_length;
    uint8_t text[];
};
const uint8_t *csl_avahi_text(const struct csl_avahi_event *event);
// What happened in waits and questions, in order; NULL where there is nothing more.
struct csl_avahi_event *csl_avahi_next(struct csl_avahi_client *client);
void csl_avahi_forget(struct csl_avahi_event *event);

// MARK: Content codings: brotli (RFC 7932) by libbrotlidec, zstd (RFC 8878) by libzstd

// The functions of one library that undoes a coding. Written once, never freed.
struct csl_codec;
// Both: NULL if a function is missing.
const struct csl_codec *csl_brotli_load(void *handle, const char **missing);
const struct csl_codec *csl_zstd_load(void *handle, const char **missing);

enum { CSL_DECODING_GOES_ON, CSL_DECODING_IS_OVER, CSL_DECODING_IS_DAMAGED, CSL_DECODING_HAS_NO_MEMORY };

// What a call came to.
struct csl_decoding {
    size_t read;
    size_t written;
    int outcome;
    // Of damage, in the library's words; never freed.
    const char *reason;
};

// What is known of one body. To be used by one thread at a time. NULL where there is no memory.
void *csl_decoder_create(const struct csl_codec *codec);
void csl_decoder_free(const struct csl_codec *codec, void *decoder);
// Reads what is needed to fill the room, or all that there is, or what a millisecond is enough for. Where it has filled the room there may be more, without more to read; where it has
// not, it may have left something to read for another call. After the end of a frame of zstd the next one may begin.
void csl_decoder_decode(
    const struct csl_codec *codec, void *decoder, const uint8_t *bytes, size_t count, uint8_t *room, size_t capacity,
    struct csl_decoding *decoding
);

#endif
