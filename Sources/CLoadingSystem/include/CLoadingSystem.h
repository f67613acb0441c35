//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef C_LOADING_SYSTEM_H
#define C_LOADING_SYSTEM_H

#include <stddef.h>
#include <stdint.h>

// System calls that Swift cannot import, or imports badly (variadic, or behind _GNU_SOURCE). Every function retries EINTR and
// returns a negative errno on failure, so that no caller depends on the thread's errno.

// Creates a file that nobody else has: fails if the name exists, follows no link, readable and writable by its owner only.
int cls_create_private_file(const char *path);
// Opens an existing file for writing, following no link at the last component and never waiting (for a FIFO, say).
int cls_open_existing_file(const char *path);
// Opens a file for reading without ever waiting.
int cls_open_for_reading(const char *path);

struct cls_file_facts {
    int64_t size;
    int64_t link_count;
    // Which file it is, of which file system.
    uint64_t inode;
    uint64_t device;
    uint32_t owner;
    // 1 for a regular file, 2 for a directory, 0 for anything else.
    int32_t kind;
    // Permissions, as in 0600.
    uint32_t mode;
    // Of its last change, in nanoseconds since 1970.
    int64_t changed;
};
int cls_file_facts(int fd, struct cls_file_facts *facts);
// The same of what a path names, following no link at its last component.
int cls_path_facts(const char *path, struct cls_file_facts *facts);

// Reserves blocks of the file without changing its length and without glibc's fall-back of writing zeros.
int cls_preallocate(int fd, int64_t offset, int64_t length);
// The bytes that we may still write to the file's file system; INT64_MAX where it has no bound that it tells.
int64_t cls_free_space(int fd);
// Whether a file lies in memory: to reserve blocks for it there is to take the memory.
int cls_is_in_memory(int fd);
int cls_truncate(int fd, int64_t length);
int64_t cls_seek_to(int fd, int64_t offset);
int cls_close(int fd);
int cls_unlink(const char *path);

struct cls_piece {
    const void *start;
    size_t length;
};
// Writes all pieces, at most 64 of them; returns 0 or the error, and says how much was written either way.
int cls_write_all(int fd, const struct cls_piece *pieces, int count, int64_t *written);
// Reads until count bytes are there or the file ends; returns the bytes read.
int64_t cls_read_at(int fd, void *target, size_t count, int64_t offset);

// The same, but only from memory: -EAGAIN where the disk would have to be waited for, or the file system cannot tell.
int64_t cls_read_cached(int fd, void *target, size_t count, int64_t offset);

// Whether a part of a file is in memory, so that sending it does not wait for a disk: 1, or 0 where it is not, the file has become shorter,
// or the file system cannot tell. Looks at a byte of every 128 KiB.
int cls_is_cached(int fd, int64_t offset, int64_t count);

int cls_duplicate(int fd);
// A pipe of about the given capacity; where the system refuses that, of the default one. Returns its capacity.
int64_t cls_pipe(int ends[2], int64_t capacity);
// Moves bytes from a socket into a pipe without waiting: bytes moved, 0 at the end of the stream, -EAGAIN when there are none.
int64_t cls_splice_in(int socket_fd, int pipe_fd, size_t count);
// Moves bytes from a pipe into a file at its position: all of them, unless it fails.
int64_t cls_splice_out(int pipe_fd, int file_fd, size_t count);
// Reads what is in a pipe: count bytes.
int64_t cls_pipe_read(int pipe_fd, void *target, size_t count);
// Reads from a socket without waiting, as cls_splice_in.
int64_t cls_receive(int socket_fd, void *target, size_t count);
// Copies between two files at their positions, in the kernel where it can.
int64_t cls_copy(int from_fd, int to_fd, int64_t count);
// Looks at a socket without waiting: bit 0 there is something to read, bit 1 the peer has closed or reset the connection.
int cls_look(int socket_fd);
// How many bytes that a TCP socket was given its peer has not acknowledged.
int64_t cls_unacknowledged(int socket_fd);
// Sends without waiting and without SIGPIPE: how many bytes, or a negative errno.
int64_t cls_send(int socket_fd, const void *bytes, size_t count);
// Has poll() report the socket readable only from that many bytes on, or at its end.
int cls_set_low_water(int socket_fd, int count);

int cls_event(void);
int cls_event_signal(int event_fd);
// Waits for the socket (skipped when negative) or the event, which it clears: bit 0 the socket is readable or over, bit 1 the
// event was signalled, 0 the time is over.
int cls_wait(int socket_fd, int event_fd, int milliseconds);

// Waits for any of at most eight descriptors to be readable or over: a bit for each, 0 when the time is over. Negative milliseconds wait
// for ever.
int cls_wait_any(const int *fds, int count, int milliseconds);

// A netlink socket that is told when links, addresses and routes change (rtnetlink(7)).
int cls_netlink_open(void);
// Asks for all links (RTM_GETLINK) or addresses (RTM_GETADDR); the answer comes in several messages.
int cls_netlink_dump(int fd, uint16_t type, uint32_t number);
// Reads a message of the kernel's without waiting, and leaves out those of others: its length, -EAGAIN where there is none, -ENOBUFS where
// some were lost.
int64_t cls_netlink_receive(int fd, void *target, size_t count);
// The index of the interface that packets to an address (4 or 16 bytes) leave by; of this one, unless it is 0, where a route by it leads
// there. Sends nothing but the question to the kernel.
int cls_route(const void *address, int length, int interface);

// Names the calling thread for the system's tools; at most 15 bytes.
void cls_name_thread(const char *name);

// The calling thread's way to the user's persistent keyring (persistent-keyring(7)): its number. Fails where there are no such keyrings.
int32_t cls_persistent_keyring(void);
// The key of that name (of type "user"), linked to nothing else: its number, or -ENOKEY.
int32_t cls_keyring_find(int32_t keyring, const char *name);
// The length of the key, of which at most count bytes are read.
int64_t cls_key_read(int32_t key, void *target, size_t count);
// Adds a key, or gives the one of that name another value: its number.
int32_t cls_key_add(int32_t keyring, const char *name, const void *value, size_t count);
int32_t cls_key_remove(int32_t key, int32_t keyring);

// Starts a program as nobody's child, in a session of its own, with no descriptors but /dev/null and its errors in a file (0600, appended
// to; nowhere if NULL); arguments and environment end with NULL. Returns when it was started. Where report is not NULL, it is set to the end
// of a pipe to read from without waiting, whose other end is the program's standard output.
int cls_start_daemon(const char *path, char *const arguments[], char *const environment[], const char *directory, const char *log,
                     int *report);
// Reads what is there without waiting: how many bytes, 0 at the end, -EAGAIN where there are none yet.
int64_t cls_read_some(int fd, void *target, size_t count);
// Runs a command to its end, for so many seconds at most, with no input; as much of its errors as there is room for is `said`, ended by 0.
// Its exit status, 128 and a signal's number, or an error's number below 0: ETIMEDOUT where it was ended for being slow.
int cls_run_command(const char *path, char *const arguments[], char *const environment[], int seconds, char *said, size_t size);

// Connects to a Unix-domain socket; what is sent there waits at most so many seconds.
int cls_connect(const char *path, int seconds);
// Sends all of it, or fails; never raises SIGPIPE.
int cls_send_all(int socket_fd, const void *bytes, size_t count);
// Waits for bytes: how many came, 0 at the end.
int64_t cls_receive_some(int socket_fd, void *target, size_t count);
// Waiting for bytes fails after so many seconds; 0 for never.
void cls_limit_receiving(int socket_fd, int seconds);
// Ends a connection in both directions; whoever reads there sees the end.
void cls_end_connection(int socket_fd);

// Who is at the other end of a Unix-domain socket.
struct cls_peer {
    int32_t process;
    uint32_t user;
};
int cls_peer(int socket_fd, struct cls_peer *peer);
// A lock on a file that is made where it is not there (0600), held until the descriptor is closed: the descriptor, or -EWOULDBLOCK where
// another process holds it, unless wait is not 0.
int cls_lock_file(const char *path, int wait);
// Writes into a locked file which process holds it, and a line on what that one waits for.
void cls_lock_sign(int fd, const char *reason);
// The process that signed a lock and runs a program of the name of ours; 0 where there is none.
int32_t cls_lock_holder(const char *path);
// Waits until a process has ended, and so has let go of its locks, or for so many milliseconds; for 2 at once where it cannot be watched
// and would be for more than 50, so that whoever looks again sees its end.
void cls_wait_for_end(int32_t process, int milliseconds);
// Whether who connects at a path comes to the listening socket: 1, or 0 where another one or none is there, -EAGAIN where that cannot be told.
int cls_listens_at(int socket_fd, const char *path);
// Takes a connection that waits at a listening socket: a descriptor, or a negative errno (-EAGAIN where there is none).
int cls_accept_waiting(int socket_fd);
// Brings a file or directory to the disk: fsync.
int cls_sync(int fd);
// Opens a directory, following no link at the last component.
int cls_open_directory(const char *path);
// Seconds since the machine started, those in which it slept included.
double cls_boot_seconds(void);
// Names the mappings of a process, by its map as /proc/self/smaps has it, whose memory the files have, whatever becomes of it: nobody can write
// to them, and nobody has. What was written before and lies on swap counts as well.
void cls_clean_mappings(const char *map, void (*found)(void *context, uintptr_t start, uintptr_t end), void *context);
// Gives back what the process has in memory and can have again: pages of its program, free memory of its heap.
void cls_rest(void);
// Bytes of memory that the process has resident; 0 where that is not known.
int64_t cls_resident_bytes(void);

#endif
