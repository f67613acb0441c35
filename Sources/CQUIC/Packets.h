// SPDX-License-Identifier: Apache-2.0

// Datagrams and timers.

static int receive(struct cquic_connection *connection, struct cquic_bytes datagram, uint8_t ecn, uint64_t now) {
    if (!enter(connection, now)) return 0;
    struct packet_info info = {.ecn = ecn & 3};
    // An empty one is an error for the old interface.
    if (datagram.count) {
        int error = api.ngtcp2_conn_read_pkt_versioned(
            connection->quic, &connection->path, VERSION, &info, datagram.start, datagram.count, connection->now
        );
        if (error) fail_quic(connection, error);
    }
    return leave(connection);
}

static uint64_t expiry(struct cquic_connection *connection) {
    return connection->failure.end ? UINT64_MAX : api.ngtcp2_conn_get_expiry(connection->quic);
}

static int expire(struct cquic_connection *connection, uint64_t now) {
    if (!enter(connection, now)) return 0;
    int error = api.ngtcp2_conn_handle_expiry(connection->quic, connection->now);
    if (error) fail_quic(connection, error);
    return leave(connection);
}

// ngtcp2 refuses more of a stream: the server has stopped it, or it is over.
static void note_stop(struct cquic_connection *connection, int64_t id) {
    api.nghttp3_conn_shutdown_stream_write(connection->http, id);
    if (!is_request(id)) {
        // H3_CLOSED_CRITICAL_STREAM
        fail(connection, CQUIC_VIOLATION_OF_APPLICATION, 0x104, -1, "the server has stopped a critical stream");
        return;
    }
    struct stream *stream = find_stream(connection, id);
    if (!stream || stream->flags & IS_STOPPED) return;
    stream->flags |= IS_STOPPED;
    touch(connection, stream, TELL_STOPPED);
}

// All of the request is in packets.
static void note_end(struct cquic_connection *connection, int64_t id) {
    struct stream *stream = find_stream(connection, id);
    if (!stream || !(stream->flags & OWES_SENT)) return;
    stream->flags &= ~(unsigned)OWES_SENT;
    touch(connection, stream, TELL_SENT);
}

// Writes one packet of at most MAXIMUM_PACKET bytes. Returns its size; 0 if there is nothing to write, or the connection is over. Once
// a packet was begun, ngtcp2 must be called with the same buffer until it is complete, and no other of its functions in between.
static size_t write_packet(struct cquic_connection *connection, uint8_t *buffer, struct packet_info *info) {
    enum { VECTORS = 16 };
    void *quic = connection->quic;
    for (int is_begun = 0;;) {
        struct vector vectors[VECTORS];
        int64_t id = -1;
        int is_end = 0;
        ptrdiff_t count = 0, taken = -1;
        // nghttp3 would not learn when a window of the connection that is used up has been widened.
        if (connection->http && !connection->failure.end && api.ngtcp2_conn_get_max_data_left(quic)) {
            count = api.nghttp3_conn_writev_stream(connection->http, &id, &is_end, vectors, VECTORS);
            if (count < 0) {
                fail_http(connection, (int)count, -1);
                count = 0;
                id = -1;
            }
        }
        if (connection->failure.end && !is_begun) return 0;
        size_t offered = 0;
        for (ptrdiff_t index = 0; index < count; index++) offered += vectors[index].count;
        ptrdiff_t size = api.ngtcp2_conn_writev_stream_versioned(
            quic, NULL, VERSION, info, buffer, MAXIMUM_PACKET, &taken, WRITE_MORE | (is_end ? WRITE_END : 0), id, vectors, (size_t)count,
            connection->now
        );
        if (taken >= 0 && id >= 0) {
            int error = api.nghttp3_conn_add_write_offset(connection->http, id, (size_t)taken);
            if (error) fail_http(connection, error, id);
            if (is_end && (size_t)taken == offered) note_end(connection, id);
        }
        if (size >= 0) return (size_t)size;
        if (size == QUIC_WRITE_MORE) {
            is_begun = 1;
        } else if (size == QUIC_STREAM_DATA_BLOCKED && id >= 0) {
            // A packet with other frames may have been begun.
            is_begun = 1;
            api.nghttp3_conn_block_stream(connection->http, id);
        } else if ((size == QUIC_STREAM_SHUT || size == QUIC_STREAM_NOT_FOUND) && id >= 0) {
            note_stop(connection, id);
        } else {
            connection->cannot_write = is_begun || size <= QUIC_NO_MEMORY;
            fail_quic(connection, (int)size);
            return 0;
        }
    }
}

// ngtcp2 sends a packet that must be acknowledged when none was sent for a time, so that time is set to nothing for one packet.
static void begin_ping(struct cquic_connection *connection) {
    connection->now++;
    api.ngtcp2_conn_set_keep_alive_timeout(connection->quic, 1);
}

static void end_ping(struct cquic_connection *connection) {
    connection->owes_ping = 0;
    api.ngtcp2_conn_set_keep_alive_timeout(connection->quic, connection->keep_alive);
}

// Adds packets until one is shorter than the first, or does not belong to it: that one is kept for the next call.
static void write_batch(struct cquic_connection *connection, uint8_t *buffer, size_t capacity, struct cquic_packets *packets) {
    size_t used = 0, limit = api.ngtcp2_conn_get_send_quantum(connection->quic);
    if (connection->held_size && capacity >= connection->held_size) {
        memcpy(buffer, connection->held, connection->held_size);
        used = connection->held_size;
        *packets = (struct cquic_packets){.count = 1, .packet_size = used, .size = used, .ecn = connection->held_ecn, .has_more = 1};
        connection->held_size = 0;
    }
    for (;;) {
        settle(connection);
        if (connection->failure.end) return;
        packets->has_more = packets->count > 0;
        if (capacity - used < MAXIMUM_PACKET || (used && used + packets->packet_size > limit)) return;
        struct packet_info info = {0};
        int is_complete = connection->is_complete, pings = connection->owes_ping && is_complete;
        if (pings) begin_ping(connection);
        size_t size = write_packet(connection, buffer + used, &info);
        if (pings) end_ping(connection);
        connection->has_begun = is_complete;
        if (!size) {
            packets->has_more = 0;
            return;
        }
        uint8_t ecn = info.ecn & 3;
        if (!packets->count) {
            packets->packet_size = size;
            packets->ecn = ecn;
        } else if (size > packets->packet_size || ecn != packets->ecn) {
            memcpy(connection->held, buffer + used, size);
            connection->held_size = size;
            connection->held_ecn = ecn;
            return;
        }
        packets->count++;
        packets->size = used += size;
        if (size < packets->packet_size) return;
    }
}

static int send_packets(
    struct cquic_connection *connection, uint8_t *buffer, size_t capacity, struct cquic_packets *packets, uint64_t now
) {
    *packets = (struct cquic_packets){0};
    if (!enter(connection, now)) return 0;
    write_batch(connection, buffer, capacity, packets);
    return leave(connection);
}

static size_t close_connection(
    struct cquic_connection *connection, int is_application, uint64_t code, const char *reason, uint8_t *buffer, size_t capacity,
    uint64_t now
) {
    enter(connection, now);
    switch (connection->failure.end) {
    case CQUIC_CLOSED_BY_APPLICATION:
    case CQUIC_CLOSED_BY_TRANSPORT:
    case CQUIC_STATELESS_RESET:
    case CQUIC_IDLE_TIMEOUT:
    case CQUIC_HANDSHAKE_TIMEOUT:
    case CQUIC_NO_VERSION: return 0;
    default: break;
    }
    if (connection->cannot_write || capacity < MAXIMUM_PACKET) return 0;
    connection->cannot_write = 1;
    fail(connection, CQUIC_FAILURE, code, -1, "closed");
    struct close_error error = {
        .type = is_application != 0,
        // A greater number would abort the process.
        .code = code & greatest,
        .reason = (const uint8_t *)reason,
        .reason_size = reason ? strlen(reason) : 0,
    };
    // The reason must fit into the packet.
    if (error.reason_size > 256) error.reason_size = 256;
    struct packet_info info = {0};
    ptrdiff_t size = api.ngtcp2_conn_write_connection_close_versioned(
        connection->quic, NULL, VERSION, &info, buffer, MAXIMUM_PACKET, &error, connection->now
    );
    return size > 0 ? (size_t)size : 0;
}

static void ping(struct cquic_connection *connection, uint64_t now) {
    (void)now;
    connection->owes_ping = 1;
}

static void keep_alive(struct cquic_connection *connection, uint64_t timeout) {
    // 0 switches it off in both interfaces; the old one would add a greater number to an instant.
    connection->keep_alive = timeout > greatest ? 0 : timeout;
    api.ngtcp2_conn_set_keep_alive_timeout(connection->quic, connection->keep_alive);
}

static uint64_t round_trip(struct cquic_connection *connection) { return statistic(connection->quic, SMOOTHED_ROUND_TRIP); }

static uint64_t idle_timeout(struct cquic_connection *connection) {
    const struct transport_parameters *server = api.ngtcp2_conn_get_remote_transport_params(connection->quic);
    uint64_t own = connection->idle_timeout, others = server ? server->idle_timeout : 0;
    if (own == 0 && others == 0) return UINT64_MAX;
    return own == 0 || (others != 0 && others < own) ? others : own;
}

static uint64_t bytes_in_flight(struct cquic_connection *connection) { return statistic(connection->quic, BYTES_IN_FLIGHT); }
