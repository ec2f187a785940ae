/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SHMRING_TESTPOINT_H
#define SHMRING_TESTPOINT_H

/*
 * Named places where a test may stop or kill a producer.  Product builds compile
 * them to nothing; a test defines SHMRING_TESTPOINTS and shmring_testpoint().
 *
 *   begun       begin moved, nothing of the record written yet
 *   half        the first line of the record is written
 *   written     the record is written, end not moved yet
 *   taken       a slot is chosen, nothing of the event written yet
 *   unfilled    the event is written, its token not yet live
 *   freeing     the event's record is published, its slot still live
 *   allocated   a lane's space is there, the lane not ready yet
 *   adopting    a lane's thread is gone, it has no other owner yet
 *   adopted     a lane is about to have another owner, who is not counted yet
 */
#ifdef SHMRING_TESTPOINTS
void shmring_testpoint(const char *name);
#define SHMRING_TESTPOINT(name) shmring_testpoint(#name)
#else
#define SHMRING_TESTPOINT(name) do { } while (0)
#endif

#endif
