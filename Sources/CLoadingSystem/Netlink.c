// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "CLoadingSystem.h"
#include "Calls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int cls_wait_any(const int *fds, int count, int milliseconds) {
    struct pollfd waited[8];
    if (count < 0 || count > 8) return -EINVAL;
    for (int i = 0; i < count; i++) waited[i] = (struct pollfd){.fd = fds[i], .events = POLLIN};
    int ready;
    do ready = poll(waited, (nfds_t)count, milliseconds);
    while (ready < 0 && errno == EINTR && milliseconds < 0);
    if (ready < 0) return errno == EINTR ? 0 : -errno;
    int bits = 0;
    for (int i = 0; i < count; i++) {
        if (waited[i].revents != 0) bits |= 1 << i;
    }
    return bits;
}

static int open_netlink(uint32_t groups, int flags) {
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | flags, NETLINK_ROUTE);
    if (fd < 0) return -errno;
    struct sockaddr_nl own = {.nl_family = AF_NETLINK, .nl_groups = groups};
    return bind(fd, (struct sockaddr *)&own, sizeof own) < 0 ? close_failed(fd) : fd;
}

int cls_netlink_open(void) {
    uint32_t groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR | RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE;
    return open_netlink(groups, SOCK_NONBLOCK);
}

static int send_to_kernel(int fd, const void *message, size_t length) {
    struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    int64_t sent = RETRIED(sendto(fd, message, length, MSG_NOSIGNAL, (struct sockaddr *)&kernel, sizeof kernel));
    return sent < 0 ? sent : 0;
}

int cls_netlink_dump(int fd, uint16_t type, uint32_t number) {
    struct {
        struct nlmsghdr header;
        struct ifinfomsg body;
    } message;
    memset(&message, 0, sizeof message);
    message.header = (struct nlmsghdr){
        .nlmsg_len = sizeof message, .nlmsg_type = type, .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP, .nlmsg_seq = number};
    message.body.ifi_family = AF_UNSPEC;
    return send_to_kernel(fd, &message, sizeof message);
}

int64_t cls_netlink_receive(int fd, void *target, size_t count) {
    for (;;) {
        struct sockaddr_nl sender;
        socklen_t length = sizeof sender;
        int64_t received = RETRIED(recvfrom(fd, target, count, MSG_DONTWAIT, (struct sockaddr *)&sender, &length));
        if (received < 0) return received;
        if (length == sizeof sender && sender.nl_pid == 0) return received;
    }
}

int cls_route(const void *address, int length, int interface) {
    if (length != 4 && length != 16) return -EINVAL;
    struct {
        struct nlmsghdr header;
        struct rtmsg body;
        struct rtattr attribute;
        uint8_t address[16 + RTA_LENGTH(sizeof(int))];
    } message;
    memset(&message, 0, sizeof message);
    size_t size = NLMSG_LENGTH(sizeof message.body) + RTA_LENGTH((size_t)length);
    if (interface > 0) {
        // Without this flag, the kernel treats an address that has no route through the output interface as on-link.
        message.body.rtm_flags = RTM_F_FIB_MATCH;
        struct rtattr attribute = {.rta_len = RTA_LENGTH(sizeof interface), .rta_type = RTA_OIF};
        memcpy(message.address + length, &attribute, sizeof attribute);
        memcpy(message.address + length + sizeof attribute, &interface, sizeof interface);
        size += RTA_LENGTH(sizeof interface);
    }
    message.header = (struct nlmsghdr){.nlmsg_len = (uint32_t)size, .nlmsg_type = RTM_GETROUTE, .nlmsg_flags = NLM_F_REQUEST};
    message.body.rtm_family = length == 4 ? AF_INET : AF_INET6;
    message.body.rtm_dst_len = (uint8_t)(length * 8);
    message.attribute = (struct rtattr){.rta_len = (uint16_t)RTA_LENGTH((size_t)length), .rta_type = RTA_DST};
    memcpy(message.address, address, (size_t)length);
    int fd = open_netlink(0, 0);
    if (fd < 0) return fd;
    int result = send_to_kernel(fd, &message, size);
    union {
        struct nlmsghdr header;
        uint8_t bytes[8192];
    } answer;
    // The kernel answers before the call that sends the request returns.
    int64_t received = result < 0 ? result : cls_netlink_receive(fd, &answer, sizeof answer);
    close(fd);
    if (received < 0) return (int)received;
    if (!NLMSG_OK(&answer.header, (size_t)received)) return -EIO;
    if (answer.header.nlmsg_type == NLMSG_ERROR) {
        if (answer.header.nlmsg_len < NLMSG_LENGTH(sizeof(struct nlmsgerr))) return -EIO;
        int code = ((struct nlmsgerr *)NLMSG_DATA(&answer.header))->error;
        return code < 0 ? code : -EIO;
    }
    if (answer.header.nlmsg_type != RTM_NEWROUTE || answer.header.nlmsg_len < NLMSG_LENGTH(sizeof(struct rtmsg))) return -EIO;
    struct rtmsg *route = NLMSG_DATA(&answer.header);
    if (route->rtm_type == RTN_UNREACHABLE || route->rtm_type == RTN_BLACKHOLE || route->rtm_type == RTN_PROHIBIT) return -ENETUNREACH;
    int left = (int)(answer.header.nlmsg_len - NLMSG_LENGTH(sizeof *route));
    for (struct rtattr *part = RTM_RTA(route); RTA_OK(part, left); part = RTA_NEXT(part, left)) {
        if (part->rta_type == RTA_OIF && RTA_PAYLOAD(part) >= sizeof(int)) {
            int index;
            memcpy(&index, RTA_DATA(part), sizeof index);
            return index;
        }
    }
    return -ENETUNREACH;
}
