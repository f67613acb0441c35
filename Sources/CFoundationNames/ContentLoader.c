// SPDX-License-Identifier: Apache-2.0

#include "CFoundationNames.h"

// For URLs that are not file URLs, Foundation implements NSData(contentsOf:), XMLParser(contentsOf:) and similar with a class that
// it looks up in the Swift runtime, by the name "FoundationNetworking._NSNonfileURLContentLoader". Without that class, such a call
// ends the program. Swift cannot give a class the name of another module. This file therefore emits the record by which the runtime
// finds the class. The record's accessor returns URLLoading's NonfileURLContentLoader.
//
// The layout is that of the runtime's type context descriptors (swift/ABI/Metadata.h), which is part of Apple's stable ABI. All
// fields are 32 bits wide, and a reference is relative to its own address. 0x50 means a class (16) that is unique (0x40) and has no
// vtable. If FoundationNetworking is also linked as a shared library, the runtime finds that library's record first.
__asm__(
    ".section .rodata.urlloading_names, \"aR\", @progbits\n"
    ".p2align 2\n"
    "1:\n"  // The module: flags, parent, name.
    ".long 0\n"
    ".long 0\n"
    ".long 2f - .\n"
    "2: .asciz \"FoundationNetworking\"\n"
    "3: .asciz \"_NSNonfileURLContentLoader\"\n"
    ".p2align 2\n"
    "4:\n"
    ".long 0x50\n"
    ".long 1b - .\n"
    ".long 3b - .\n"
    ".long $s10URLLoading23NonfileURLContentLoaderCMa - .\n"
    ".long 0\n"  // Field descriptor, for reflection: none.
    ".long 0\n"  // Superclass: none.
    ".long 3\n"  // Size of the metadata before and after its address point, in words.
    ".long 7\n"
    ".long 0\n"  // Number of members, number of fields, offset of the field offsets.
    ".long 0\n"
    ".long 0\n"
    ".section swift5_type_metadata, \"aR\", @progbits\n"
    ".p2align 2\n"
    ".long 4b - .\n"
    ".text\n");
