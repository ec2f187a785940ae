# SPDX-License-Identifier: Apache-2.0
# What builds it; override on the command line.
ifeq ($(origin CC),default)
CC       := gcc
endif
OBJCOPY  ?= objcopy
CFLAGS   ?= -O2 -g
WARN     := -Wall -Wextra -Wno-unused-parameter -Wshadow -Wvla -Wstrict-prototypes -Wmissing-prototypes
# Warnings are fatal where nobody reads them.
WERROR   ?= $(CI)
VERSION  := 0.1.0
