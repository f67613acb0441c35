// SPDX-License-Identifier: Apache-2.0

// libcurl's multi interface, driven by epoll on one thread, with BenchKit's cases, options and output.

#define _GNU_SOURCE
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char *name, *url, *file = "";
static long count = 10000, warm_up = 0, in_flight = 64, connections = 64, size = 0, http2 = 0;

/// One caller: its handle, and the body of its response.
struct transfer {
    CURL *handle;
    double start;
    char *body;
    size_t length, capacity;
    FILE *target;
};

static CURLM *multi;
static int poller;
static long timer = -1;
static double *latencies;

static void fail(const char *what, const char *why) {
    fprintf(stderr, "bench-libcurl: %s: %s\n", what, why);
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
        if (strncmp(line, key, strlen(key)) == 0) value = strtol(line + strlen(key), NULL, 10);
    if (lines) fclose(lines);
    return value;
}

// MARK: Sockets and timers

static int on_socket(CURL *handle, curl_socket_t socket, int what, void *user, void *known) {
    (void)handle, (void)user;
    struct epoll_event event = {.events = (what & CURL_POLL_IN ? EPOLLIN : 0) | (what & CURL_POLL_OUT ? EPOLLOUT : 0), .data.fd = socket};
    if (what == CURL_POLL_REMOVE) {
        epoll_ctl(poller, EPOLL_CTL_DEL, socket, NULL);
        curl_multi_assign(multi, socket, NULL);
    } else {
        epoll_ctl(poller, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, socket, &event);
        if (!known) curl_multi_assign(multi, socket, &poller);
    }
    return 0;
}

static int on_timer(CURLM *handle, long milliseconds, void *user) {
    (void)handle, (void)user;
    timer = milliseconds;
    return 0;
}

static size_t on_body(char *bytes, size_t one, size_t length, void *user) {
    (void)one;
    struct transfer *transfer = user;
    if (transfer->target) return fwrite(bytes, 1, length, transfer->target);
    transfer->length += length;
    if (strcmp(name, "delegate") == 0) return length;
    if (transfer->length > transfer->capacity) {
        transfer->capacity = transfer->length * 2;
        transfer->body = realloc(transfer->body, transfer->capacity);
    }
    memcpy(transfer->body + transfer->length - length, bytes, length);
    return length;
}

// MARK: Requests

static void begin(struct transfer *transfer) {
    transfer->length = 0;
    transfer->start = now();
    curl_multi_add_handle(multi, transfer->handle);
}

static struct transfer *make_transfer(void) {
    struct transfer *transfer = calloc(1, sizeof *transfer);
    transfer->handle = curl_easy_init();
    curl_easy_setopt(transfer->handle, CURLOPT_URL, url);
    curl_easy_setopt(transfer->handle, CURLOPT_HTTP_VERSION, http2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1);
    if (http2) curl_easy_setopt(transfer->handle, CURLOPT_PIPEWAIT, 1L);
    curl_easy_setopt(transfer->handle, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(transfer->handle, CURLOPT_WRITEDATA, transfer);
    curl_easy_setopt(transfer->handle, CURLOPT_PRIVATE, transfer);
    curl_easy_setopt(transfer->handle, CURLOPT_FAILONERROR, 1L);
    curl_easy_setopt(transfer->handle, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(transfer->handle, CURLOPT_PROXY, "");
    if (getenv("SSL_CERT_FILE")) curl_easy_setopt(transfer->handle, CURLOPT_CAINFO, getenv("SSL_CERT_FILE"));
    return transfer;
}

/// Makes `wanted` requests with all transfers, and records their durations in seconds.
static void requests(long wanted, struct transfer **transfers, long callers) {
    long begun = 0, done = 0;
    for (long i = 0; i < callers && begun < wanted; i++, begun++) begin(transfers[i]);
    while (done < wanted) {
        struct epoll_event events[256];
        int left, ready = epoll_wait(poller, events, 256, (int)timer);
        if (ready == 0) {
            timer = -1;
            curl_multi_socket_action(multi, CURL_SOCKET_TIMEOUT, 0, &left);
        }
        for (int i = 0; i < ready; i++) {
            int mask = (events[i].events & (EPOLLIN | EPOLLHUP) ? CURL_CSELECT_IN : 0) | (events[i].events & EPOLLOUT ? CURL_CSELECT_OUT : 0);
            curl_multi_socket_action(multi, events[i].data.fd, mask, &left);
        }
        CURLMsg *message;
        while ((message = curl_multi_info_read(multi, &left))) {
            struct transfer *transfer;
            curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer);
            if (message->data.result != CURLE_OK) fail(url, curl_easy_strerror(message->data.result));
            if (size && !transfer->target && strcmp(name, "upload") && (long)transfer->length != size) fail(url, "wrong size");
            if (latencies) latencies[done] = now() - transfer->start;
            done++;
            curl_multi_remove_handle(multi, transfer->handle);
            if (begun < wanted) begun++, begin(transfer);
        }
    }
}

static int smaller(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// MARK: Cases

static void get(struct transfer **transfers) {
    if (warm_up) requests(warm_up, transfers, in_flight);
    latencies = calloc((size_t)count, sizeof *latencies);
    double used = cpu(), start = now();
    requests(count, transfers, in_flight);
    double wall = now() - start;
    used = cpu() - used;
    qsort(latencies, (size_t)count, sizeof *latencies, smaller);
    printf("{\"wall\": %f, \"cpu\": %f, \"cpu_per_10k\": %f, \"p50_us\": %f, \"p99_us\": %f, \"max_us\": %f", wall, used,
           used * 10000 / (double)count, latencies[count / 2] * 1e6, latencies[count * 99 / 100] * 1e6, latencies[count - 1] * 1e6);
}

static void bulk(struct transfer *transfer) {
    FILE *source = NULL;
    struct stat information;
    // libcurl's maximum.
    curl_easy_setopt(transfer->handle, CURLOPT_BUFFERSIZE, (long)CURL_MAX_READ_SIZE);
    if (strcmp(name, "download") == 0 && !(transfer->target = fopen(file, "w"))) fail(file, "cannot be written");
    if (transfer->target) setvbuf(transfer->target, NULL, _IONBF, 0);
    if (strcmp(name, "upload") == 0) {
        if (!(source = fopen(file, "r")) || fstat(fileno(source), &information)) fail(file, "cannot be read");
        curl_easy_setopt(transfer->handle, CURLOPT_UPLOAD, 1L);
        curl_easy_setopt(transfer->handle, CURLOPT_READDATA, source);
        curl_easy_setopt(transfer->handle, CURLOPT_INFILESIZE_LARGE, (curl_off_t)information.st_size);
        // libcurl's maximum.
        curl_easy_setopt(transfer->handle, CURLOPT_UPLOAD_BUFFERSIZE, 2097152L);
    }
    double used = cpu(), start = now();
    requests(1, &transfer, 1);
    if (transfer->target) {
        if (size && ftell(transfer->target) != size) fail(url, "wrong size");
        fclose(transfer->target);
    }
    printf("{\"wall\": %f, \"cpu\": %f", now() - start, cpu() - used);
}

static void read_options(int argc, char **argv) {
    if (argc < 3) fail("usage", "bench-libcurl CASE URL [key=value ...]");
    name = argv[1], url = argv[2];
    for (int i = 3; i < argc; i++) {
        char *value = strchr(argv[i], '=');
        if (!value) fail("not key=value", argv[i]);
        *value++ = 0;
        if (strcmp(argv[i], "file") == 0) file = value;
        else if (strcmp(argv[i], "count") == 0) count = atol(value);
        else if (strcmp(argv[i], "warmup") == 0) warm_up = atol(value);
        else if (strcmp(argv[i], "inflight") == 0) in_flight = atol(value);
        else if (strcmp(argv[i], "connections") == 0) connections = atol(value);
        else if (strcmp(argv[i], "size") == 0) size = atol(value);
        else if (strcmp(argv[i], "http2") == 0) http2 = atol(value);
        else fail("unknown option", argv[i]);
    }
}

int main(int argc, char **argv) {
    read_options(argc, argv);
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    curl_global_init(CURL_GLOBAL_DEFAULT);
    multi = curl_multi_init();
    poller = epoll_create1(EPOLL_CLOEXEC);
    curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, on_timer);
    curl_multi_setopt(multi, CURLMOPT_MAX_HOST_CONNECTIONS, connections);
    curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, connections);

    int is_bulk = strcmp(name, "download") == 0 || strcmp(name, "delegate") == 0 || strcmp(name, "upload") == 0;
    if (is_bulk || strcmp(name, "start") == 0) in_flight = 1;
    struct transfer **transfers = calloc((size_t)in_flight, sizeof *transfers);
    for (long i = 0; i < in_flight; i++) transfers[i] = make_transfer();
    if (strcmp(name, "get") == 0 || strcmp(name, "slow") == 0) {
        get(transfers);
    } else if (is_bulk) {
        bulk(transfers[0]);
    } else if (strcmp(name, "start") == 0) {
        requests(1, transfers, 1);
        printf("{\"answered_at\": %.9f", now());
    } else if (strcmp(name, "long") == 0) {
        requests(10000, transfers, in_flight);
        printf("{\"rss_10k_kib\": %ld", status("VmRSS:"));
        requests(count - 10000, transfers, in_flight);
        printf(", \"rss_end_kib\": %ld", status("VmRSS:"));
    } else {
        printf("{\"unsupported\": 1");
    }
    printf(", \"peak_rss_kib\": %ld}\n", status("VmHWM:"));
    return 0;
}
