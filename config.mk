# Where things go and what builds them; override on the command line.
PREFIX   ?= /usr
CC       ?= gcc
CFLAGS   ?= -O2 -g
WARN     := -Wall -Wextra -Wshadow -Wvla -Wstrict-prototypes -Wmissing-prototypes
VERSION  := 0.1.0
