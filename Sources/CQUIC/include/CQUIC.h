// SPDX-License-Identifier: Apache-2.0

#ifndef C_QUIC_H
#define C_QUIC_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

// HTTP/3 (RFC 9114) over QUIC (RFC 9000) for a client, by ngtcp2, nghttp3 and GnuTLS, which are opened at run time. Two sets of
// their binary interfaces exist; one source is compiled for each (QUIC0.c, QUIC1.c), and both fill the same table of functions.
//
// A connection does no input or output, and has no clock and no timer: its owner passes datagrams and instants, and sends what is
// written. A connection is used by one thread at a time. Instants and durations are nanoseconds on a monotonic clock; UINT64_MAX is
// "never". Codes are those of RFC 9114, section 8.1, and RFC 9000, section 20.1.

struct cquic_connection;

struct cquic_bytes {
    const uint8_t *start;
    size_t count;
};

struct cquic_field {
    // In lower case.
    struct cquic_bytes name;
    struct cquic_bytes value;
    // Whether the value must never enter a table that attackers could probe (RFC 9204, section 7.1).
    int is_secret;
};

// What a connection reports, each time with the context that its owner gave. The functions are called within `receive`, `expire` and
// `send`; they may call `credit`, `cancel`, `cancel_sending`, `send_body`, `end_body`, `keep_alive` and the functions that only return
// something, but not `receive`, `expire`, `send`, `request`, `migrate`, `close` or `destroy`. Bytes are valid until the
// function returns. Functions about a stream that was cancelled with `isSilent` set are not called.
struct cquic_events {
    // The handshake is complete: the server's chain can be read, and is not judged yet. Nothing was requested yet.
    void (*handshake_completed)(void *context);
    // The server allows so many requests in all since the connection began (RFC 9000, section 4.6).
    void (*requests_allowed)(void *context, uint64_t count);
    // The server's SETTINGS; only from libraries that tell them. The size is UINT64_MAX if the server has no limit.
    void (*settings)(void *context, uint64_t max_field_section_size, int allows_extended_connect);
    // A header or trailer section.
    void (*section_began)(void *context, int64_t stream, int is_trailers);
    void (*field)(void *context, int64_t stream, struct cquic_bytes name, struct cquic_bytes value);
    void (*section_ended)(void *context, int64_t stream, int ends_stream);
    // Content; the stream's window is widened by `credit`.
    void (*content)(void *context, int64_t stream, struct cquic_bytes bytes);
    // The server has sent all of its response.
    void (*response_ended)(void *context, int64_t stream);
    // All of the body that was passed so far has been written into packets, but for less than 4 KiB: more can be passed. After the
    // last piece, all of the request has been written.
    void (*body_sent)(void *context, int64_t stream);
    // The server reads no more of the request (STOP_SENDING); the library resets this side of the stream. `code` is UINT64_MAX: the
    // libraries tell it by `closed` only.
    void (*stopped)(void *context, int64_t stream, uint64_t code);
    // The server has reset its side of the stream, or its message is malformed: then `code` is H3_MESSAGE_ERROR, and the library has
    // cancelled the stream.
    void (*reset)(void *context, int64_t stream, uint64_t code);
    // Both sides of the stream are over; nothing follows about it.
    void (*closed)(void *context, int64_t stream, uint64_t code);
    // GOAWAY: requests on streams from this number on are not processed (RFC 9114, section 5.2).
    void (*going_away)(void *context, int64_t first_unprocessed);
};

struct cquic_settings {
    // Without a dot at the end; NULL for an address, which is not sent (RFC 6066, section 3).
    const char *server_name;
    const struct sockaddr *local;
    socklen_t local_length;
    const struct sockaddr *remote;
    socklen_t remote_length;
    uint64_t now;
    // The initial receive window of a stream, and the connection's, which is refilled as soon as bytes arrive.
    uint64_t stream_window;
    uint64_t connection_window;
    uint64_t idle_timeout;
    uint64_t handshake_timeout;
    // The maximum size of a field section (RFC 9114, section 4.2.2), which is only announced.
    uint64_t max_field_section_size;
    // The certificates to present in DER, the client's own first, and its key as DER of PKCS #8; none if the count is 0.
    const struct cquic_bytes *certificates;
    size_t certificate_count;
    struct cquic_bytes key;
    const struct cquic_events *events;
    void *context;
};

// Why a connection is over.
enum cquic_end {
    CQUIC_OPEN = 0,
    // The server has sent CONNECTION_CLOSE: `code` is an error of the application, or of the transport.
    CQUIC_CLOSED_BY_APPLICATION,
    CQUIC_CLOSED_BY_TRANSPORT,
    CQUIC_STATELESS_RESET,
    CQUIC_IDLE_TIMEOUT,
    CQUIC_HANDSHAKE_TIMEOUT,
    // The server speaks no version of QUIC that the library speaks.
    CQUIC_NO_VERSION,
    // The server did not agree on "h3".
    CQUIC_NO_PROTOCOL,
    // The handshake failed on this side: `code` is the TLS alert (RFC 8446, section 6) to send.
    CQUIC_TLS,
    // The server violates QUIC or HTTP/3; `code` is what to close with, `stream` the stream of a malformed message or -1.
    CQUIC_VIOLATION_OF_TRANSPORT,
    CQUIC_VIOLATION_OF_APPLICATION,
    // The library failed, as for want of memory.
    CQUIC_FAILURE,
};

struct cquic_failure {
    enum cquic_end end;
    uint64_t code;
    int64_t stream;
    // The library's words, or the reason that the server gave.
    char text[256];
};

struct cquic_tls {
    // The number in the IANA's registry; 0 if it is unknown.
    uint16_t cipher_suite;
    // Whether the server requested a client certificate, and whether one was presented.
    int was_asked_for_certificate;
    int presented_certificate;
};

// Packets of equal size, of which the last may be shorter, for one datagram each.
struct cquic_packets {
    size_t count;
    size_t packet_size;
    // The bytes of all of them.
    size_t size;
    // The codepoint of RFC 3168 for all of them.
    uint8_t ecn;
    // Whether there may be more to write at once.
    int has_more;
};

// Written once, never freed.
struct cquic_library {
    // Whether the library tells the server's SETTINGS.
    int tells_settings;
    char version[64];

    // Returns NULL and writes why into `failure` if the connection cannot be made.
    struct cquic_connection *(*connect)(const struct cquic_settings *settings, struct cquic_failure *failure);
    void (*destroy)(struct cquic_connection *connection);

    // Passes one datagram from the server, with the ECN codepoint of its packet. Returns 0 when the connection is over: `failure`.
    int (*receive)(struct cquic_connection *connection, struct cquic_bytes datagram, uint8_t ecn, uint64_t now);
    // Writes packets of at most `capacity` bytes in all; returns 0 when the connection is over. An empty result means that nothing can
    // be sent now. The buffer must have room for 1,452 bytes, also for `close`.
    int (*send)(struct cquic_connection *connection, uint8_t *buffer, size_t capacity, struct cquic_packets *packets, uint64_t now);
    // When to call `expire` next.
    uint64_t (*expiry)(struct cquic_connection *connection);
    int (*expire)(struct cquic_connection *connection, uint64_t now);
    void (*failure)(struct cquic_connection *connection, struct cquic_failure *failure);

    // Writes the packet that closes the connection and returns its size, or 0 if none is owed. After it only `destroy` may be called.
    // `is_application` chooses between an error of HTTP/3 and one of QUIC (a TLS alert is 0x100 + its number).
    size_t (*close)(
        struct cquic_connection *connection, int is_application, uint64_t code, const char *reason, uint8_t *buffer, size_t capacity,
        uint64_t now
    );

    // After `handshake_completed`. Returns 0 if there is no such certificate.
    int (*certificate)(struct cquic_connection *connection, size_t index, struct cquic_bytes *der);
    void (*tls)(struct cquic_connection *connection, struct cquic_tls *tls);
    // A distinguished name in DER of an issuer whose certificates the server accepts. Returns 0 if there is no such name.
    int (*accepted_issuer)(struct cquic_connection *connection, size_t index, struct cquic_bytes *der);

    // Begins a request; returns its stream, or -1 if the server's limit is reached, or -2 if it cannot be sent. The fields are copied.
    int64_t (*request)(struct cquic_connection *connection, const struct cquic_field *fields, size_t count, int has_body);
    // Passes a piece of a request's body, which is copied. Pass the next piece after `body_sent`.
    int (*send_body)(struct cquic_connection *connection, int64_t stream, struct cquic_bytes piece, int is_last);
    // Ends a body without more content.
    int (*end_body)(struct cquic_connection *connection, int64_t stream);
    // Widens the window of a stream.
    void (*credit)(struct cquic_connection *connection, int64_t stream, uint64_t count);
    // Resets this side of a stream, and asks the server to stop (RFC 9114, section 4.1.1); with `is_silent`, nothing more is reported
    // about the stream but `closed`. With `only_sending`, only this side is reset.
    void (*cancel)(struct cquic_connection *connection, int64_t stream, uint64_t code, int is_silent);
    void (*cancel_sending)(struct cquic_connection *connection, int64_t stream, uint64_t code);
    // Sends a changed priority (RFC 9218, section 7.2), as the text of the `priority` field.
    void (*prioritize)(struct cquic_connection *connection, int64_t stream, const char *priority);
    // Makes the next `send` write a packet that the server must acknowledge.
    void (*ping)(struct cquic_connection *connection, uint64_t now);
    // Sends such packets by itself after so much time without others; UINT64_MAX ends that.
    void (*keep_alive)(struct cquic_connection *connection, uint64_t timeout);
    // Continues from another local address, to which the owner has bound a socket (RFC 9000, section 9); returns 0 if that is not
    // possible.
    int (*migrate)(struct cquic_connection *connection, const struct sockaddr *local, socklen_t length, uint64_t now);
    // The smoothed round-trip time.
    uint64_t (*round_trip)(struct cquic_connection *connection);
    // After how much silence either side ends the connection without a word (RFC 9000, section 10.1), as both have announced.
    uint64_t (*idle_timeout)(struct cquic_connection *connection);
    // The bytes of this connection that the server has not acknowledged.
    uint64_t (*bytes_in_flight)(struct cquic_connection *connection);
};

// Fills a table with the functions of one interface from the handles of the three libraries. Returns NULL if a function is missing,
// and sets `missing` to its name.
const struct cquic_library *cquic_load_0(void *ngtcp2, void *crypto, void *nghttp3, const char **missing);
const struct cquic_library *cquic_load_1(void *ngtcp2, void *crypto, void *nghttp3, const char **missing);

#endif
