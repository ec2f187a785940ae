/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_NCCL_STREAM_H
#define TESTS_NCCL_STREAM_H

struct stream;

/* The stream behind CUDA's handle; NULL and its like mean the device's own. */
struct stream *stream_of(void *handle);

#endif
