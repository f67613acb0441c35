// SPDX-License-Identifier: Apache-2.0

// What the owner asks of streams.

// Whether a field is marked as one that must never be indexed. nghttp3 indexes neither of the two fields here by itself (a cookie if it
// is short), and servers with quic-go's QPACK before September 2024 close the connection for a mark beside a name of the static table.
static int is_marked(const struct cquic_field *field) {
    struct cquic_bytes name = field->name;
    if (name.count == 13 && memcmp(name.start, "authorization", 13) == 0) return 0;
    return field->is_secret && !(name.count == 6 && memcmp(name.start, "cookie", 6) == 0);
}

static struct http_field *copy_fields(const struct cquic_field *fields, size_t count) {
    struct http_field *copies = calloc(count ? count : 1, sizeof *copies);
    for (size_t index = 0; copies && index < count; index++) {
        copies[index] = (struct http_field){
            .name = fields[index].name.start,
            .value = fields[index].value.start,
            .name_count = fields[index].name.count,
            .value_count = fields[index].value.count,
            .flags = is_marked(&fields[index]) ? NEVER_INDEX : 0,
        };
    }
    return copies;
}

static int64_t request(struct cquic_connection *connection, const struct cquic_field *fields, size_t count, int has_body) {
    enum { LIMIT_REACHED = -1, IMPOSSIBLE = -2 };
    if (connection->failure.end || !connection->is_complete || !connection->http || connection->is_going_away) return IMPOSSIBLE;
    if (!api.ngtcp2_conn_get_streams_bidi_left(connection->quic)) return LIMIT_REACHED;
    struct stream *stream = calloc(1, sizeof *stream);
    struct http_field *copies = copy_fields(fields, count);
    int error = 1;
    if (stream && copies && grow_buckets(connection)) {
        error = api.ngtcp2_conn_open_bidi_stream(connection->quic, &stream->id, stream);
    }
    if (error) {
        free(stream);
        free(copies);
        return error == QUIC_STREAM_ID_BLOCKED ? LIMIT_REACHED : IMPOSSIBLE;
    }
    insert_stream(connection, stream);
    struct http_reader reader = {read_body};
    error = api.nghttp3_conn_submit_request(connection->http, stream->id, copies, count, has_body ? &reader : NULL, stream);
    free(copies);
    if (!error) {
        if (!has_body) stream->flags |= HAS_LAST;
        return stream->id;
    }
    stream->flags |= IS_UNKNOWN | IS_SILENT;
    // H3_INTERNAL_ERROR
    stream->code = 0x102;
    touch(connection, stream, SHUT);
    settle(connection);
    return IMPOSSIBLE;
}

// Settles now, or when the function of the libraries that is running has come to its end.
static void settle_soon(struct cquic_connection *connection) {
    if (!connection->is_inside) settle(connection);
}

static int send_body(struct cquic_connection *connection, int64_t id, struct cquic_bytes piece, int is_last) {
    struct stream *stream = connection->failure.end ? NULL : find_stream(connection, id);
    if (!stream || stream->flags & (HAS_LAST | IS_STOPPED | SHUT | SHUT_WRITING)) return 0;
    if (piece.count) {
        if (piece.count > PTRDIFF_MAX - sizeof(struct chunk)) return 0;
        struct chunk *chunk = malloc(sizeof *chunk + piece.count);
        if (!chunk) return 0;
        chunk->next = NULL;
        chunk->count = piece.count;
        memcpy(chunk->bytes, piece.start, piece.count);
        if (stream->last) stream->last->next = chunk;
        else stream->first = chunk;
        stream->last = chunk;
        if (!stream->unread) stream->unread = chunk;
    } else if (!is_last) {
        return 1;
    }
    if (is_last) stream->flags |= HAS_LAST;
    stream->flags |= OWES_SENT;
    touch(connection, stream, RESUME);
    settle_soon(connection);
    return 1;
}

static int end_body(struct cquic_connection *connection, int64_t id) {
    return send_body(connection, id, (struct cquic_bytes){NULL, 0}, 1);
}

static void credit(struct cquic_connection *connection, int64_t id, uint64_t count) {
    if (connection->failure.end || !count) return;
    if (api.ngtcp2_conn_extend_max_stream_offset(connection->quic, id, count) == QUIC_NO_MEMORY) fail_for_memory(connection);
}

static void stop(struct cquic_connection *connection, int64_t id, uint64_t code, unsigned flags) {
    struct stream *stream = connection->failure.end ? NULL : find_stream(connection, id);
    if (!stream) return;
    stream->flags |= flags & IS_SILENT;
    if (stream->flags & IS_SHUT) return;
    // A greater number would abort the process.
    stream->code = code & greatest;
    stream->flags &= ~(unsigned)(TELL_SENT | TELL_STOPPED | OWES_SENT);
    touch(connection, stream, flags);
    settle_soon(connection);
}

static void cancel(struct cquic_connection *connection, int64_t id, uint64_t code, int is_silent) {
    stop(connection, id, code, is_silent ? SHUT | IS_SILENT : SHUT);
}

static void cancel_sending(struct cquic_connection *connection, int64_t id, uint64_t code) { stop(connection, id, code, SHUT_WRITING); }

static void prioritize(struct cquic_connection *connection, int64_t id, const char *text) {
    if (connection->failure.end || !connection->http || !find_stream(connection, id)) return;
    // The default, by another name: an empty text cannot be copied.
    if (!text[0]) text = "u=3";
#if NEW_INTERFACE
    api.nghttp3_conn_set_client_stream_priority(connection->http, id, (const uint8_t *)text, strlen(text));
#else
    struct priority priority = {.urgency = 3};
    if (api.nghttp3_http_parse_priority(&priority, (const uint8_t *)text, strlen(text))) return;
    api.nghttp3_conn_set_stream_priority(connection->http, id, &priority);
#endif
}
