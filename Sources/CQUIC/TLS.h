// SPDX-License-Identifier: Apache-2.0

// The TLS session. GnuTLS does not judge the server's chain: the owner does, before it requests anything.

static int accept_chain(void *session) {
    (void)session;
    return 0;
}

// Without a function of ours, GnuTLS writes the secrets to a file that a variable of the environment names.
static int discard_secrets(void *session, const char *label, const struct datum *secret) {
    (void)session;
    (void)label;
    (void)secret;
    return 0;
}

enum { PK_RSA = 1, PK_RSA_PSS = 6 };

// Whether the server accepts signatures of the key.
static int is_accepted(void *key, const int *algorithms, int count) {
    int algorithm = api.gnutls_privkey_get_pk_algorithm(key, NULL);
    int other = algorithm == PK_RSA ? PK_RSA_PSS : algorithm == PK_RSA_PSS ? PK_RSA : algorithm;
    for (int index = 0; index < count; index++) {
        if (algorithms[index] == algorithm || algorithms[index] == other) return 1;
    }
    return count <= 0;
}

static void keep_issuers(struct cquic_connection *connection, const struct datum *issuers, int count) {
    if (connection->issuers || count <= 0) return;
    connection->issuers = calloc((size_t)count, sizeof *issuers);
    for (int index = 0; connection->issuers && index < count; index++) {
        uint8_t *copy = malloc(issuers[index].count ? issuers[index].count : 1);
        if (!copy) return;
        memcpy(copy, issuers[index].start, issuers[index].count);
        connection->issuers[connection->issuer_count++] = (struct datum){copy, issuers[index].count};
    }
}

static int choose_certificate(
    void *session, const struct datum *issuers, int issuer_count, const int *algorithms, int algorithm_count,
    struct certificate **certificates, unsigned *count, void **key
) {
    struct reference *reference = api.gnutls_session_get_ptr(session);
    struct cquic_connection *connection = reference->connection;
    connection->was_asked_for_certificate = 1;
    keep_issuers(connection, issuers, issuer_count);
    connection->presented_certificate = connection->key && is_accepted(connection->key, algorithms, algorithm_count);
    *certificates = connection->presented_certificate ? connection->certificates : NULL;
    *count = connection->presented_certificate ? (unsigned)connection->certificate_count : 0;
    *key = connection->presented_certificate ? connection->key : NULL;
    return 0;
}

// Reads the client's own certificates and key. Returns an error of GnuTLS.
static int import_identity(struct cquic_connection *connection, const struct cquic_settings *settings) {
    if (!settings->certificate_count) return 0;
    connection->certificates = calloc(settings->certificate_count, sizeof *connection->certificates);
    if (!connection->certificates) return -25;
    for (size_t index = 0; index < settings->certificate_count; index++) {
        struct cquic_bytes bytes = settings->certificates[index];
        if (bytes.count > INT32_MAX) return -25;
        struct datum der = {(uint8_t *)bytes.start, (unsigned)bytes.count};
        int error = api.gnutls_pcert_import_x509_raw(&connection->certificates[index], &der, 0, 0);
        if (error) return error;
        connection->certificate_count++;
    }
    if (settings->key.count > INT32_MAX) return -25;
    void *key = NULL;
    int error = api.gnutls_privkey_init(&key);
    if (error) return error;
    connection->key = key;
    struct datum der = {(uint8_t *)settings->key.start, (unsigned)settings->key.count};
    return api.gnutls_privkey_import_x509_raw(key, &der, 0, NULL, 0);
}

static void free_identity(struct cquic_connection *connection) {
    for (size_t index = 0; index < connection->certificate_count; index++) api.gnutls_pcert_deinit(&connection->certificates[index]);
    free(connection->certificates);
    if (connection->key) api.gnutls_privkey_deinit(connection->key);
    for (size_t index = 0; index < connection->issuer_count; index++) free(connection->issuers[index].start);
    free(connection->issuers);
}

// Returns an error of GnuTLS.
static int begin_tls(struct cquic_connection *connection, const struct cquic_settings *settings) {
    enum { CLIENT = 2, NO_TICKETS = 1 << 10, CERTIFICATE = 1, MANDATORY = 1, DNS = 1 };
    int error = import_identity(connection, settings);
    if (error) return error;
    void *tls = NULL;
    error = api.gnutls_init(&tls, CLIENT | NO_TICKETS);
    if (error) return error;
    connection->tls = tls;
    if (api.ngtcp2_crypto_gnutls_configure_client_session(tls)) return -59;
    error = api.gnutls_priority_set_direct(
        tls,
        "NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+AES-128-GCM:+AES-256-GCM:+CHACHA20-POLY1305:%DISABLE_TLS13_COMPAT_MODE", NULL
    );
    if (error) return error;
    void *credentials = NULL;
    error = api.gnutls_certificate_allocate_credentials(&credentials);
    if (error) return error;
    connection->credentials = credentials;
    api.gnutls_certificate_set_verify_function(credentials, accept_chain);
    api.gnutls_certificate_set_retrieve_function2(credentials, choose_certificate);
    error = api.gnutls_credentials_set(tls, CERTIFICATE, credentials);
    if (error) return error;
    uint8_t name[] = {'h', '3'};
    struct datum protocol = {name, sizeof name};
    error = api.gnutls_alpn_set_protocols(tls, &protocol, 1, MANDATORY);
    if (!error && settings->server_name) {
        error = api.gnutls_server_name_set(tls, DNS, settings->server_name, strlen(settings->server_name));
    }
    api.gnutls_session_set_ptr(tls, &connection->reference);
    api.gnutls_session_set_keylog_function(tls, discard_secrets);
    return error;
}

static int certificate(struct cquic_connection *connection, size_t index, struct cquic_bytes *der) {
    unsigned count = 0;
    const struct datum *chain = api.gnutls_certificate_get_peers(connection->tls, &count);
    if (!chain || index >= count) return 0;
    *der = (struct cquic_bytes){chain[index].start, chain[index].count};
    return 1;
}

static int accepted_issuer(struct cquic_connection *connection, size_t index, struct cquic_bytes *der) {
    if (index >= connection->issuer_count) return 0;
    *der = (struct cquic_bytes){connection->issuers[index].start, connection->issuers[index].count};
    return 1;
}

static void tls(struct cquic_connection *connection, struct cquic_tls *tls) {
    enum { AES_128_GCM = 10, AES_256_GCM = 11, CHACHA20_POLY1305 = 23 };
    int cipher = api.gnutls_cipher_get(connection->tls);
    *tls = (struct cquic_tls){
        .cipher_suite = cipher == AES_128_GCM ? 0x1301 : cipher == AES_256_GCM ? 0x1302 : cipher == CHACHA20_POLY1305 ? 0x1303 : 0,
        .was_asked_for_certificate = connection->was_asked_for_certificate,
        .presented_certificate = connection->presented_certificate,
    };
}
