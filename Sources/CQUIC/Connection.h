// SPDX-License-Identifier: Apache-2.0

// A connection, and why it is over.

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

struct stream;

struct cquic_connection {
    struct reference reference;
    void *quic;
    // NULL until the keys to send with are there.
    void *http;
    void *tls;
    void *credentials;
    struct cquic_events events;
    void *context;
    struct cquic_failure failure;
    // The library failed halfway through a packet, and must not be asked for another one.
    int cannot_write;

    // The latest instant that the libraries were given: they abort the process if time goes backward.
    uint64_t now;
    union address local, remote;
    struct path path;
    uint64_t max_field_section_size;
    uint64_t keep_alive;
    // 0 for none.
    uint64_t idle_timeout;
    int owes_ping;

    // A function of the library is running: streams are only touched, and settled later.
    int is_inside;
    int is_complete;
    // Something was written since the handshake was complete. ngtcp2 1.11 forgets resets of streams that are asked for before.
    int has_begun;
    int is_going_away;
    int was_reset;
    int was_asked_for_certificate;
    int presented_certificate;

    // The streams by their numbers, and those that have something to settle.
    struct stream **buckets;
    size_t bucket_count;
    size_t stream_count;
    struct stream *touched;
    struct stream **last_touched;

    // A packet that did not fit into the batch before it.
    size_t held_size;
    uint8_t held_ecn;
    uint8_t held[MAXIMUM_PACKET];

    struct certificate *certificates;
    size_t certificate_count;
    void *key;
    struct datum *issuers;
    size_t issuer_count;
};

static void *quic_of(struct reference *reference) { return reference->connection->quic; }

// Only the first failure counts.
static void fail(struct cquic_connection *connection, enum cquic_end end, uint64_t code, int64_t stream, const char *text) {
    struct cquic_failure *failure = &connection->failure;
    if (failure->end) return;
    *failure = (struct cquic_failure){.end = end, .code = code, .stream = stream};
    snprintf(failure->text, sizeof failure->text, "%s", text ? text : "");
}

static void fail_for_memory(struct cquic_connection *connection) { fail(connection, CQUIC_FAILURE, 1, -1, "out of memory"); }

// The server has closed the connection, or no longer knows it.
static void fail_drained(struct cquic_connection *connection) {
    if (connection->was_reset) {
        fail(connection, CQUIC_STATELESS_RESET, 0, -1, "stateless reset");
        return;
    }
    struct close_error error = received_close(connection->quic);
    char text[sizeof connection->failure.text];
    size_t count = error.reason ? error.reason_size : 0;
    if (count >= sizeof text) count = sizeof text - 1;
    if (count) memcpy(text, error.reason, count);
    text[count] = 0;
    fail(connection, error.type == 1 ? CQUIC_CLOSED_BY_APPLICATION : CQUIC_CLOSED_BY_TRANSPORT, error.code, -1, text);
}

static void fail_quic(struct cquic_connection *connection, int error) {
    const char *text = api.ngtcp2_strerror(error);
    uint64_t code = api.ngtcp2_err_infer_quic_transport_error_code(error);
    switch (error) {
    case QUIC_DRAINING: fail_drained(connection); break;
    case QUIC_IDLE: fail(connection, CQUIC_IDLE_TIMEOUT, 0, -1, text); break;
    case QUIC_HANDSHAKE_TIMEOUT: fail(connection, CQUIC_HANDSHAKE_TIMEOUT, 0, -1, text); break;
    case QUIC_VERSION_NEGOTIATION: fail(connection, CQUIC_NO_VERSION, 0, -1, text); break;
    case QUIC_CRYPTO: {
        uint8_t alert = api.ngtcp2_conn_get_tls_alert(connection->quic);
        // internal_error, if GnuTLS named none.
        if (!alert) alert = 80;
        fail(connection, CQUIC_TLS, alert, -1, api.gnutls_alert_get_name(alert));
        break;
    }
    case QUIC_INVALID_ARGUMENT:
    case QUIC_INVALID_STATE:
    case QUIC_NO_BUFFER:
    case QUIC_PACKET_NUMBERS_EXHAUSTED:
    case QUIC_CLOSING:
    case QUIC_INTERNAL:
    case QUIC_DROP:
    case QUIC_LIMIT_OF_KEYS:
    case QUIC_NO_PATH:
    case QUIC_NO_MEMORY:
    case QUIC_CALLBACK: fail(connection, CQUIC_FAILURE, code, -1, text); break;
    default: fail(connection, CQUIC_VIOLATION_OF_TRANSPORT, code, -1, text);
    }
}

static int is_request(int64_t id) { return id >= 0 && (id & 3) == 0; }

static void fail_http(struct cquic_connection *connection, int error, int64_t id) {
    int is_ours = error == HTTP_NO_MEMORY || error == HTTP_CALLBACK;
    fail(
        connection, is_ours ? CQUIC_FAILURE : CQUIC_VIOLATION_OF_APPLICATION, api.nghttp3_err_infer_quic_app_error_code(error),
        !is_ours && is_request(id) ? id : -1, api.nghttp3_strerror(error)
    );
}

// Begins a call of the owner that may run functions of the library with callbacks. Returns 0 if the connection is over.
static int enter(struct cquic_connection *connection, uint64_t now) {
    // Sums of instants and timeouts must not overflow.
    if (now > greatest) now = greatest;
    if (now > connection->now) connection->now = now;
    if (connection->failure.end) return 0;
    connection->is_inside = 1;
    return 1;
}
