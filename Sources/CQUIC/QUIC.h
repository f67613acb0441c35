// SPDX-License-Identifier: Apache-2.0

// What ngtcp2 reports. After a failure nothing is done any more, and a function that ngtcp2 is running comes to its end.

static int handshake_completed(void *quic, void *context) {
    (void)quic;
    struct cquic_connection *connection = context;
    struct datum protocol = {0};
    int error = api.gnutls_alpn_get_selected_protocol(connection->tls, &protocol);
    if (error || protocol.count != 2 || memcmp(protocol.start, "h3", 2) != 0) {
        // no_application_protocol (RFC 9001, section 8.1); GnuTLS accepts a server that chooses none.
        fail(connection, CQUIC_NO_PROTOCOL, 0x178, -1, "the server did not agree on HTTP/3");
        return 0;
    }
    if (connection->failure.end) return 0;
    connection->is_complete = 1;
    connection->events.handshake_completed(connection->context);
    return 0;
}

static int receive_tx_key(void *quic, int level, void *context) {
    (void)quic;
    struct cquic_connection *connection = context;
    if (level == LEVEL_APPLICATION && !connection->http && !connection->failure.end) begin_http(connection);
    return 0;
}

static int receive_stream_data(
    void *quic, uint32_t flags, int64_t id, uint64_t offset, const uint8_t *start, size_t count, void *context, void *user
) {
    (void)offset;
    (void)user;
    struct cquic_connection *connection = context;
    if (connection->failure.end || !connection->http) return 0;
    api.ngtcp2_conn_extend_max_offset(quic, count);
    ptrdiff_t used = api.nghttp3_conn_read_stream(connection->http, id, start, count, flags & RECEIVED_END);
    if (used < 0) {
        fail_http(connection, (int)used, id);
        return QUIC_CALLBACK;
    }
    // All but content, whose receiver widens the window.
    if (used) api.ngtcp2_conn_extend_max_stream_offset(quic, id, (uint64_t)used);
    return 0;
}

static int acknowledged_stream_data(void *quic, int64_t id, uint64_t offset, uint64_t count, void *context, void *user) {
    (void)quic;
    (void)offset;
    (void)user;
    struct cquic_connection *connection = context;
    int error = connection->http ? api.nghttp3_conn_add_ack_offset(connection->http, id, count) : 0;
    if (!error) return 0;
    fail_http(connection, error, -1);
    return QUIC_CALLBACK;
}

// Closes nghttp3's side of a stream, which reports the end of a request's stream: later, if its fields still wait for entries of the
// table.
static int close_stream(struct cquic_connection *connection, int64_t id, uint64_t code, struct stream *stream) {
    int error = connection->http ? api.nghttp3_conn_close_stream(connection->http, id, code) : HTTP_STREAM_NOT_FOUND;
    if (!error) return 0;
    if (error == HTTP_STREAM_NOT_FOUND) {
        if (stream) remove_stream(connection, stream);
        return 0;
    }
    if (connection->failure.end) return 0;
    fail_http(connection, error, -1);
    return QUIC_CALLBACK;
}

static int stream_closed(void *quic, uint32_t flags, int64_t id, uint64_t code, void *context, void *user) {
    struct cquic_connection *connection = context;
    struct stream *stream = user;
    if (stream) stream->flags |= IS_OVER;
    if ((id & 3) == 3) api.ngtcp2_conn_extend_max_streams_uni(quic, 1);
    // The code of an end without one is H3_NO_ERROR.
    return close_stream(connection, id, flags & HAS_CODE ? code : 0x100, stream);
}

static int stream_reset(void *quic, int64_t id, uint64_t size, uint64_t code, void *context, void *user) {
    (void)quic;
    (void)size;
    struct cquic_connection *connection = context;
    // The old interface does not report the end of the server's streams.
    if ((id & 3) == 3) return close_stream(connection, id, code, NULL);
    if (connection->http) api.nghttp3_conn_shutdown_stream_read(connection->http, id);
    if (audible(connection, user)) connection->events.reset(connection->context, id, code);
    return 0;
}

static int extend_stream_data(void *quic, int64_t id, uint64_t limit, void *context, void *user) {
    (void)quic;
    (void)limit;
    (void)user;
    struct cquic_connection *connection = context;
    int error = connection->http ? api.nghttp3_conn_unblock_stream(connection->http, id) : 0;
    if (!error) return 0;
    fail_http(connection, error, -1);
    return QUIC_CALLBACK;
}

static int extend_local_streams_bidi(void *quic, uint64_t count, void *context) {
    (void)quic;
    struct cquic_connection *connection = context;
    if (!connection->failure.end) connection->events.requests_allowed(connection->context, count);
    return 0;
}

static int receive_stateless_reset(void *quic, const void *reset, void *context) {
    (void)quic;
    (void)reset;
    struct cquic_connection *connection = context;
    connection->was_reset = 1;
    return 0;
}

enum { RANDOM_NONCE = 0, RANDOM_SECRET = 1 };

static void random_bytes(uint8_t *start, size_t count, const void *context) {
    (void)context;
    // These need not be secret.
    if (api.gnutls_rnd(RANDOM_NONCE, start, count)) memset(start, 0, count);
}

static int new_connection_id(void *quic, struct cid *id, uint8_t *token, size_t count, void *context) {
    (void)quic;
    (void)context;
    if (count > sizeof id->bytes) return QUIC_CALLBACK;
    id->count = count;
    int error = api.gnutls_rnd(RANDOM_SECRET, id->bytes, count);
    if (!error) error = api.gnutls_rnd(RANDOM_SECRET, token, 16);
    return error ? QUIC_CALLBACK : 0;
}

#define SET_OURS(name) .name = (function)(name),
#define SET_CRYPTO(name, symbol) .name = api.symbol,
#define SET_NONE(name)

static struct quic_callbacks quic_callbacks(void) {
    return (struct quic_callbacks){QUIC_CALLBACKS(SET_OURS, SET_CRYPTO, SET_NONE)};
}
