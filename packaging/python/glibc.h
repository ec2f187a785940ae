/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PACKAGING_PYTHON_GLIBC_H
#define PACKAGING_PYTHON_GLIBC_H

/*
 * Read before each source where the wheel is made for older systems.  The C library has a second
 * version of these functions from 2.29 on, which only differs in who sets errno: the first will do.
 */
#if defined(__x86_64__)
#define FIRST_LIBM "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define FIRST_LIBM "GLIBC_2.17"
#endif

#ifdef FIRST_LIBM
__asm__(".symver exp, exp@" FIRST_LIBM);
__asm__(".symver log, log@" FIRST_LIBM);
__asm__(".symver pow, pow@" FIRST_LIBM);
#endif

#endif
