// SPDX-License-Identifier: Apache-2.0

#ifndef C_LOADING_SYSTEM_H
#define C_LOADING_SYSTEM_H

#include <stddef.h>
#include <stdint.h>

// System calls that Swift cannot import, or imports badly (because they are variadic, or need _GNU_SOURCE). Every function retries
// after EINTR, and returns a negative errno on failure, so that callers do not depend on the thread's errno.

// Creates a new file that only its owner can read and write. Fails if the name exists; does not follow links.
int cls_create_private_file(const char *path);
// Opens an existing file for writing, without blocking (on a FIFO, for example). Does not follow a link at the last component.
int cls_open_existing_file(const char *path);
// Opens a file for reading without blocking.
int cls_open_for_reading(const char *path);

struct cls_file_facts {
    int64_t size;
    int64_t link_count;
    // The numbers of the inode, and of the device of the file system.
    uint64_t inode;
    uint64_t device;
    uint32_t owner;
    // 1 for a regular file, 2 for a directory, 0 for anything else.
    int32_t kind;
    // The permissions, such as 0600.
    uint32_t mode;
    // The time of the last modification, in nanoseconds since 1970.
    int64_t changed;
};
int cls_file_facts(int fd, struct cls_file_facts *facts);
// Reads the facts of the file at a path. Does not follow a link at the last component.
int cls_path_facts(const char *path, struct cls_file_facts *facts);

// Reserves blocks for the file, without changing its length, and without glibc's fallback of writing zeros.
int cls_preallocate(int fd, int64_t offset, int64_t length);
// The number of bytes that can still be written to the file's file system; INT64_MAX if the file system reports no limit.
int64_t cls_free_space(int fd);
// Whether the file is on an in-memory file system, where reserving blocks uses memory.
int cls_is_in_memory(int fd);
int cls_truncate(int fd, int64_t length);
int64_t cls_seek_to(int fd, int64_t offset);
int cls_close(int fd);
int cls_unlink(const char *path);

struct cls_piece {
    const void *start;
    size_t length;
};
// Writes all pieces, at most 64. Returns 0 or the error; sets the number of written bytes in either case.
int cls_write_all(int fd, const struct cls_piece *pieces, int count, int64_t *written);
// Reads until count bytes are read or the file ends; returns the number of bytes read.
int64_t cls_read_at(int fd, void *target, size_t count, int64_t offset);

// Reads like cls_read_at, but only from the page cache. Returns -EAGAIN if reading would have to wait for the disk, or if the file
// system cannot tell.
int64_t cls_read_cached(int fd, void *target, size_t count, int64_t offset);

// Whether a part of a file is in the page cache, so that sending this part does not wait for a disk. Returns 0 if the part is not
// cached, if the file has become shorter, or if the file system cannot tell. Checks one byte of every 128 KiB.
int cls_is_cached(int fd, int64_t offset, int64_t count);

int cls_duplicate(int fd);
// Creates a pipe with about the given capacity, or with the default capacity if the system refuses that capacity. Returns the
// pipe's capacity.
int64_t cls_pipe(int ends[2], int64_t capacity);
// Moves bytes from a socket into a pipe without blocking. Returns the number of bytes, 0 at the end of the stream, or -EAGAIN if no
// bytes are available.
int64_t cls_splice_in(int socket_fd, int pipe_fd, size_t count);
// Moves bytes from a pipe into a file at its position. Moves all bytes or fails.
int64_t cls_splice_out(int pipe_fd, int file_fd, size_t count);
// Reads count bytes from a pipe.
int64_t cls_pipe_read(int pipe_fd, void *target, size_t count);
// Reads from a socket without blocking. Returns the same values as cls_splice_in.
int64_t cls_receive(int socket_fd, void *target, size_t count);
// Copies between two files at their positions, in the kernel if possible.
int64_t cls_copy(int from_fd, int to_fd, int64_t count);
// What cls_look found: the socket is readable; the peer has closed or reset the connection.
enum { cls_is_readable = 1, cls_has_ended = 2 };
// Polls a socket without blocking. Returns the bits above.
int cls_look(int socket_fd);
// The number of bytes written to a TCP socket that the peer has not acknowledged.
int64_t cls_unacknowledged(int socket_fd);
// Sends without blocking and without SIGPIPE. Returns the number of bytes.
int64_t cls_send(int socket_fd, const void *bytes, size_t count);
// Sends datagrams of `segment` bytes each on a connected UDP socket, of which the last may be shorter, or one datagram if segment is
// 0; with an octet of traffic class (RFC 2474, RFC 3168). Does not block. Returns the number of bytes.
int64_t cls_send_datagrams(int socket_fd, const void *bytes, size_t count, int segment, int is_v6, int traffic_class);
// Sets SO_RCVLOWAT: poll() reports the socket as readable only if at least count bytes are available, or the stream has ended.
int cls_set_low_water(int socket_fd, int count);

int cls_event(void);
int cls_event_signal(int event_fd);
// Waits for the socket (ignored if negative) or the event, and then clears the event. Returns bit 0 if the socket is readable or
// closed, bit 1 if the event was signaled, 0 on a timeout.
int cls_wait(int socket_fd, int event_fd, int milliseconds);

// Waits until any of at most eight descriptors is readable or closed. Returns a bit for each such descriptor; 0 on a timeout. Waits
// without a limit if milliseconds is negative.
int cls_wait_any(const int *fds, int count, int milliseconds);

// Opens a netlink socket that receives changes of links, addresses and routes (rtnetlink(7)).
int cls_netlink_open(void);
// Requests all links (RTM_GETLINK) or addresses (RTM_GETADDR). The answer consists of several messages.
int cls_netlink_dump(int fd, uint16_t type, uint32_t number);
// Receives a message from the kernel without blocking; skips messages from other senders. Returns the message's length, -EAGAIN if
// there is no message, -ENOBUFS if messages were lost.
int64_t cls_netlink_receive(int fd, void *target, size_t count);
// Returns the index of the interface through which packets to an address (4 or 16 bytes) leave. If interface is not 0, only routes
// through that interface count. Sends nothing except the request to the kernel.
int cls_route(const void *address, int length, int interface);

// Names the calling thread for system tools; at most 15 bytes.
void cls_name_thread(const char *name);

// Links the user's persistent keyring (persistent-keyring(7)) to the calling thread's keyring. Returns the keyring's number. Fails
// if the kernel does not support persistent keyrings.
int32_t cls_persistent_keyring(void);
// Finds the key of type "user" with a name, without linking the key to another keyring. Returns the key's number, or -ENOKEY.
int32_t cls_keyring_find(int32_t keyring, const char *name);
// Reads at most count bytes of the key. Returns the key's full length.
int64_t cls_key_read(int32_t key, void *target, size_t count);
// Adds a key, or updates the key with that name. Returns the key's number.
int32_t cls_key_add(int32_t keyring, const char *name, const void *value, size_t count);
int32_t cls_key_remove(int32_t key, int32_t keyring);

// Starts a program that is not a child of this process, in a new session. The program's standard input and output are /dev/null.
// Its standard error is appended to the file log (mode 0600), or discarded if log is NULL. arguments and environment end with NULL.
// Returns when the program has started. If report is not NULL, the program's standard output is a pipe instead, and report receives
// the non-blocking read end of the pipe. If process is not NULL, it receives a descriptor that is readable when the program has
// ended, -ESRCH if the program has ended already, or another negative errno if the system does not offer such descriptors.
int cls_start_daemon(const char *path, char *const arguments[], char *const environment[], const char *directory, const char *log,
                     int *report, int *process);
// Reads without blocking. Returns the number of bytes, 0 at the end, -EAGAIN if no bytes are available yet.
int64_t cls_read_some(int fd, void *target, size_t count);
// Runs this process's program anew, with these arguments, which end with NULL. The new program has the standard descriptors and the
// descriptor `kept`, which may be negative, and no others. Returns a negative errno if that is not possible.
int cls_begin_anew(char *const arguments[], int kept);
// Opens a descriptor that is readable after the clock was set (timerfd_create(2)). Returns a negative errno on failure.
int cls_clock_watch(void);
// Opens a descriptor that is readable after a name in one of its folders was removed or replaced (inotify(7)).
int cls_names_watch(void);
// Adds a folder, if it is not watched yet. Returns a negative errno on failure.
int cls_names_watch_add(int fd, const char *folder);
// Reads everything from a descriptor of one of these kinds.
void cls_watch_clear(int fd);
// Runs a command without input, with a timeout in seconds. `said` receives the beginning of the command's standard error, ended by
// a NUL. Returns the command's exit status, 128 plus the number of the signal that ended the command, or a negative errno:
// -ETIMEDOUT if the command was killed by the timeout.
int cls_run_command(const char *path, char *const arguments[], char *const environment[], int seconds, char *said, size_t size);

// Connects to a Unix-domain socket. Sending on the socket times out after this many seconds.
int cls_connect(const char *path, int seconds);
// Sends all bytes, or fails; never raises SIGPIPE.
int cls_send_all(int socket_fd, const void *bytes, size_t count);
// Waits for bytes. Returns the number of received bytes, 0 at the end.
int64_t cls_receive_some(int socket_fd, void *target, size_t count);
// Sets the timeout for receiving in seconds; 0 for no timeout.
void cls_limit_receiving(int socket_fd, int seconds);
// Shuts down a connection in both directions; blocked readers see the end.
void cls_end_connection(int socket_fd);

// The process at the other end of a Unix-domain socket.
struct cls_peer {
    int32_t process;
    uint32_t user;
};
int cls_peer(int socket_fd, struct cls_peer *peer);
// Locks a file; creates the file (0600) if it does not exist. The lock lasts until the descriptor is closed. Returns the
// descriptor, or -EWOULDBLOCK if another process holds the lock and wait is 0.
int cls_lock_file(const char *path, int wait);
// Records in a locked file that this process holds the lock, in a second line what the process waits for, and in a third line the
// version of its protocol.
void cls_lock_sign(int fd, const char *reason, int version);
// Returns the process that signed a lock, if its executable has the same name as this process's executable; otherwise 0.
int32_t cls_lock_holder(const char *path);
// Waits until a process has ended, and so has released its locks, or until the timeout. If the process cannot be watched and the
// timeout is longer than 50 ms, returns after 2 ms, so that the caller checks again soon.
void cls_wait_for_end(int32_t process, int milliseconds);
// Whether clients that connect to a path reach this listening socket. Returns 1 if they do, 0 if they reach another socket or no
// socket, or -EAGAIN if the answer is unknown.
int cls_listens_at(int socket_fd, const char *path);
// Accepts a pending connection of a listening socket. Returns the connection's descriptor, or -EAGAIN if no connection is pending.
int cls_accept_waiting(int socket_fd);
// Flushes a file or directory to the disk with fsync.
int cls_sync(int fd);
// Opens a directory. Does not follow a link at the last component.
int cls_open_directory(const char *path);
// Seconds since the machine booted, including the time during which the machine was suspended.
double cls_boot_seconds(void);
// Calls `found` for each memory mapping that has the same content as its file and cannot change: it is not writable and has no
// modified pages, not even swapped-out ones. map is the path of a list of mappings in the format of /proc/self/smaps.
void cls_clean_mappings(const char *map, void (*found)(void *context, uintptr_t start, uintptr_t end), void *context);
// Releases memory that the process can get back: unmodified pages of its program, and free memory of its heap.
void cls_rest(void);
// The resident memory of the process in bytes; 0 if the size is unknown.
int64_t cls_resident_bytes(void);

#endif
