// SPDX-License-Identifier: Apache-2.0

// What is used of libngtcp2, libngtcp2_crypto_gnutls, libnghttp3 and GnuTLS, without their headers. NEW_INTERFACE is 1 for the binary
// interface of ngtcp2 1.0 (libngtcp2.so.16) and 0 for the one of 0.12 (libngtcp2.so.9). Every struct is passed as its version 1,
// which all later releases accept; `later` is room for members that a release without versions might write.

#include "CQUIC.h"

typedef void (*function)(void);

#if NEW_INTERFACE
typedef uint8_t flag;
#else
typedef int flag;
#endif

enum {
    VERSION = 1,
    QUIC_VERSION = 1,
    MAXIMUM_PACKET = 1452,
    LEVEL_APPLICATION = 2,
    WRITE_MORE = 1,
    WRITE_END = 2,
    RECEIVED_END = 1,
    HAS_CODE = 1,
    DATA_END = 1,
    NEVER_INDEX = 1,
};

// The greatest number that RFC 9000, section 16, can express.
static const uint64_t greatest = ((uint64_t)1 << 62) - 1;

// The errors have other numbers in each interface.
#if NEW_INTERFACE
#define NUMBER(old, new) new
#else
#define NUMBER(old, new) old
#endif
enum {
    QUIC_INVALID_ARGUMENT = -201,
    QUIC_NO_BUFFER = NUMBER(-203, -202),
    QUIC_INVALID_STATE = NUMBER(-206, -204),
    QUIC_STREAM_ID_BLOCKED = NUMBER(-208, -206),
    QUIC_STREAM_DATA_BLOCKED = NUMBER(-210, -208),
    QUIC_CRYPTO = NUMBER(-215, -213),
    QUIC_PACKET_NUMBERS_EXHAUSTED = NUMBER(-216, -214),
    QUIC_STREAM_SHUT = NUMBER(-221, -219),
    QUIC_STREAM_NOT_FOUND = NUMBER(-222, -220),
    QUIC_VERSION_NEGOTIATION = NUMBER(-229, -222),
    QUIC_CLOSING = NUMBER(-230, -223),
    QUIC_DRAINING = NUMBER(-231, -224),
    QUIC_INTERNAL = NUMBER(-238, -228),
    QUIC_WRITE_MORE = NUMBER(-240, -230),
    QUIC_DROP = NUMBER(-242, -232),
    QUIC_LIMIT_OF_KEYS = NUMBER(-243, -233),
    QUIC_NO_PATH = NUMBER(-244, -234),
    QUIC_HANDSHAKE_TIMEOUT = NUMBER(-246, -236),
    QUIC_IDLE = NUMBER(-248, -238),
    QUIC_NO_MEMORY = -501,
    QUIC_CALLBACK = -502,
    HTTP_WOULD_BLOCK = NUMBER(-104, -103),
    HTTP_STREAM_NOT_FOUND = NUMBER(-114, -110),
    HTTP_NO_MEMORY = -901,
    HTTP_CALLBACK = -902,
};

struct cid {  // ngtcp2_cid
    size_t count;
    uint8_t bytes[20];
};

struct path {  // ngtcp2_path
    struct {
        const struct sockaddr *address;
        socklen_t length;
    } local, remote;
    void *context;
};

struct packet_info {  // ngtcp2_pkt_info
#if NEW_INTERFACE
    uint8_t ecn;
#else
    uint32_t ecn;
#endif
} __attribute__((aligned(8)));

struct vector {  // ngtcp2_vec, nghttp3_vec
    uint8_t *start;
    size_t count;
};

struct settings {  // ngtcp2_settings
#if !NEW_INTERFACE
    struct cid qlog_id;
#endif
    function qlog;
    int congestion_control;
    uint64_t initial_time;
    uint64_t initial_round_trip;
    function log;
    size_t max_packet_size;
    const uint8_t *token;
    size_t token_size;
#if NEW_INTERFACE
    int token_type;
#endif
    void *random_context;
    uint64_t max_window;
    uint64_t max_stream_window;
    size_t acknowledgement_threshold;
    flag no_shaping;
    uint64_t handshake_timeout;
    const uint32_t *preferred_versions;
    size_t preferred_version_count;
    const uint32_t *other_versions;
    size_t other_version_count;
    uint32_t original_version;
    flag no_path_mtu_discovery;
#if NEW_INTERFACE
    uint32_t initial_packet_number;
#endif
    uint64_t later[16];
};

struct transport_parameters {  // ngtcp2_transport_params
    uint8_t addresses_and_ids[192];
    uint64_t stream_data_bidi_local;
    uint64_t stream_data_bidi_remote;
    uint64_t stream_data_uni;
    uint64_t data;
    uint64_t streams_bidi;
    uint64_t streams_uni;
    uint64_t idle_timeout;
    uint64_t udp_payload_size;
    uint64_t active_ids;
    uint64_t acknowledgement_delay_exponent;
    uint64_t acknowledgement_delay;
    uint64_t datagram_size;
    uint8_t flags_and_versions[56];
    uint64_t later[16];
};

struct close_error {  // ngtcp2_connection_close_error, ngtcp2_ccerr
    int type;
    uint64_t code;
    uint64_t frame_type;
    const uint8_t *reason;
    size_t reason_size;
    uint64_t later[4];
};

// The members of ngtcp2_callbacks in their order. Those of the second kind are functions of libngtcp2_crypto_gnutls, which are passed
// by address; those of the third kind stay empty.
#define QUIC_CALLBACKS(OURS, CRYPTO, NONE) \
    CRYPTO(client_initial, ngtcp2_crypto_client_initial_cb) NONE(receive_client_initial) \
    CRYPTO(receive_crypto, ngtcp2_crypto_recv_crypto_data_cb) OURS(handshake_completed) NONE(receive_version_negotiation) \
    CRYPTO(encrypt, ngtcp2_crypto_encrypt_cb) CRYPTO(decrypt, ngtcp2_crypto_decrypt_cb) \
    CRYPTO(mask, ngtcp2_crypto_hp_mask_cb) OURS(receive_stream_data) OURS(acknowledged_stream_data) NONE(stream_opened) \
    OURS(stream_closed) OURS(receive_stateless_reset) CRYPTO(receive_retry, ngtcp2_crypto_recv_retry_cb) \
    OURS(extend_local_streams_bidi) NONE(extend_local_streams_uni) OURS(random_bytes) OURS(new_connection_id) \
    NONE(remove_connection_id) CRYPTO(update_key, ngtcp2_crypto_update_key_cb) NONE(path_validation) NONE(select_preferred_address) \
    OURS(stream_reset) NONE(extend_remote_streams_bidi) NONE(extend_remote_streams_uni) OURS(extend_stream_data) \
    NONE(destination_id_status) NONE(handshake_confirmed) NONE(receive_token) \
    CRYPTO(delete_aead_context, ngtcp2_crypto_delete_crypto_aead_ctx_cb) \
    CRYPTO(delete_cipher_context, ngtcp2_crypto_delete_crypto_cipher_ctx_cb) NONE(receive_datagram) NONE(acknowledge_datagram) \
    NONE(lose_datagram) CRYPTO(path_challenge_data, ngtcp2_crypto_get_path_challenge_data_cb) NONE(stream_stop_sending) \
    CRYPTO(version_negotiation, ngtcp2_crypto_version_negotiation_cb) NONE(receive_rx_key) OURS(receive_tx_key) \
    NONE(early_data_rejected)

#define CALLBACK_MEMBER(name) function name;
#define CRYPTO_MEMBER(name, symbol) function name;
struct quic_callbacks {  // ngtcp2_callbacks
    QUIC_CALLBACKS(CALLBACK_MEMBER, CRYPTO_MEMBER, CALLBACK_MEMBER)
};

// ngtcp2_crypto_conn_ref: GnuTLS hands it to libngtcp2_crypto_gnutls, and to us.
struct reference {
    void *(*quic)(struct reference *reference);
    struct cquic_connection *connection;
};

struct http_callbacks {  // nghttp3_callbacks
    int (*acknowledged)(void *http, int64_t id, uint64_t count, void *context, void *stream);
    int (*stream_closed)(void *http, int64_t id, uint64_t code, void *context, void *stream);
    int (*data)(void *http, int64_t id, const uint8_t *start, size_t count, void *context, void *stream);
    int (*deferred)(void *http, int64_t id, size_t count, void *context, void *stream);
    int (*head_began)(void *http, int64_t id, void *context, void *stream);
    int (*head_field)(
        void *http, int64_t id, int32_t token, void *name, void *value, uint8_t flags, void *context, void *stream
    );
    int (*head_ended)(void *http, int64_t id, int ends, void *context, void *stream);
    int (*trailers_began)(void *http, int64_t id, void *context, void *stream);
    int (*trailer)(void *http, int64_t id, int32_t token, void *name, void *value, uint8_t flags, void *context, void *stream);
    int (*trailers_ended)(void *http, int64_t id, int ends, void *context, void *stream);
    int (*stop_sending)(void *http, int64_t id, uint64_t code, void *context, void *stream);
    int (*ended)(void *http, int64_t id, void *context, void *stream);
    int (*reset)(void *http, int64_t id, uint64_t code, void *context, void *stream);
    int (*going_away)(void *http, int64_t id, void *context);
    // Only in the new interface.
    int (*settings)(void *http, const void *settings, void *context);
    function later[8];
};

struct http_settings {  // nghttp3_settings
    uint64_t max_field_section_size;
    size_t table_capacity;
    size_t encoder_table_capacity;
    size_t blocked_streams;
    flag enables_connect_protocol;
    uint64_t later[16];
};

struct http_field {  // nghttp3_nv
    const uint8_t *name;
    const uint8_t *value;
    size_t name_count;
    size_t value_count;
    uint8_t flags;
};

// nghttp3_data_reader
struct http_reader {
    ptrdiff_t (*read)(void *http, int64_t id, struct vector *vectors, size_t count, uint32_t *flags, void *context, void *stream);
};

struct version_info {  // ngtcp2_info, nghttp3_info
    int age;
    int number;
    const char *text;
};

struct datum {  // gnutls_datum_t
    uint8_t *start;
    unsigned count;
};

struct certificate {  // gnutls_pcert_st
    void *public_key;
    struct datum der;
    int type;
};

typedef int (*certificate_callback)(
    void *session, const struct datum *issuers, int issuer_count, const int *algorithms, int algorithm_count,
    struct certificate **certificates, unsigned *count, void **key
);
