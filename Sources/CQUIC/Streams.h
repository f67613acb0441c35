// SPDX-License-Identifier: Apache-2.0

// The requests' streams. The libraries keep pointers to a request's body until the server has acknowledged it, so a stream owns copies
// until then. What an event's receiver asks of a stream is done when no function of the libraries is running any more.

struct chunk {
    struct chunk *next;
    size_t count;
    uint8_t bytes[];
};

enum {
    // To do.
    SHUT = 1,
    SHUT_WRITING = 2,
    RESUME = 4,
    TELL_SENT = 8,
    TELL_STOPPED = 16,
    // States.
    IS_SILENT = 32,
    IS_UNKNOWN = 64,
    HAS_LAST = 128,
    IS_STOPPED = 256,
    IS_SHUT = 512,
    OWES_SENT = 1024,
    IS_TOUCHED = 2048,
    // For QUIC, but nghttp3 may still have to read it.
    IS_OVER = 4096,
};

struct stream {
    struct stream *next;
    struct stream *next_touched;
    int64_t id;
    unsigned flags;
    uint64_t code;
    // The body's bytes that the server has not acknowledged; `unread` are those that nghttp3 has not been given.
    struct chunk *first, *last, *unread;
    // Of the first chunk.
    size_t acknowledged;
};

static struct stream **bucket(struct cquic_connection *connection, int64_t id) {
    return &connection->buckets[(uint64_t)id / 4 & (connection->bucket_count - 1)];
}

static struct stream *find_stream(struct cquic_connection *connection, int64_t id) {
    if (!connection->bucket_count) return NULL;
    struct stream *stream = *bucket(connection, id);
    while (stream && stream->id != id) stream = stream->next;
    return stream;
}

// Makes room for one more stream.
static int grow_buckets(struct cquic_connection *connection) {
    if (connection->stream_count < connection->bucket_count) return 1;
    size_t count = connection->bucket_count ? connection->bucket_count * 2 : 16;
    struct stream **buckets = calloc(count, sizeof *buckets);
    if (!buckets) return 0;
    struct stream **old = connection->buckets;
    size_t old_count = connection->bucket_count;
    connection->buckets = buckets;
    connection->bucket_count = count;
    for (size_t index = 0; index < old_count; index++) {
        for (struct stream *stream = old[index], *next; stream; stream = next) {
            next = stream->next;
            stream->next = *bucket(connection, stream->id);
            *bucket(connection, stream->id) = stream;
        }
    }
    free(old);
    return 1;
}

static void insert_stream(struct cquic_connection *connection, struct stream *stream) {
    struct stream **head = bucket(connection, stream->id);
    stream->next = *head;
    *head = stream;
    connection->stream_count++;
}

static void free_stream(struct stream *stream) {
    for (struct chunk *chunk = stream->first, *next; chunk; chunk = next) {
        next = chunk->next;
        free(chunk);
    }
    free(stream);
}

static void touch(struct cquic_connection *connection, struct stream *stream, unsigned flags) {
    stream->flags |= flags;
    if (stream->flags & IS_TOUCHED) return;
    stream->flags |= IS_TOUCHED;
    stream->next_touched = NULL;
    *connection->last_touched = stream;
    connection->last_touched = &stream->next_touched;
}

static void forget_touched(struct cquic_connection *connection, struct stream *stream) {
    if (!(stream->flags & IS_TOUCHED)) return;
    struct stream **link = &connection->touched;
    while (*link != stream) link = &(*link)->next_touched;
    *link = stream->next_touched;
    if (!*link) connection->last_touched = link;
    stream->flags &= ~IS_TOUCHED;
}

static void remove_stream(struct cquic_connection *connection, struct stream *stream) {
    struct stream **link = bucket(connection, stream->id);
    while (*link != stream) link = &(*link)->next;
    *link = stream->next;
    connection->stream_count--;
    forget_touched(connection, stream);
    free_stream(stream);
}

static void free_streams(struct cquic_connection *connection) {
    for (size_t index = 0; index < connection->bucket_count; index++) {
        for (struct stream *stream = connection->buckets[index], *next; stream; stream = next) {
            next = stream->next;
            free_stream(stream);
        }
    }
    free(connection->buckets);
}

static void close_and_remove(struct cquic_connection *connection, struct stream *stream, uint64_t code) {
    if (!connection->failure.end && !(stream->flags & IS_UNKNOWN)) connection->events.closed(connection->context, stream->id, code);
    remove_stream(connection, stream);
}

// Returns 0 if the stream is gone.
static int shut(struct cquic_connection *connection, struct stream *stream, int only_writing) {
    stream->flags |= IS_STOPPED;
    // nghttp3 need not offer what ngtcp2 would refuse.
    api.nghttp3_conn_shutdown_stream_write(connection->http, stream->id);
    if (only_writing) {
        if (shut_stream_write(connection->quic, stream->id, stream->code)) fail_for_memory(connection);
        return 1;
    }
    stream->flags |= IS_SHUT;
    // This fails if the server reads no instructions about its table: then one that says that its references are void is not sent.
    api.nghttp3_conn_shutdown_stream_read(connection->http, stream->id);
    if (stream->flags & IS_OVER) {
        // Its fields wait for entries of the table that may never come.
        api.nghttp3_conn_set_stream_user_data(connection->http, stream->id, NULL);
        // Streams that were cancelled are not told about.
        remove_stream(connection, stream);
        return 0;
    }
    if (shut_stream(connection->quic, stream->id, stream->code)) fail_for_memory(connection);
    return 1;
}

// Does what was asked of streams, and tells what was noticed about them. No function of the libraries may be running.
static void settle(struct cquic_connection *connection) {
    if (!connection->has_begun) return;
    for (struct stream *stream; !connection->failure.end && (stream = connection->touched);) {
        forget_touched(connection, stream);
        unsigned flags = stream->flags;
        stream->flags &= ~(unsigned)(SHUT | SHUT_WRITING | RESUME | TELL_SENT | TELL_STOPPED);
        if (flags & (SHUT | SHUT_WRITING) && !shut(connection, stream, !(flags & SHUT))) continue;
        if (flags & RESUME && !(stream->flags & IS_STOPPED)) {
            int error = api.nghttp3_conn_resume_stream(connection->http, stream->id);
            if (error) fail_http(connection, error, stream->id);
        }
        if (stream->flags & IS_SILENT || connection->failure.end) continue;
        if (flags & TELL_STOPPED) connection->events.stopped(connection->context, stream->id, UINT64_MAX);
        else if (flags & TELL_SENT) connection->events.body_sent(connection->context, stream->id);
    }
}

// Ends what `enter` began.
static int leave(struct cquic_connection *connection) {
    settle(connection);
    connection->is_inside = 0;
    return !connection->failure.end;
}

// nghttp3 asks for more of a body.
static ptrdiff_t read_body(
    void *http, int64_t id, struct vector *vectors, size_t count, uint32_t *flags, void *context, void *user
) {
    (void)http;
    (void)id;
    struct cquic_connection *connection = context;
    struct stream *stream = user;
    if (!stream || stream->flags & IS_STOPPED) return HTTP_WOULD_BLOCK;
    size_t used = 0;
    for (; used < count && stream->unread; used++, stream->unread = stream->unread->next) {
        vectors[used] = (struct vector){stream->unread->bytes, stream->unread->count};
    }
    int is_end = !stream->unread && stream->flags & HAS_LAST;
    if (is_end) *flags |= DATA_END;
    // An empty answer that is not the end would abort the process.
    if (used || is_end) return (ptrdiff_t)used;
    // What was passed before is in packets, but for less than 4 KiB.
    if (stream->flags & OWES_SENT) {
        stream->flags &= ~(unsigned)OWES_SENT;
        touch(connection, stream, TELL_SENT);
    }
    return HTTP_WOULD_BLOCK;
}

static int body_acknowledged(void *http, int64_t id, uint64_t count, void *context, void *user) {
    (void)http;
    (void)id;
    (void)context;
    struct stream *stream = user;
    while (stream && stream->first && stream->first != stream->unread && count) {
        struct chunk *chunk = stream->first;
        size_t left = chunk->count - stream->acknowledged;
        if (count < left) {
            stream->acknowledged += (size_t)count;
            break;
        }
        count -= left;
        stream->acknowledged = 0;
        stream->first = chunk->next;
        if (!stream->first) stream->last = NULL;
        free(chunk);
    }
    return 0;
}
