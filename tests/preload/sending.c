/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For LD_PRELOAD: a thread of each forked process sends to SENDING_TO, an IPv4 address, by TCP
 * (port 5001) as much as the network takes: the network of a process that has none.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define PORT	5001

static void *sending_run(void *arg)
{
	static const char bytes[65536];
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	inet_pton(AF_INET, arg, &to.sin_addr);
	while (connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0)
		usleep(100000);
	while (send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL) > 0)
		continue;
	close(fd);
	return NULL;
}

static void sending_begin(void)
{
	pthread_t thread;
	char *to = getenv("SENDING_TO");

	if (to && pthread_create(&thread, NULL, sending_run, to) == 0)
		pthread_detach(thread);
}

__attribute__((constructor)) static void sending_on_load(void)
{
	pthread_atfork(NULL, NULL, sending_begin);
}
