// SPDX-License-Identifier: Apache-2.0

// Declares nothing: see ContentLoader.c.
