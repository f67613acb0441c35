// SPDX-License-Identifier: Apache-2.0

// The beginning and the end of a connection, and the table of functions.

// ngtcp2 aborts the process for an address of another family.
static int copy_address(union address *copy, const struct sockaddr *address, socklen_t length) {
    if (!address || length < sizeof(struct sockaddr_in)) return 0;
    size_t size = address->sa_family == AF_INET ? sizeof copy->v4 : address->sa_family == AF_INET6 ? sizeof copy->v6 : 0;
    if (!size || length < size) return 0;
    memset(copy, 0, sizeof *copy);
    memcpy(copy, address, size);
    return 1;
}

static socklen_t size_of(const union address *address) {
    return address->any.sa_family == AF_INET ? sizeof address->v4 : sizeof address->v6;
}

// Greater numbers abort the process: they cannot be encoded.
static uint64_t bounded(uint64_t number) { return number > greatest ? greatest : number; }

static void destroy(struct cquic_connection *connection) {
    if (!connection) return;
    if (connection->http) api.nghttp3_conn_del(connection->http);
    if (connection->quic) api.ngtcp2_conn_del(connection->quic);
    if (connection->tls) api.gnutls_deinit(connection->tls);
    if (connection->credentials) api.gnutls_certificate_free_credentials(connection->credentials);
    free_streams(connection);
    free_identity(connection);
    free(connection);
}

static void fail_tls(struct cquic_connection *connection, int error) {
    fail(connection, CQUIC_FAILURE, 1, -1, api.gnutls_strerror(error));
}

static void begin(struct cquic_connection *connection, const struct cquic_settings *wanted) {
    struct settings settings = {0};
    api.ngtcp2_settings_default_versioned(VERSION, &settings);
    settings.initial_time = connection->now;
    settings.max_packet_size = MAXIMUM_PACKET;
    settings.handshake_timeout = wanted->handshake_timeout;
    // The windows grow by `credit` alone.
    settings.max_window = 0;
    settings.max_stream_window = 0;
    struct transport_parameters parameters = {0};
    api.ngtcp2_transport_params_default_versioned(VERSION, &parameters);
    parameters.stream_data_bidi_local = bounded(wanted->stream_window);
    // The server's control and table streams, which are read at once.
    parameters.stream_data_uni = 256 * 1024;
    parameters.data = bounded(wanted->connection_window);
    parameters.streams_uni = 100;
    parameters.idle_timeout = connection->idle_timeout;
    struct cid destination = {.count = 18}, source = {.count = 8};
    int error = api.gnutls_rnd(RANDOM_SECRET, destination.bytes, destination.count);
    if (!error) error = api.gnutls_rnd(RANDOM_SECRET, source.bytes, source.count);
    if (error) {
        fail_tls(connection, error);
        return;
    }
    struct quic_callbacks callbacks = quic_callbacks();
    void *quic = NULL;
    error = api.ngtcp2_conn_client_new_versioned(
        &quic, &destination, &source, &connection->path, QUIC_VERSION, VERSION, &callbacks, VERSION, &settings, VERSION, &parameters, NULL,
        connection
    );
    if (error) {
        fail(connection, CQUIC_FAILURE, 1, -1, api.ngtcp2_strerror(error));
        return;
    }
    connection->quic = quic;
    error = begin_tls(connection, wanted);
    if (error) fail_tls(connection, error);
    else api.ngtcp2_conn_set_tls_native_handle(quic, connection->tls);
}

static struct cquic_connection *connect_to(const struct cquic_settings *settings, struct cquic_failure *failure) {
    *failure = (struct cquic_failure){.end = CQUIC_FAILURE, .code = 1, .stream = -1};
    struct cquic_connection *connection = calloc(1, sizeof *connection);
    if (!connection) {
        snprintf(failure->text, sizeof failure->text, "out of memory");
        return NULL;
    }
    connection->reference = (struct reference){quic_of, connection};
    connection->events = *settings->events;
    connection->context = settings->context;
    connection->now = bounded(settings->now);
    connection->idle_timeout = settings->idle_timeout > greatest ? 0 : settings->idle_timeout;
    connection->max_field_section_size = bounded(settings->max_field_section_size);
    connection->last_touched = &connection->touched;
    int has_addresses = copy_address(&connection->local, settings->local, settings->local_length) &&
                        copy_address(&connection->remote, settings->remote, settings->remote_length) &&
                        connection->local.any.sa_family == connection->remote.any.sa_family;
    connection->path = (struct path){
        {&connection->local.any, size_of(&connection->local)}, {&connection->remote.any, size_of(&connection->remote)}, NULL
    };
    if (has_addresses) begin(connection, settings);
    else fail(connection, CQUIC_FAILURE, 1, -1, "addresses of other or different families");
    if (!connection->failure.end) return connection;
    *failure = connection->failure;
    destroy(connection);
    return NULL;
}

static void copy_failure(struct cquic_connection *connection, struct cquic_failure *failure) { *failure = connection->failure; }

static int migrate(struct cquic_connection *connection, const struct sockaddr *local, socklen_t length, uint64_t now) {
    union address address;
    if (!copy_address(&address, local, length) || address.any.sa_family != connection->remote.any.sa_family) return 0;
    if (!enter(connection, now)) return 0;
    struct path path = connection->path;
    path.local.address = &address.any;
    int error = api.ngtcp2_conn_initiate_immediate_migration(connection->quic, &path, connection->now);
    if (!error) connection->local = address;
    if (error <= QUIC_NO_MEMORY) fail_quic(connection, error);
    leave(connection);
    return !error;
}

static struct cquic_library library = {
    .tells_settings = NEW_INTERFACE,
    .connect = connect_to,
    .destroy = destroy,
    .receive = receive,
    .send = send_packets,
    .expiry = expiry,
    .expire = expire,
    .failure = copy_failure,
    .close = close_connection,
    .certificate = certificate,
    .tls = tls,
    .accepted_issuer = accepted_issuer,
    .request = request,
    .send_body = send_body,
    .end_body = end_body,
    .credit = credit,
    .cancel = cancel,
    .cancel_sending = cancel_sending,
    .prioritize = prioritize,
    .ping = ping,
    .keep_alive = keep_alive,
    .migrate = migrate,
    .round_trip = round_trip,
    .idle_timeout = idle_timeout,
    .bytes_in_flight = bytes_in_flight,
};

static const struct cquic_library *load(void *ngtcp2, void *crypto, void *nghttp3, const char **missing) {
    if (!find_functions(ngtcp2, crypto, nghttp3, missing)) return NULL;
    snprintf(
        library.version, sizeof library.version, "ngtcp2 %s, nghttp3 %s, GnuTLS %s", api.ngtcp2_version(0)->text,
        api.nghttp3_version(0)->text, api.gnutls_check_version(NULL)
    );
    return &library;
}
