// SPDX-License-Identifier: Apache-2.0

// The functions of the libraries, found at run time.

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUIC_FUNCTIONS(F) \
    F(int, ngtcp2_conn_client_new_versioned, \
      (void **, const struct cid *, const struct cid *, const struct path *, uint32_t, int, const struct quic_callbacks *, int, \
       const struct settings *, int, const struct transport_parameters *, const void *, void *)) \
    F(void, ngtcp2_conn_del, (void *)) \
    F(void, ngtcp2_settings_default_versioned, (int, struct settings *)) \
    F(void, ngtcp2_transport_params_default_versioned, (int, struct transport_parameters *)) \
    F(void, ngtcp2_conn_set_tls_native_handle, (void *, void *)) \
    F(int, ngtcp2_conn_read_pkt_versioned, \
      (void *, const struct path *, int, const struct packet_info *, const uint8_t *, size_t, uint64_t)) \
    F(ptrdiff_t, ngtcp2_conn_writev_stream_versioned, \
      (void *, struct path *, int, struct packet_info *, uint8_t *, size_t, ptrdiff_t *, uint32_t, int64_t, const struct vector *, \
       size_t, uint64_t)) \
    F(ptrdiff_t, ngtcp2_conn_write_connection_close_versioned, \
      (void *, struct path *, int, struct packet_info *, uint8_t *, size_t, const struct close_error *, uint64_t)) \
    F(uint64_t, ngtcp2_conn_get_expiry, (void *)) \
    F(const struct transport_parameters *, ngtcp2_conn_get_remote_transport_params, (void *)) \
    F(int, ngtcp2_conn_handle_expiry, (void *, uint64_t)) \
    F(int, ngtcp2_conn_open_bidi_stream, (void *, int64_t *, void *)) \
    F(int, ngtcp2_conn_open_uni_stream, (void *, int64_t *, void *)) \
    F(uint64_t, ngtcp2_conn_get_streams_bidi_left, (void *)) \
    F(int, ngtcp2_conn_extend_max_stream_offset, (void *, int64_t, uint64_t)) \
    F(void, ngtcp2_conn_extend_max_offset, (void *, uint64_t)) \
    F(void, ngtcp2_conn_extend_max_streams_uni, (void *, size_t)) \
    F(uint64_t, ngtcp2_conn_get_max_data_left, (void *)) \
    F(size_t, ngtcp2_conn_get_send_quantum, (void *)) \
    F(void, ngtcp2_conn_set_keep_alive_timeout, (void *, uint64_t)) \
    F(int, ngtcp2_conn_initiate_immediate_migration, (void *, const struct path *, uint64_t)) \
    F(uint8_t, ngtcp2_conn_get_tls_alert, (void *)) \
    F(uint64_t, ngtcp2_err_infer_quic_transport_error_code, (int)) \
    F(const char *, ngtcp2_strerror, (int)) \
    F(const struct version_info *, ngtcp2_version, (int))

#if NEW_INTERFACE
#define DIFFERENT_QUIC_FUNCTIONS(F) \
    F(const struct close_error *, ngtcp2_conn_get_ccerr, (void *)) \
    F(int, ngtcp2_conn_shutdown_stream, (void *, uint32_t, int64_t, uint64_t)) \
    F(int, ngtcp2_conn_shutdown_stream_read, (void *, uint32_t, int64_t, uint64_t)) \
    F(int, ngtcp2_conn_shutdown_stream_write, (void *, uint32_t, int64_t, uint64_t)) \
    F(void, ngtcp2_conn_get_conn_info_versioned, (void *, int, uint64_t *))
#define DIFFERENT_HTTP_FUNCTIONS(F) F(int, nghttp3_conn_set_client_stream_priority, (void *, int64_t, const uint8_t *, size_t))
#else
struct priority {  // nghttp3_pri
    uint32_t urgency;
    int is_incremental;
};
#define DIFFERENT_QUIC_FUNCTIONS(F) \
    F(void, ngtcp2_conn_get_connection_close_error, (void *, struct close_error *)) \
    F(int, ngtcp2_conn_shutdown_stream, (void *, int64_t, uint64_t)) \
    F(int, ngtcp2_conn_shutdown_stream_read, (void *, int64_t, uint64_t)) \
    F(int, ngtcp2_conn_shutdown_stream_write, (void *, int64_t, uint64_t)) \
    F(void, ngtcp2_conn_get_conn_stat_versioned, (void *, int, uint64_t *))
#define DIFFERENT_HTTP_FUNCTIONS(F) \
    F(int, nghttp3_http_parse_priority, (struct priority *, const uint8_t *, size_t)) \
    F(int, nghttp3_conn_set_stream_priority, (void *, int64_t, const struct priority *))
#endif

#define HTTP_FUNCTIONS(F) \
    F(void, nghttp3_settings_default_versioned, (int, struct http_settings *)) \
    F(int, nghttp3_conn_client_new_versioned, \
      (void **, int, const struct http_callbacks *, int, const struct http_settings *, const void *, void *)) \
    F(void, nghttp3_conn_del, (void *)) \
    F(int, nghttp3_conn_bind_control_stream, (void *, int64_t)) \
    F(int, nghttp3_conn_bind_qpack_streams, (void *, int64_t, int64_t)) \
    F(ptrdiff_t, nghttp3_conn_read_stream, (void *, int64_t, const uint8_t *, size_t, int)) \
    F(ptrdiff_t, nghttp3_conn_writev_stream, (void *, int64_t *, int *, struct vector *, size_t)) \
    F(int, nghttp3_conn_add_write_offset, (void *, int64_t, size_t)) \
    F(int, nghttp3_conn_add_ack_offset, (void *, int64_t, uint64_t)) \
    F(void, nghttp3_conn_block_stream, (void *, int64_t)) \
    F(int, nghttp3_conn_unblock_stream, (void *, int64_t)) \
    F(int, nghttp3_conn_resume_stream, (void *, int64_t)) \
    F(void, nghttp3_conn_shutdown_stream_write, (void *, int64_t)) \
    F(int, nghttp3_conn_shutdown_stream_read, (void *, int64_t)) \
    F(int, nghttp3_conn_close_stream, (void *, int64_t, uint64_t)) \
    F(int, nghttp3_conn_set_stream_user_data, (void *, int64_t, void *)) \
    F(int, nghttp3_conn_submit_request, (void *, int64_t, const struct http_field *, size_t, const struct http_reader *, void *)) \
    F(struct vector, nghttp3_rcbuf_get_buf, (const void *)) \
    F(uint64_t, nghttp3_err_infer_quic_app_error_code, (int)) \
    F(const char *, nghttp3_strerror, (int)) \
    F(const struct version_info *, nghttp3_version, (int))

#define TLS_FUNCTIONS(F) \
    F(int, ngtcp2_crypto_gnutls_configure_client_session, (void *)) \
    F(int, gnutls_init, (void **, unsigned)) \
    F(void, gnutls_deinit, (void *)) \
    F(int, gnutls_priority_set_direct, (void *, const char *, const char **)) \
    F(int, gnutls_certificate_allocate_credentials, (void **)) \
    F(void, gnutls_certificate_free_credentials, (void *)) \
    F(int, gnutls_credentials_set, (void *, int, void *)) \
    F(void, gnutls_certificate_set_verify_function, (void *, int (*)(void *))) \
    F(void, gnutls_certificate_set_retrieve_function2, (void *, certificate_callback)) \
    F(int, gnutls_alpn_set_protocols, (void *, const struct datum *, unsigned, unsigned)) \
    F(int, gnutls_alpn_get_selected_protocol, (void *, struct datum *)) \
    F(int, gnutls_server_name_set, (void *, int, const void *, size_t)) \
    F(void, gnutls_session_set_ptr, (void *, void *)) \
    F(void *, gnutls_session_get_ptr, (void *)) \
    F(void, gnutls_session_set_keylog_function, (void *, int (*)(void *, const char *, const struct datum *))) \
    F(const struct datum *, gnutls_certificate_get_peers, (void *, unsigned *)) \
    F(int, gnutls_cipher_get, (void *)) \
    F(int, gnutls_rnd, (int, void *, size_t)) \
    F(int, gnutls_pcert_import_x509_raw, (struct certificate *, const struct datum *, int, unsigned)) \
    F(void, gnutls_pcert_deinit, (struct certificate *)) \
    F(int, gnutls_privkey_init, (void **)) \
    F(void, gnutls_privkey_deinit, (void *)) \
    F(int, gnutls_privkey_import_x509_raw, (void *, const struct datum *, int, const char *, unsigned)) \
    F(int, gnutls_privkey_get_pk_algorithm, (void *, unsigned *)) \
    F(const char *, gnutls_alert_get_name, (int)) \
    F(const char *, gnutls_strerror, (int)) \
    F(const char *, gnutls_check_version, (const char *))

#define MEMBER(type, name, parameters) type(*name) parameters;
#define SYMBOL_MEMBER(name, symbol) function symbol;
#define NO_MEMBER(name)

// Written by `load` alone, before there is a connection.
static struct {
    QUIC_FUNCTIONS(MEMBER)
    DIFFERENT_QUIC_FUNCTIONS(MEMBER)
    HTTP_FUNCTIONS(MEMBER)
    DIFFERENT_HTTP_FUNCTIONS(MEMBER)
    TLS_FUNCTIONS(MEMBER)
    QUIC_CALLBACKS(NO_MEMBER, SYMBOL_MEMBER, NO_MEMBER)
} api;

#define FIND(handle, name) \
    { \
        void *found = dlsym(handle, #name); \
        if (!found) { \
            *missing = #name; \
            return 0; \
        } \
        memcpy(&api.name, &found, sizeof found); \
    }
#define FIND_QUIC(type, name, parameters) FIND(ngtcp2, name)
#define FIND_HTTP(type, name, parameters) FIND(nghttp3, name)
#define FIND_TLS(type, name, parameters) FIND(crypto, name)
#define FIND_CALLBACK(name, symbol) FIND(crypto, symbol)

static int find_functions(void *ngtcp2, void *crypto, void *nghttp3, const char **missing) {
    QUIC_FUNCTIONS(FIND_QUIC)
    DIFFERENT_QUIC_FUNCTIONS(FIND_QUIC)
    HTTP_FUNCTIONS(FIND_HTTP)
    DIFFERENT_HTTP_FUNCTIONS(FIND_HTTP)
    // The functions of GnuTLS are found among the libraries to which this one is linked.
    TLS_FUNCTIONS(FIND_TLS)
    QUIC_CALLBACKS(NO_MEMBER, FIND_CALLBACK, NO_MEMBER)
    return 1;
}

static inline int shut_stream(void *quic, int64_t id, uint64_t code) {
#if NEW_INTERFACE
    return api.ngtcp2_conn_shutdown_stream(quic, 0, id, code);
#else
    return api.ngtcp2_conn_shutdown_stream(quic, id, code);
#endif
}

static inline int shut_stream_read(void *quic, int64_t id, uint64_t code) {
#if NEW_INTERFACE
    return api.ngtcp2_conn_shutdown_stream_read(quic, 0, id, code);
#else
    return api.ngtcp2_conn_shutdown_stream_read(quic, id, code);
#endif
}

static inline int shut_stream_write(void *quic, int64_t id, uint64_t code) {
#if NEW_INTERFACE
    return api.ngtcp2_conn_shutdown_stream_write(quic, 0, id, code);
#else
    return api.ngtcp2_conn_shutdown_stream_write(quic, id, code);
#endif
}

enum { SMOOTHED_ROUND_TRIP = 2, BYTES_IN_FLIGHT = NUMBER(17, 6), STATISTICS = 64 };

// One of the numbers in ngtcp2_conn_stat or ngtcp2_conn_info.
static inline uint64_t statistic(void *quic, size_t index) {
    uint64_t words[STATISTICS] = {0};
#if NEW_INTERFACE
    api.ngtcp2_conn_get_conn_info_versioned(quic, VERSION, words);
#else
    api.ngtcp2_conn_get_conn_stat_versioned(quic, VERSION, words);
#endif
    return words[index];
}

static inline struct close_error received_close(void *quic) {
#if NEW_INTERFACE
    const struct close_error *error = api.ngtcp2_conn_get_ccerr(quic);
    struct close_error copy = {0};
    // The library's struct ends before `later`.
    memcpy(&copy, error, offsetof(struct close_error, later));
    return copy;
#else
    struct close_error error = {0};
    api.ngtcp2_conn_get_connection_close_error(quic, &error);
    return error;
#endif
}
