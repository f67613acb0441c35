// SPDX-License-Identifier: Apache-2.0

#ifndef C_SYSTEM_LIBRARIES_H
#define C_SYSTEM_LIBRARIES_H

#include <stddef.h>
#include <stdint.h>

// System libraries that are opened on first use, so that a program runs without them. Their interfaces are declared here and in the
// sources, from their documentation; building needs none of their headers.

// MARK: Opening

struct clib_opening {
    // Never closed: none of these libraries supports being unloaded.
    void *handle;
    // The path of the library, or the dynamic linker's error.
    char text[512];
};
// Opens a library by name ("libfoo.so.2"), with the search rules of the dynamic linker. Returns 0 on failure.
int clib_open(const char *name, struct clib_opening *opening);
// Whether libraries can be opened at all; not by a program that is linked statically.
int clib_can_open(void);

// MARK: GSSAPI (RFC 2743, RFC 2744)

// The function table of a GSSAPI library. Written once, never freed.
struct clib_gss;
// Returns NULL if a function is missing, and sets `missing` to its name.
const struct clib_gss *clib_gss_load(void *handle, const char **missing);

// The result of one step.
struct clib_gss_leg {
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
struct clib_gss_context;
// service is HTTP@host. If user and password are NULL, the user's default credential is used; binding may be NULL.
struct clib_gss_context *clib_gss_context_create(
    const struct clib_gss *gss, const char *service, const char *user, const char *password, const uint8_t *binding,
    size_t binding_length
);
// Performs one step. token is NULL on the first step. May block until a KDC responds. Returns 1 on success, 0 on failure.
int clib_gss_context_step(struct clib_gss_context *context, const uint8_t *token, size_t length, struct clib_gss_leg *leg);
void clib_gss_context_free(struct clib_gss_context *context);

// MARK: Secret Service, by libsecret

struct clib_secret;
const struct clib_secret *clib_secret_load(void *handle, const char **missing);

struct clib_secret_attribute {
    const char *name;
    const char *value;
};
// The maximum number of attributes of an item.
#define CLIB_SECRET_MAXIMUM_ATTRIBUTES 31

// The error of a call; empty if it succeeded.
struct clib_secret_failure {
    // There is no session bus, or no secret service on it.
    int is_absent;
    char text[512];
};

// Whether a secret service can be reached on the session bus.
int clib_secret_is_reachable(const struct clib_secret *secret, struct clib_secret_failure *failure);
// These functions return 1 on success, 0 on failure. They block until the service responds, which may take until the user unlocks
// the keyring.
int clib_secret_store(
    const struct clib_secret *secret, const char *schema, const struct clib_secret_attribute *attributes, int count,
    const char *label, const char *value, struct clib_secret_failure *failure
);
int clib_secret_remove(
    const struct clib_secret *secret, const char *schema, const struct clib_secret_attribute *attributes, int count,
    int *removed, struct clib_secret_failure *failure
);

// clib_secret_list calls its visitor for every item that has the given attributes, with all attributes of the item. value is NULL if
// the secret cannot be read. All strings are valid only during the call.
typedef void (*clib_secret_visitor)(
    void *context, const char *label, const struct clib_secret_attribute *attributes, int count, const char *value
);
int clib_secret_list(
    const struct clib_secret *secret, const char *schema, const struct clib_secret_attribute *attributes, int count,
    clib_secret_visitor item, void *context, struct clib_secret_failure *failure
);

// libunbound: addresses validated with DNSSEC

struct clib_unbound;
const struct clib_unbound *clib_unbound_load(void *handle, const char **missing);

struct clib_unbound_failure {
    char text[512];
};
// A context that asks the system's name servers, and trusts the key in a file. Several threads may use it at the same time.
void *clib_unbound_create(const struct clib_unbound *unbound, const char *key_file, struct clib_unbound_failure *failure);
void clib_unbound_free(const struct clib_unbound *unbound, void *context);

#define CLIB_UNBOUND_MAXIMUM_ADDRESSES 16

struct clib_unbound_answer {
    int is_secure;
    int is_bogus;
    int is_name_unknown;
    // The RCODE of the DNS response.
    int code;
    int ttl;
    int count;
    uint8_t addresses[CLIB_UNBOUND_MAXIMUM_ADDRESSES][16];
    // Why the answer is bogus or missing.
    char text[512];
};
int clib_unbound_look_up(
    const struct clib_unbound *unbound, void *context, const char *name, int is_v6, struct clib_unbound_answer *answer
);
// Asks for the records of a type. Returns the length of the whole reply, 0 if there is none, and -1 if the question cannot be asked.
int clib_unbound_ask(
    const struct clib_unbound *unbound, void *context, const char *name, int type, uint8_t *message, int capacity,
    struct clib_unbound_answer *answer
);

// MARK: NetworkManager, by sd-bus

struct clib_bus;
const struct clib_bus *clib_bus_load(void *handle, const char **missing);

// A connection to the system bus, notified when NetworkManager starts, ends or changes a property. For use by one thread at a time.
struct clib_network_watch;
// address: NULL for the system bus. Returns NULL if there is no bus. Calls wait for an answer for at most `microseconds`.
struct clib_network_watch *clib_network_watch_open(const struct clib_bus *functions, const char *address, uint64_t microseconds);
// A descriptor that is readable when there is something to process.
int clib_network_watch_fd(struct clib_network_watch *watch);
// Processes what has arrived, without blocking. Returns 1 if something changed, 0 if not, negative if the bus is gone.
int clib_network_watch_process(struct clib_network_watch *watch);

struct clib_network_facts {
    int is_there;
    // NMMetered: 1 yes, 2 no, 3 guessed yes, 4 guessed no.
    uint32_t metered;
    // NMConnectivityState: 1 none, 2 behind a portal, 3 limited, 4 full.
    uint32_t connectivity;
};
// Returns a negative value if the answer is invalid or does not arrive in time.
int clib_network_watch_read(struct clib_network_watch *watch, struct clib_network_facts *facts);
void clib_network_watch_close(struct clib_network_watch *watch);

// c-ares: addresses from name servers, with their TTL

struct clib_ares;
const struct clib_ares *clib_ares_load(void *handle, const char **missing);

#define CLIB_ARES_MAXIMUM_ADDRESSES 16

struct clib_ares_answer {
    // Whether a name server has answered, even if only that there is no address.
    int is_known;
    int ttl;
    int count;
    uint8_t addresses[CLIB_ARES_MAXIMUM_ADDRESSES][16];
    // Why there is no answer.
    char text[256];
};

// The record types: A, AAAA.
enum { CLIB_ARES_V4 = 1, CLIB_ARES_V6 = 28 };

void clib_ares_look_up(
    const struct clib_ares *ares, const char *servers, const char *name, int type, int limit, struct clib_ares_answer *answer
);
// Asks for the records of a type. Returns the length of the whole reply, which may say that there are none, or 0: `answer` then says
// why there is no reply.
int clib_ares_ask(
    const struct clib_ares *ares, const char *servers, const char *name, int type, int limit, uint8_t *message, int capacity,
    struct clib_ares_answer *answer
);

// MARK: The stub resolver of glibc (resolver(3))

struct clib_resolver;
// Returns NULL if the C library has no such functions.
const struct clib_resolver *clib_resolver_load(void);
// Asks the system's name servers for the records of a type, for about ten seconds at most. Returns the length of the whole reply, which
// may say that there are none, or 0.
int clib_resolver_ask(const struct clib_resolver *resolver, const char *name, int type, uint8_t *message, int capacity);

// MARK: JavaScript, by JavaScriptCore

struct clib_js;
const struct clib_js *clib_js_load(void *handle, const char **missing);

// The maximum size in bytes of strings between a script and its caller.
#define CLIB_JS_MAXIMUM_TEXT 65536

// Answers a script's __ask(what, name). Returns text that the caller frees, or NULL.
typedef char *(*clib_js_helper)(void *data, const char *what, const char *name);

struct clib_js_result {
    // The result of clib_js_call, which the caller frees; NULL if the result is null, or after a failure.
    char *text;
    // The exception that the script threw, or what is wrong with its result.
    char failure[512];
};

// A script's context. For use by one thread at a time. limit: the seconds after which a running script is terminated.
struct clib_js_context;
struct clib_js_context *clib_js_create(const struct clib_js *js, double limit, clib_js_helper helper, void *data);
void clib_js_free(struct clib_js_context *context);
// This function and clib_js_call return 1 on success, 0 on failure. All strings, including the script, end with a NUL.
int clib_js_run(struct clib_js_context *context, const char *script, struct clib_js_result *result);
// Calls the first of the functions that exists. names ends with NULL.
int clib_js_call(
    struct clib_js_context *context, const char *const *names, const char *first, const char *second, struct clib_js_result *result
);

// MARK: Settings of the desktop, by GSettings

struct clib_settings;
const struct clib_settings *clib_settings_load(void *handle, const char **missing);

// The value of a key. NULL or 0 if the schema or the key is missing. The caller frees the strings.
char *clib_settings_text(const struct clib_settings *settings, const char *schema, const char *key);
int clib_settings_number(const struct clib_settings *settings, const char *schema, const char *key, int is_boolean);
// The strings of a list, each followed by a line break.
char *clib_settings_list(const struct clib_settings *settings, const char *schema, const char *key);

// MARK: Services on the local network, by Avahi's client library

// An eventfd that interrupts a wait. Negative on failure.
int clib_bell_open(void);
// Interrupts the wait. May be called from any thread.
void clib_bell_ring(int bell);

struct clib_avahi;
const struct clib_avahi *clib_avahi_load(void *handle, const char **missing);

enum { CLIB_AVAHI_IS_FOUND, CLIB_AVAHI_IS_SILENT, CLIB_AVAHI_IS_ABSENT, CLIB_AVAHI_IS_INVALID, CLIB_AVAHI_HAS_FAILED };

struct clib_avahi_failure {
    // Silent: no answer yet; the query continues. Absent: the bus, or the daemon on it, is missing. Invalid: the request is
    // invalid.
    int kind;
    char text[256];
};

// A connection to the daemon. For use by one thread. Returns NULL on failure. Each request may block until the daemon responds, for
// at most 25 s.
struct clib_avahi_client;
struct clib_avahi_client *clib_avahi_open(const struct clib_avahi *avahi, int bell, struct clib_avahi_failure *failure);
// Closes the connection. All questions must have been dropped.
void clib_avahi_close(struct clib_avahi_client *client);
// Waits until something arrives, the bell rings, or the timeout has passed. A negative timeout waits forever. Returns 0 if the
// daemon is lost.
int clib_avahi_wait(struct clib_avahi_client *client, int milliseconds, struct clib_avahi_failure *failure);

// The number of ways to ask a question, each with its own answers.
#define CLIB_AVAHI_WAYS 3

struct clib_avahi_question;
// domain: NULL for the default. Returns NULL if memory is exhausted; all other failures are reported as events.
struct clib_avahi_question *clib_avahi_ask(
    struct clib_avahi_client *client, uint64_t number, const char *name, const char *type, const char *domain
);
// Ends a question. Its events that are already queued are still reported.
void clib_avahi_drop(struct clib_avahi_question *question);

struct clib_avahi_event {
    struct clib_avahi_event *next;
    uint64_t question;
    int way;
    struct clib_avahi_failure failure;
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
const uint8_t *clib_avahi_text(const struct clib_avahi_event *event);
// Returns the next event of waits and questions, in order; NULL if no event is left.
struct clib_avahi_event *clib_avahi_next(struct clib_avahi_client *client);
void clib_avahi_forget(struct clib_avahi_event *event);

// MARK: Content codings: brotli (RFC 7932) by libbrotlidec, zstd (RFC 8878) by libzstd

// The function table of a decoding library. Written once, never freed.
struct clib_codec;
// These two functions return NULL if the library lacks a function, or if memory is exhausted.
const struct clib_codec *clib_brotli_load(void *handle, const char **missing);
const struct clib_codec *clib_zstd_load(void *handle, const char **missing);

enum { CLIB_DECODING_GOES_ON, CLIB_DECODING_IS_OVER, CLIB_DECODING_IS_DAMAGED, CLIB_DECODING_HAS_NO_MEMORY };

// The result of a call.
struct clib_decoding {
    size_t read;
    size_t written;
    int outcome;
    // The library's description of the damage; never freed.
    const char *reason;
};

// The state of one body. For use by one thread at a time. Returns NULL if memory is exhausted.
void *clib_decoder_create(const struct clib_codec *codec);
void clib_decoder_free(const struct clib_codec *codec, void *decoder);
// Decodes until the output space is full, the input is used up, or a millisecond has passed. If the space is full, there may be
// more output even without more input; otherwise, unread input may be left for another call. After the end of a zstd frame, the
// next frame may begin.
void clib_decoder_decode(
    const struct clib_codec *codec, void *decoder, const uint8_t *bytes, size_t count, uint8_t *room, size_t capacity,
    struct clib_decoding *decoding
);

#endif
