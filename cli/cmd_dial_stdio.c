/* SPDX-License-Identifier: Apache-2.0 */
/* ncclinsp dial-stdio: what -H has ssh run on the other node, between it and the daemon there. */
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "cli/common/cli.h"

/* False: one of them has ended. */
static bool bytes_pass_on(int from, int to)
{
	char buf[65536];
	ssize_t n = read(from, buf, sizeof(buf)), wrote;

	if (n <= 0)
		return n < 0 && errno == EINTR;
	for (ssize_t done = 0; done < n; done += wrote) {
		wrote = write(to, buf + done, (size_t)(n - done));
		if (wrote < 0 && errno != EINTR)
			return false;
		wrote = wrote < 0 ? 0 : wrote;
	}
	return true;
}

int cmd_dial_stdio(struct cli *cli)
{
	int fd = client_connect(cli->client);
	struct pollfd ends[] = { { STDIN_FILENO, POLLIN, 0 }, { fd, POLLIN, 0 } };
	bool goes_on = true;

	if (fd < 0)
		return cli_fail(cli, fd);
	while (goes_on && (poll(ends, 2, -1) > 0 || errno == EINTR))
		goes_on = (!ends[0].revents || bytes_pass_on(STDIN_FILENO, fd)) &&
			  (!ends[1].revents || bytes_pass_on(fd, STDOUT_FILENO));
	close(fd);
	return CLI_DONE;
}
