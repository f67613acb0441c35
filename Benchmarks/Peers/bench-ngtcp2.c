// SPDX-License-Identifier: Apache-2.0

// A lower limit for HTTP/3 that is not a client, with BenchKit's options and output: it makes requests over one connection to an address, or
// to 127.0.0.1, with this package's calls of ngtcp2 (Sources/CQUIC) and one loop around poll, counts response bytes, and judges no
// certificate.
//
//     bench-ngtcp2 get URL [count= warmup= inflight= size=]
//     bench-ngtcp2 download URL file=FILE [size=]
//     bench-ngtcp2 upload URL file=FILE

#define _GNU_SOURCE
#include "CQUIC.h"
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct request {
    uint64_t began, received;
    int status, has_ended;
};

static const char *name, *file = "";
static char host[256], authority[256], path[1024] = "/";
static size_t count = 10000, warm_up = 0, in_flight = 64, size = 0;
static const struct cquic_library *library;
static struct cquic_connection *connection;
static int udp = -1, input_file = -1;
static FILE *output_file;
static int is_complete, is_full;
// In order of their streams, which are 0, 4, 8 and so on.
static struct request *requests;
static size_t begun, ended;
static double *latencies;
static uint64_t upload_left;

static void fail(const char *what, const char *why) {
    fprintf(stderr, "bench-ngtcp2: %s: %s\n", what, why);
    exit(1);
}

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static double cpu(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) + (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

// MARK: Events

static struct request *find(int64_t stream) {
    if ((size_t)stream / 4 >= begun) fail("stream", "unknown");
    return &requests[stream / 4];
}

static void ignore_settings(void *context, uint64_t limit, int allows_extended_connect) {}
static void ignore_section(void *context, int64_t stream, int flag) {}
static void ignore_code(void *context, int64_t stream, uint64_t code) {}
static void ignore_stream(void *context, int64_t stream) {}

static void handshake_completed(void *context) { is_complete = 1; }

static void requests_allowed(void *context, uint64_t limit) { is_full = 0; }

static void field(void *context, int64_t stream, struct cquic_bytes key, struct cquic_bytes value) {
    if (key.count == 7 && memcmp(key.start, ":status", 7) == 0 && value.count == 3)
        find(stream)->status = (value.start[0] - '0') * 100 + (value.start[1] - '0') * 10 + value.start[2] - '0';
}

static void content(void *context, int64_t stream, struct cquic_bytes bytes) {
    find(stream)->received += bytes.count;
    if (output_file && fwrite(bytes.start, 1, bytes.count, output_file) != bytes.count) fail(file, strerror(errno));
    library->credit(connection, stream, bytes.count);
}

static void response_ended(void *context, int64_t stream) { find(stream)->has_ended = 1; }

static void body_sent(void *context, int64_t stream) {
    static uint8_t piece[65536];
    if (!upload_left) return;
    ssize_t length = read(input_file, piece, sizeof piece);
    if (length <= 0) fail(file, "cannot be read");
    upload_left -= (uint64_t)length;
    if (!library->send_body(connection, stream, (struct cquic_bytes){piece, (size_t)length}, !upload_left)) fail("body", "refused");
}

static void closed(void *context, int64_t stream, uint64_t code) {
    struct request *request = find(stream);
    if (!request->has_ended || request->status != 200) fail("a request", "failed");
    if (size && request->received != size) fail("a response", "has another size");
    latencies[ended++] = (double)(now() - request->began) / 1e3;
}

static const struct cquic_events events = {
    .handshake_completed = handshake_completed, .requests_allowed = requests_allowed, .settings = ignore_settings,
    .section_began = ignore_section, .field = field, .section_ended = ignore_section, .content = content,
    .response_ended = response_ended, .body_sent = body_sent, .stopped = ignore_code, .reset = ignore_code, .closed = closed,
    .going_away = ignore_stream,
};

// MARK: Connection

static void open_library(void) {
    static const char *const sets[2][3] = {{"libngtcp2.so.9", "libngtcp2_crypto_gnutls.so.2", "libnghttp3.so.3"},
                                           {"libngtcp2.so.16", "libngtcp2_crypto_gnutls.so.8", "libnghttp3.so.9"}};
    const char *missing = "the libraries";
    for (int set = 1; set >= 0 && !library; set--) {
        void *opened[3];
        int found = 0;
        while (found < 3 && (opened[found] = dlopen(sets[set][found], RTLD_NOW | RTLD_LOCAL))) found++;
        if (found < 3) continue;
        library = (set ? cquic_load_1 : cquic_load_0)(opened[0], opened[1], opened[2], &missing);
    }
    if (!library) fail("missing", missing);
}

static void open_connection(void) {
    struct sockaddr_in server = {.sin_family = AF_INET}, local;
    socklen_t length = sizeof local;
    int one = 1, buffer = 4 << 20, probe = IP_PMTUDISC_PROBE;
    const char *colon = strchr(authority, ':');
    server.sin_port = htons((uint16_t)(colon ? atoi(colon + 1) : 443));
    int is_address = inet_pton(AF_INET, host, &server.sin_addr) == 1;
    if (!is_address) server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    udp = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    setsockopt(udp, IPPROTO_UDP, UDP_GRO, &one, sizeof one);
    setsockopt(udp, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
    setsockopt(udp, IPPROTO_IP, IP_MTU_DISCOVER, &probe, sizeof probe);
    setsockopt(udp, IPPROTO_IP, IP_RECVTOS, &one, sizeof one);
    if (connect(udp, (void *)&server, sizeof server) || getsockname(udp, (void *)&local, &length)) fail("socket", strerror(errno));
    struct cquic_settings settings = {
        .server_name = is_address ? NULL : host, .local = (void *)&local, .local_length = length, .remote = (void *)&server, .remote_length = sizeof server,
        .now = now(), .stream_window = 1 << 20, .connection_window = 8 << 20, .idle_timeout = 30000000000,
        .handshake_timeout = 10000000000, .max_field_section_size = 262144, .events = &events};
    struct cquic_failure failure = {0};
    connection = library->connect(&settings, &failure);
    if (!connection) fail("connection", failure.text);
}

static void check(int is_open) {
    struct cquic_failure failure = {0};
    if (is_open) return;
    library->failure(connection, &failure);
    fail("connection", failure.text);
}

static void receive(void) {
    static uint8_t bytes[65536];
    for (;;) {
        char control[128];
        struct iovec vector = {bytes, sizeof bytes};
        struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
        ssize_t length = recvmsg(udp, &message, 0);
        if (length < 0 && errno == EAGAIN) return;
        if (length < 0) fail("recvmsg", strerror(errno));
        size_t segment = (size_t)length;
        uint8_t ecn = 0;
        for (struct cmsghdr *one = CMSG_FIRSTHDR(&message); one; one = CMSG_NXTHDR(&message, one)) {
            if (one->cmsg_level == SOL_UDP && one->cmsg_type == UDP_GRO) segment = (size_t)*(int *)CMSG_DATA(one);
            if (one->cmsg_level == IPPROTO_IP && one->cmsg_type == IP_TOS) ecn = *CMSG_DATA(one) & 3;
        }
        for (size_t start = 0; start < (size_t)length; start += segment) {
            size_t rest = (size_t)length - start;
            check(library->receive(connection, (struct cquic_bytes){bytes + start, rest < segment ? rest : segment}, ecn, now()));
        }
    }
}

/// Returns whether packets wait until the socket is writable.
static int transmit(void) {
    static uint8_t bytes[65536];
    static struct cquic_packets packets;
    for (;;) {
        if (!packets.count) {
            check(library->send(connection, bytes, sizeof bytes, &packets, now()));
            if (!packets.count) return 0;
        }
        union {
            char bytes[128];
            struct cmsghdr header;
        } control = {{0}};
        struct iovec vector = {bytes, packets.size};
        struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
        struct cmsghdr *one = CMSG_FIRSTHDR(&message);
        *one = (struct cmsghdr){CMSG_LEN(sizeof(int)), IPPROTO_IP, IP_TOS};
        *(int *)CMSG_DATA(one) = packets.ecn;
        message.msg_controllen = CMSG_SPACE(sizeof(int));
        if (packets.count > 1) {
            one = (struct cmsghdr *)(control.bytes + message.msg_controllen);
            *one = (struct cmsghdr){CMSG_LEN(sizeof(uint16_t)), SOL_UDP, UDP_SEGMENT};
            *(uint16_t *)CMSG_DATA(one) = (uint16_t)packets.packet_size;
            message.msg_controllen += CMSG_SPACE(sizeof(uint16_t));
        }
        if (sendmsg(udp, &message, 0) < 0) {
            if (errno == EAGAIN) return 1;
            fail("sendmsg", strerror(errno));
        }
        packets.count = 0;
        if (!packets.has_more) return 0;
    }
}

static struct cquic_field make_field(const char *key, const char *value) {
    return (struct cquic_field){{(const uint8_t *)key, strlen(key)}, {(const uint8_t *)value, strlen(value)}, 0};
}

static int begin(void) {
    char length[32];
    snprintf(length, sizeof length, "%llu", (unsigned long long)upload_left);
    struct cquic_field fields[] = {
        make_field(":method", upload_left ? "PUT" : "GET"), make_field(":scheme", "https"), make_field(":authority", authority),
        make_field(":path", path), make_field("accept", "*/*"), make_field("content-length", length)};
    int64_t stream = library->request(connection, fields, upload_left ? 6 : 5, upload_left > 0);
    if (stream == -2) fail("a request", "cannot be sent");
    if (stream < 0) return 0;
    begun = (size_t)stream / 4 + 1;
    requests[stream / 4] = (struct request){.began = now()};
    body_sent(NULL, stream);
    return 1;
}

/// Makes so many requests more.
static void run(size_t more) {
    size_t goal = ended + more;
    while (ended < goal) {
        while (is_complete && !is_full && begun < goal && begun - ended < in_flight) is_full = !begin();
        int is_blocked = transmit();
        uint64_t expiry = library->expiry(connection), time = now();
        uint64_t left = expiry > time ? expiry - time : 0;
        struct timespec timeout = {(time_t)(left / 1000000000), (long)(left % 1000000000)};
        struct pollfd event = {udp, (short)(POLLIN | (is_blocked ? POLLOUT : 0)), 0};
        ppoll(&event, 1, expiry == UINT64_MAX ? NULL : &timeout, NULL);
        if (event.revents & (POLLIN | POLLERR)) receive();
        if (now() >= expiry) check(library->expire(connection, now()));
    }
}

// MARK: Command line

static void parse(int argc, char **argv) {
    if (argc < 3 || sscanf(argv[2], "https://%255[^/]%1023s", authority, path) < 1) fail("usage", "bench-ngtcp2 CASE URL [key=value ...]");
    name = argv[1];
    sscanf(authority, "%255[^:]", host);
    for (int i = 3; i < argc; i++) {
        char *equals = strchr(argv[i], '=');
        if (!equals) fail("not key=value", argv[i]);
        *equals = 0;
        size_t number = strtoul(equals + 1, NULL, 10);
        if (strcmp(argv[i], "count") == 0) count = number;
        if (strcmp(argv[i], "warmup") == 0) warm_up = number;
        if (strcmp(argv[i], "inflight") == 0) in_flight = number;
        if (strcmp(argv[i], "size") == 0) size = number;
        if (strcmp(argv[i], "file") == 0) file = equals + 1;
    }
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    parse(argc, argv);
    if (strcmp(name, "get") != 0) {
        struct stat status;
        count = in_flight = 1;
        warm_up = 0;
        if (strcmp(name, "upload") == 0) {
            input_file = open(file, O_RDONLY | O_CLOEXEC);
            if (fstat(input_file, &status)) fail(file, strerror(errno));
            upload_left = (uint64_t)status.st_size;
        } else {
            output_file = fopen(file, "we");
            if (!output_file) fail(file, strerror(errno));
            setvbuf(output_file, NULL, _IOFBF, 1 << 18);
        }
    }
    requests = calloc(warm_up + count, sizeof *requests);
    latencies = calloc(warm_up + count, sizeof *latencies);
    if (!requests || !latencies) fail("memory", "none");
    open_library();
    open_connection();
    run(warm_up);
    double used = cpu();
    uint64_t began = now();
    run(count);
    if (output_file && fclose(output_file)) fail(file, strerror(errno));
    used = cpu() - used;
    double wall = (double)(now() - began) / 1e9;
    qsort(latencies + warm_up, count, sizeof *latencies, ascending);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("{\"wall\": %g, \"cpu\": %g, \"cpu_per_10k\": %g, \"p50_us\": %g, \"p99_us\": %g, \"max_us\": %g, \"peak_rss_kib\": %ld}\n", wall,
           used, used * 1e4 / (double)count, latencies[warm_up + count / 2], latencies[warm_up + count * 99 / 100],
           latencies[warm_up + count - 1], usage.ru_maxrss);
    uint8_t bytes[1500];
    size_t length = library->close(connection, 1, 0x100, "", bytes, sizeof bytes, now());
    if (length && send(udp, bytes, length, 0) < 0) fail("send", strerror(errno));
    return 0;
}
