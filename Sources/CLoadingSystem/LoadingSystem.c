// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "CLoadingSystem.h"
#include "Calls.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/keyctl.h>
#include <linux/magic.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

int cls_create_private_file(const char *path) {
    return RETRIED(open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
}

int cls_open_existing_file(const char *path) {
    return RETRIED(open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

int cls_open_for_reading(const char *path) {
    return RETRIED(open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

static void fill_facts(const struct stat *status, struct cls_file_facts *facts) {
    facts->size = status->st_size;
    facts->link_count = (int64_t)status->st_nlink;
    facts->inode = status->st_ino;
    facts->device = status->st_dev;
    facts->owner = status->st_uid;
    facts->kind = S_ISREG(status->st_mode) ? 1 : S_ISDIR(status->st_mode) ? 2 : 0;
    facts->mode = status->st_mode & 07777;
    facts->changed = (int64_t)status->st_mtim.tv_sec * 1000000000 + status->st_mtim.tv_nsec;
}

int cls_file_facts(int fd, struct cls_file_facts *facts) {
    struct stat status;
    if (fstat(fd, &status) < 0) return -errno;
    fill_facts(&status, facts);
    return 0;
}

int cls_path_facts(const char *path, struct cls_file_facts *facts) {
    struct stat status;
    if (lstat(path, &status) < 0) return -errno;
    fill_facts(&status, facts);
    return 0;
}

int cls_preallocate(int fd, int64_t offset, int64_t length) {
    return RETRIED(fallocate(fd, FALLOC_FL_KEEP_SIZE, offset, length));
}

int cls_is_in_memory(int fd) {
    struct statfs status;
    return RETRIED(fstatfs(fd, &status)) == 0 && (status.f_type == TMPFS_MAGIC || status.f_type == RAMFS_MAGIC);
}

int64_t cls_free_space(int fd) {
    struct statvfs status;
    int64_t result = RETRIED(fstatvfs(fd, &status));
    if (result < 0) return result;
    // The last blocks are reserved for root.
    uint64_t blocks = geteuid() == 0 ? status.f_bfree : status.f_bavail;
    // A file system that reports no blocks reports no limit.
    if (status.f_blocks == 0 || status.f_frsize == 0 || blocks > INT64_MAX / status.f_frsize) return INT64_MAX;
    return (int64_t)(blocks * status.f_frsize);
}

int cls_truncate(int fd, int64_t length) {
    return RETRIED(ftruncate(fd, length));
}

int64_t cls_seek_to(int fd, int64_t offset) {
    return checked(lseek(fd, offset, SEEK_SET));
}

int cls_close(int fd) {
    // close() is not retried, because Linux has closed the descriptor even after EINTR.
    return close(fd) < 0 && errno != EINTR ? -errno : 0;
}

int cls_unlink(const char *path) {
    return checked(unlink(path));
}

int cls_write_all(int fd, const struct cls_piece *pieces, int count, int64_t *written) {
    struct iovec vectors[64];
    if (count > 64) return -EINVAL;
    for (int i = 0; i < count; i++) {
        vectors[i].iov_base = (void *)pieces[i].start;
        vectors[i].iov_len = pieces[i].length;
    }
    *written = 0;
    int first = 0;
    while (first < count) {
        int64_t result = RETRIED(writev(fd, vectors + first, count - first));
        if (result < 0) return result;
        *written += result;
        size_t left = (size_t)result;
        while (first < count && left >= vectors[first].iov_len) left -= vectors[first++].iov_len;
        if (first < count) {
            if (result == 0) return -EIO;
            vectors[first].iov_base = (char *)vectors[first].iov_base + left;
            vectors[first].iov_len -= left;
        }
    }
    return 0;
}

int64_t cls_read_at(int fd, void *target, size_t count, int64_t offset) {
    size_t total = 0;
    while (total < count) {
        int64_t result = RETRIED(pread(fd, (char *)target + total, count - total, offset + (int64_t)total));
        if (result < 0) return result;
        if (result == 0) break;
        total += (size_t)result;
    }
    return (int64_t)total;
}

int64_t cls_read_cached(int fd, void *target, size_t count, int64_t offset) {
    size_t total = 0;
    while (total < count) {
        struct iovec vector = {.iov_base = (char *)target + total, .iov_len = count - total};
        int64_t result = RETRIED(preadv2(fd, &vector, 1, offset + (int64_t)total, RWF_NOWAIT));
        if (result < 0) return result == -EOPNOTSUPP || result == -ENOSYS ? -EAGAIN : result;
        if (result == 0) break;
        total += (size_t)result;
    }
    return (int64_t)total;
}

int cls_is_cached(int fd, int64_t offset, int64_t count) {
    // Read-ahead and reclaim work in pieces of this size or larger.
    const int64_t step = 131072;
    const int64_t last = offset + count - 1;
    for (int64_t position = offset;; position += step) {
        if (position > last) position = last;
        char byte;
        struct iovec vector = {.iov_base = &byte, .iov_len = 1};
        int64_t result = RETRIED(preadv2(fd, &vector, 1, position, RWF_NOWAIT));
        if (result == -EOPNOTSUPP) return cls_is_in_memory(fd) && RETRIED(pread(fd, &byte, 1, last)) == 1;
        if (result <= 0) return 0;
        if (position == last) return 1;
    }
}

int cls_duplicate(int fd) {
    return checked(fcntl(fd, F_DUPFD_CLOEXEC, 0));
}

int64_t cls_pipe(int ends[2], int64_t capacity) {
    if (pipe2(ends, O_CLOEXEC) < 0) return -errno;
    int size = fcntl(ends[1], F_SETPIPE_SZ, capacity > INT_MAX ? INT_MAX : (int)capacity);
    if (size < 0) size = fcntl(ends[1], F_GETPIPE_SZ);
    return size < 0 ? 65536 : size;
}

int64_t cls_splice_in(int socket_fd, int pipe_fd, size_t count) {
    return RETRIED(splice(socket_fd, NULL, pipe_fd, NULL, count, SPLICE_F_MOVE | SPLICE_F_NONBLOCK));
}

int64_t cls_splice_out(int pipe_fd, int file_fd, size_t count) {
    size_t total = 0;
    while (total < count) {
        int64_t result = RETRIED(splice(pipe_fd, NULL, file_fd, NULL, count - total, SPLICE_F_MOVE));
        if (result < 0) return result;
        if (result == 0) return -EIO;
        total += (size_t)result;
    }
    return (int64_t)total;
}

int64_t cls_pipe_read(int pipe_fd, void *target, size_t count) {
    size_t total = 0;
    while (total < count) {
        int64_t result = RETRIED(read(pipe_fd, (char *)target + total, count - total));
        if (result < 0) return result;
        if (result == 0) return -EIO;
        total += (size_t)result;
    }
    return (int64_t)total;
}

int64_t cls_receive(int socket_fd, void *target, size_t count) {
    return RETRIED(recv(socket_fd, target, count, MSG_DONTWAIT));
}

int cls_look(int socket_fd) {
    struct pollfd watched = {.fd = socket_fd, .events = POLLIN | POLLRDHUP};
    int64_t result = RETRIED(poll(&watched, 1, 0));
    if (result < 0) return result;
    int answer = 0;
    if (watched.revents & POLLIN) answer |= cls_is_readable;
    if (watched.revents & (POLLRDHUP | POLLHUP | POLLERR)) answer |= cls_has_ended;
    return answer;
}

int64_t cls_unacknowledged(int socket_fd) {
    int count = 0;
    return ioctl(socket_fd, SIOCOUTQ, &count) < 0 ? -errno : count;
}

int64_t cls_send(int socket_fd, const void *bytes, size_t count) {
    return RETRIED(send(socket_fd, bytes, count, MSG_DONTWAIT | MSG_NOSIGNAL));
}

int64_t cls_send_datagrams(int socket_fd, const void *bytes, size_t count, int segment, int is_v6, int traffic_class) {
    struct iovec piece = {(void *)bytes, count};
    union {
        char bytes[CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(uint16_t))];
        struct cmsghdr alignment;
    } control = {{0}};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    struct cmsghdr *item = CMSG_FIRSTHDR(&message);
    item->cmsg_level = is_v6 ? IPPROTO_IPV6 : IPPROTO_IP;
    item->cmsg_type = is_v6 ? IPV6_TCLASS : IP_TOS;
    item->cmsg_len = CMSG_LEN(sizeof traffic_class);
    memcpy(CMSG_DATA(item), &traffic_class, sizeof traffic_class);
    size_t length = CMSG_SPACE(sizeof traffic_class);
    if (segment > 0) {
        uint16_t size = (uint16_t)segment;
        item = CMSG_NXTHDR(&message, item);
        item->cmsg_level = SOL_UDP;
        item->cmsg_type = UDP_SEGMENT;
        item->cmsg_len = CMSG_LEN(sizeof size);
        memcpy(CMSG_DATA(item), &size, sizeof size);
        length += CMSG_SPACE(sizeof size);
    }
    message.msg_controllen = length;
    return RETRIED(sendmsg(socket_fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL));
}

int64_t cls_copy(int from_fd, int to_fd, int64_t count) {
    int64_t total = 0;
    int in_kernel = 1;
    while (total < count) {
        size_t left = (size_t)(count - total);
        int64_t result = in_kernel ? RETRIED(copy_file_range(from_fd, NULL, to_fd, NULL, left, 0))
                                   : RETRIED(sendfile(to_fd, from_fd, NULL, left));
        if (in_kernel && (result == -EXDEV || result == -EINVAL || result == -ENOSYS || result == -EOPNOTSUPP)) {
            in_kernel = 0;
            continue;
        }
        if (result < 0) return result;
        if (result == 0) break;
        total += result;
    }
    return total;
}

int cls_set_low_water(int socket_fd, int count) {
    return checked(setsockopt(socket_fd, SOL_SOCKET, SO_RCVLOWAT, &count, sizeof count));
}

int cls_event(void) {
    return checked(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}

int cls_event_signal(int event_fd) {
    uint64_t one = 1;
    int64_t result = RETRIED(write(event_fd, &one, sizeof one));
    return result < 0 && result != -EAGAIN ? result : 0;
}

int cls_wait(int socket_fd, int event_fd, int milliseconds) {
    struct pollfd watched[2] = {
        {.fd = event_fd, .events = POLLIN},
        {.fd = socket_fd, .events = POLLIN | POLLRDHUP},
    };
    int64_t result = RETRIED(poll(watched, 2, milliseconds));
    if (result < 0) return result;
    int answer = 0;
    if (watched[1].revents != 0) answer |= 1;
    if (watched[0].revents != 0) {
        uint64_t count;
        (void)RETRIED(read(event_fd, &count, sizeof count));
        answer |= 2;
    }
    return answer;
}

void cls_name_thread(const char *name) {
    pthread_setname_np(pthread_self(), name);
}

// The C library has no wrappers for these system calls.

int32_t cls_persistent_keyring(void) {
    return checked(syscall(SYS_keyctl, KEYCTL_GET_PERSISTENT, (long)-1, (long)KEY_SPEC_THREAD_KEYRING));
}

int32_t cls_keyring_find(int32_t keyring, const char *name) {
    return checked(syscall(SYS_keyctl, KEYCTL_SEARCH, (long)keyring, "user", name, 0L));
}

int64_t cls_key_read(int32_t key, void *target, size_t count) {
    return checked(syscall(SYS_keyctl, KEYCTL_READ, (long)key, target, count));
}

int32_t cls_key_add(int32_t keyring, const char *name, const void *value, size_t count) {
    return checked(syscall(SYS_add_key, "user", name, value, count, (long)keyring));
}

int32_t cls_key_remove(int32_t key, int32_t keyring) {
    return checked(syscall(SYS_keyctl, KEYCTL_UNLINK, (long)key, (long)keyring));
}
