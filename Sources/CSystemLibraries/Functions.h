// SPDX-License-Identifier: Apache-2.0

#include <stddef.h>

// A function of a library, and the offset of the pointer to it in the table of functions.
struct clib_function {
    const char *name;
    size_t offset;
    int is_optional;
};

// A source defines TABLE, the name of its table of functions, and FUNCTIONS, the list of them: the table's members and `functions`,
// which describes them, are made from the list.
#define MEMBER(type, name, parameters) type(*name) parameters;
#define ROW(type, name, parameters) {#name, offsetof(struct TABLE, name), 0},

// Returns a new table with the addresses of the functions; it is never freed. Returns NULL if a function is missing that is not
// optional, and sets `missing` to its name, or to "memory".
void *clib_load(void *handle, size_t size, const struct clib_function *functions, size_t count, const char **missing);

#define LOAD() clib_load(handle, sizeof(struct TABLE), functions, sizeof functions / sizeof functions[0], missing)
