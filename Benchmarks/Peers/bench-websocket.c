// SPDX-License-Identifier: Apache-2.0

// A WebSocket client on a blocking socket, with BenchKit's cases, options and output.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static long count = 10000, warm_up = 0, in_flight = 64, connections = 64, size = 64;
static const char *host_and_path;
static int port;

/// Bytes that were read and not processed.
static unsigned char input[1 << 18];
static size_t input_begin, input_end;

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static double cpu(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) + (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static long status(const char *key) {
    FILE *lines = fopen("/proc/self/status", "r");
    char line[256];
    long value = 0;
    while (lines && fgets(line, sizeof line, lines))
        if (!strncmp(line, key, strlen(key))) value = atol(line + strlen(key));
    if (lines) fclose(lines);
    return value;
}

static void write_all(int socket, const unsigned char *bytes, size_t length) {
    while (length > 0) {
        ssize_t sent = write(socket, bytes, length);
        if (sent <= 0) fail("write");
        bytes += sent;
        length -= (size_t)sent;
    }
}

static void read_more(int socket) {
    if (input_begin == input_end) input_begin = input_end = 0;
    if (input_end == sizeof input) {
        memmove(input, input + input_begin, input_end - input_begin);
        input_end -= input_begin;
        input_begin = 0;
    }
    ssize_t got = read(socket, input + input_end, sizeof input - input_end);
    if (got <= 0) fail("read");
    input_end += (size_t)got;
}

static int open_socket(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int s = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    if (s < 0 || connect(s, (struct sockaddr *)&address, sizeof address)) fail("connect");
    setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    char request[512];
    int length = snprintf(request, sizeof request,
                          "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                          "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
                          strchr(host_and_path, '/'), port);
    write_all(s, (unsigned char *)request, (size_t)length);
    input_begin = input_end = 0;
    unsigned char *end;
    do read_more(s);
    while (!(end = memmem(input, input_end, "\r\n\r\n", 4)));
    if (strncmp((char *)input, "HTTP/1.1 101", 12)) {
        fprintf(stderr, "not upgraded\n");
        exit(1);
    }
    input_begin = (size_t)(end + 4 - input);
    return s;
}

static uint32_t next_key(void) {
    static uint32_t keys[64];
    static int left;
    if (left == 0) {
        if (getrandom(keys, sizeof keys, 0) != sizeof keys) fail("getrandom");
        left = 64;
    }
    return keys[--left];
}

/// Writes a masked frame of a binary message, and returns its length.
static size_t put_frame(unsigned char *target, const unsigned char *payload, size_t length) {
    uint32_t key = next_key();
    size_t head = 2;
    target[0] = 0x82;
    if (length < 126) {
        target[1] = (unsigned char)(0x80 | length);
    } else if (length < 65536) {
        target[1] = 0x80 | 126;
        target[2] = (unsigned char)(length >> 8);
        target[3] = (unsigned char)length;
        head = 4;
    } else {
        target[1] = 0x80 | 127;
        for (int i = 0; i < 8; i++) target[2 + i] = (unsigned char)((uint64_t)length >> (56 - 8 * i));
        head = 10;
    }
    memcpy(target + head, &key, 4);
    head += 4;
    const unsigned char *bytes = (const unsigned char *)&key;
    for (size_t i = 0; i < length; i++) target[head + i] = payload[i] ^ bytes[i & 3];
    return head + length;
}

/// Copies the next message to `target`, and returns its length; -1 if its frame is incomplete.
static long take_frame(unsigned char *target) {
    const unsigned char *bytes = input + input_begin;
    size_t there = input_end - input_begin, head = 2;
    if (there < 2) return -1;
    uint64_t length = bytes[1] & 0x7F;
    if (length == 126) {
        if (there < 4) return -1;
        length = (uint64_t)bytes[2] << 8 | bytes[3];
        head = 4;
    } else if (length == 127) {
        if (there < 10) return -1;
        length = 0;
        for (int i = 0; i < 8; i++) length = length << 8 | bytes[2 + i];
        head = 10;
    }
    if (there < head + length) return -1;
    memcpy(target, bytes + head, length);
    input_begin += head + length;
    return (long)length;
}

static void echo(int socket, long count) {
    unsigned char *payload = malloc((size_t)size), *received = malloc(sizeof input);
    unsigned char *output = malloc((size_t)(size + 14) * (size_t)in_flight);
    memset(payload, 7, (size_t)size);
    long to_send = count, to_receive = count, may_send = in_flight;
    while (to_receive > 0) {
        size_t length = 0;
        for (; may_send > 0 && to_send > 0; may_send--, to_send--) length += put_frame(output + length, payload, (size_t)size);
        write_all(socket, output, length);
        read_more(socket);
        for (long got; to_receive > 0 && (got = take_frame(received)) >= 0; to_receive--, may_send++)
            if (got != size) fail("not an echo");
    }
    free(payload);
    free(received);
    free(output);
}

int main(int argc, char **argv) {
    if (argc < 3 || strncmp(argv[2], "ws://", 5)) {
        fprintf(stderr, "usage: %s CASE ws://127.0.0.1:PORT/PATH [key=value ...]\n", argv[0]);
        return 1;
    }
    host_and_path = argv[2] + 5;
    port = atoi(strchr(host_and_path, ':') + 1);
    for (int i = 3; i < argc; i++) {
        sscanf(argv[i], "count=%ld", &count);
        sscanf(argv[i], "warmup=%ld", &warm_up);
        sscanf(argv[i], "inflight=%ld", &in_flight);
        sscanf(argv[i], "connections=%ld", &connections);
        sscanf(argv[i], "size=%ld", &size);
    }
    if (!strcmp(argv[1], "echo")) {
        int socket = open_socket();
        echo(socket, warm_up);
        double cpu_before = cpu(), start = now();
        echo(socket, count);
        double used = cpu() - cpu_before;
        printf("{\"wall\": %f, \"cpu\": %f, \"echoes_per_cpu_s\": %f", now() - start, used, (double)count / used);
    } else if (!strcmp(argv[1], "stream")) {
        double cpu_before = cpu(), start = now();
        int socket = open_socket();
        unsigned char *message = malloc(sizeof input), request[14];
        write_all(socket, request, put_frame(request, request, 0));
        for (long got = 0; got < count;) {
            while (got < count && take_frame(message) == size) got++;
            if (got < count) read_more(socket);
        }
        printf("{\"wall\": %f, \"cpu\": %f", now() - start, cpu() - cpu_before);
    } else {
        struct rlimit limit;
        getrlimit(RLIMIT_NOFILE, &limit);
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
        open_socket();
        long before = status("VmRSS:");
        double cpu_before = cpu();
        for (long i = 0; i < connections; i++) open_socket();
        double used = cpu() - cpu_before;
        long after = status("VmRSS:");
        printf("{\"cpu\": %f, \"rss_kib\": %ld, \"kib_per_socket\": %f", used, after, (double)(after - before) / (double)connections);
    }
    printf(", \"peak_rss_kib\": %ld}\n", status("VmHWM:"));
    return 0;
}
