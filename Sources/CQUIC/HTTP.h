// SPDX-License-Identifier: Apache-2.0

// What nghttp3 reports. The pointer to a stream is NULL for the server's streams, and for a request's stream that is forgotten.

// The stream whose events are reported, or NULL.
static struct stream *audible(struct cquic_connection *connection, void *user) {
    struct stream *stream = user;
    return stream && !connection->failure.end && !(stream->flags & IS_SILENT) ? stream : NULL;
}

static int http_data(void *http, int64_t id, const uint8_t *start, size_t count, void *context, void *user) {
    (void)http;
    struct cquic_connection *connection = context;
    if (!audible(connection, user)) return 0;
    connection->events.content(connection->context, id, (struct cquic_bytes){start, count});
    return 0;
}

// Bytes that nghttp3 has kept for a while; the connection's window has long been refilled.
static int http_deferred(void *http, int64_t id, size_t count, void *context, void *user) {
    (void)http;
    (void)user;
    struct cquic_connection *connection = context;
    api.ngtcp2_conn_extend_max_stream_offset(connection->quic, id, count);
    return 0;
}

static int section_began(struct cquic_connection *connection, int64_t id, void *user, int is_trailers) {
    if (audible(connection, user)) connection->events.section_began(connection->context, id, is_trailers);
    return 0;
}

static int http_head_began(void *http, int64_t id, void *context, void *user) {
    (void)http;
    return section_began(context, id, user, 0);
}

static int http_trailers_began(void *http, int64_t id, void *context, void *user) {
    (void)http;
    return section_began(context, id, user, 1);
}

static int http_field(void *http, int64_t id, int32_t token, void *name, void *value, uint8_t flags, void *context, void *user) {
    (void)http;
    (void)token;
    (void)flags;
    struct cquic_connection *connection = context;
    if (!audible(connection, user)) return 0;
    struct vector names = api.nghttp3_rcbuf_get_buf(name), values = api.nghttp3_rcbuf_get_buf(value);
    connection->events.field(
        connection->context, id, (struct cquic_bytes){names.start, names.count}, (struct cquic_bytes){values.start, values.count}
    );
    return 0;
}

static int http_section_ended(void *http, int64_t id, int ends, void *context, void *user) {
    (void)http;
    struct cquic_connection *connection = context;
    if (audible(connection, user)) connection->events.section_ended(connection->context, id, ends);
    return 0;
}

static int http_ended(void *http, int64_t id, void *context, void *user) {
    (void)http;
    struct cquic_connection *connection = context;
    if (audible(connection, user)) connection->events.response_ended(connection->context, id);
    return 0;
}

// A stream that nghttp3 reads no further, as it is of an unknown type or its message is malformed.
static int http_stop_sending(void *http, int64_t id, uint64_t code, void *context, void *user) {
    (void)http;
    (void)user;
    struct cquic_connection *connection = context;
    return shut_stream_read(connection->quic, id, code) ? HTTP_CALLBACK : 0;
}

// A malformed message.
static int http_reset(void *http, int64_t id, uint64_t code, void *context, void *user) {
    struct cquic_connection *connection = context;
    api.nghttp3_conn_shutdown_stream_write(http, id);
    if (shut_stream_write(connection->quic, id, code)) return HTTP_CALLBACK;
    struct stream *stream = user;
    if (stream) stream->flags |= IS_STOPPED;
    if (audible(connection, user)) connection->events.reset(connection->context, id, code);
    return 0;
}

static int http_stream_closed(void *http, int64_t id, uint64_t code, void *context, void *user) {
    (void)http;
    (void)id;
    if (user) close_and_remove(context, user, code);
    return 0;
}

static int http_going_away(void *http, int64_t id, void *context) {
    (void)http;
    struct cquic_connection *connection = context;
    connection->is_going_away = 1;
    if (!connection->failure.end) connection->events.going_away(connection->context, id);
    return 0;
}

#if NEW_INTERFACE
static int http_settings(void *http, const void *received, void *context) {
    (void)http;
    struct cquic_connection *connection = context;
    const struct http_settings *settings = received;
    uint64_t size = settings->max_field_section_size;
    if (!connection->failure.end) {
        connection->events.settings(
            connection->context, size >= greatest ? UINT64_MAX : size, settings->enables_connect_protocol != 0
        );
    }
    return 0;
}
#endif

// Begins HTTP/3. The server's first streams may come in the datagram that completes the handshake, so this is done as soon as there are
// keys to send with.
static int begin_http(struct cquic_connection *connection) {
    struct http_callbacks callbacks = {
        .acknowledged = body_acknowledged,
        .stream_closed = http_stream_closed,
        .data = http_data,
        .deferred = http_deferred,
        .head_began = http_head_began,
        .head_field = http_field,
        .head_ended = http_section_ended,
        .trailers_began = http_trailers_began,
        .trailer = http_field,
        .trailers_ended = http_section_ended,
        .stop_sending = http_stop_sending,
        .ended = http_ended,
        .reset = http_reset,
        .going_away = http_going_away,
#if NEW_INTERFACE
        .settings = http_settings,
#endif
    };
    struct http_settings settings = {0};
    api.nghttp3_settings_default_versioned(VERSION, &settings);
    settings.max_field_section_size = connection->max_field_section_size;
    settings.table_capacity = 4096;
    settings.blocked_streams = 100;
    void *http = NULL;
    int error = api.nghttp3_conn_client_new_versioned(&http, VERSION, &callbacks, VERSION, &settings, NULL, connection);
    int64_t ids[3];
    for (size_t index = 0; !error && index < 3; index++) {
        if (api.ngtcp2_conn_open_uni_stream(connection->quic, &ids[index], NULL) == 0) continue;
        // H3_GENERAL_PROTOCOL_ERROR (RFC 9114, section 6.2).
        fail(connection, CQUIC_VIOLATION_OF_APPLICATION, 0x101, -1, "too few streams are allowed");
        api.nghttp3_conn_del(http);
        return 0;
    }
    if (!error) error = api.nghttp3_conn_bind_control_stream(http, ids[0]);
    if (!error) error = api.nghttp3_conn_bind_qpack_streams(http, ids[1], ids[2]);
    if (error) {
        fail_http(connection, error, -1);
        if (http) api.nghttp3_conn_del(http);
        return 0;
    }
    connection->http = http;
    return 1;
}
