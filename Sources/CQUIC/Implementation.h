// SPDX-License-Identifier: Apache-2.0

// The source that is compiled for each interface.

#define _GNU_SOURCE
#include <netinet/in.h>

// In the order of their dependencies.
#include "Declarations.h"
#include "Functions.h"
#include "Connection.h"
#include "Streams.h"
#include "HTTP.h"
#include "QUIC.h"
#include "TLS.h"
#include "Packets.h"
#include "Requests.h"
#include "Interface.h"
