/* SPDX-License-Identifier: Apache-2.0 */
/* Deaths that have one cause, and the words for them. */
#include "judge/died.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "util/list.h"
#include "util/phrase.h"
#include "util/text.h"

#define TOGETHER_NS	UINT64_C(30000000000)	/* deaths that have one cause */
#define SKEW_NS		UINT64_C(2000000000)	/* clocks of two hosts may differ by so much */
#define NAMED		8			/* processes that the text names */

bool died_have_one_cause(const struct death *earlier, const struct death *later)
{
	return earlier->has_comm_id && later->has_comm_id && earlier->comm_id == later->comm_id &&
	       earlier->user == later->user && later->ended_ns - earlier->ended_ns < TOGETHER_NS;
}

const char *died_waiting(const struct death *const *deaths, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (deaths[i]->waiting && *deaths[i]->waiting)
			return deaths[i]->waiting;
	return NULL;
}

bool died_is_critical(const struct death *const *deaths, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (deaths[i]->in_flight)
			return true;
	return died_waiting(deaths, n);
}

int32_t died_exit_code(const struct death *d)
{
	return d->status != UNKNOWN_I32 && WIFEXITED(d->status) ? WEXITSTATUS(d->status) :
								  UNKNOWN_I32;
}

int32_t died_signal(const struct death *d)
{
	return d->status != UNKNOWN_I32 && WIFSIGNALED(d->status) ? WTERMSIG(d->status) :
								    UNKNOWN_I32;
}

bool died_has_sender(const struct death *d)
{
	int32_t signal = died_signal(d);

	if (!d->sent || !d->sender || died_exit_code(d) != UNKNOWN_I32)
		return false;
	return signal == UNKNOWN_I32 ? d->sent == SIGKILL : d->sent == signal;
}

/* ---- words ---------------------------------------------------------------- */

static void death_add_process(struct phrase *text, const struct death *d)
{
	phrase_add(text, d->who.rank == UNKNOWN_I32 ? "a process" : "rank %" PRId32, d->who.rank);
	whom_add(text, &d->who);
}

static void death_add_operation(struct phrase *text, const struct death *d)
{
	if (!d->in_flight) {
		phrase_add(text, " with no operation known to be in flight");
		return;
	}
	phrase_add(text, " in the middle of %s", d->func ? d->func : "an operation");
	if (d->seq != UNKNOWN_U64)
		phrase_add(text, " #%" PRIu64, d->seq);
	if (d->op_comm_name)
		phrase_add(text, " on %s", d->op_comm_name);
}

/* The error that the driver reported of its GPU ended it, whatever signal did. */
static void death_add_error(struct phrase *text, const struct death *d)
{
	phrase_add(text, ", because of ");
	xid_say(text, &d->xid);
	phrase_add(text, " on its GPU");
}

/* Does the clock tell that it died after the first one? */
static bool death_is_later(const struct death *first, const struct death *d)
{
	return !d->who.host || !strcmp(d->who.host, first->who.host) ||
	       d->ended_ns - first->ended_ns > SKEW_NS;
}

/* The kernel counts whom it kills for memory in the process's own group, and there was none. */
static bool death_is_of_a_spared_group(const struct death *d)
{
	return d->memory_cgroup && !d->memory_kills;
}

/* The kernel has killed somebody for memory at that time. */
static bool death_may_be_of_memory(const struct death *d)
{
	return d->oom_kills && d->oom_kills != UNKNOWN_U64 && !death_is_of_a_spared_group(d);
}

/* The number of a process may be another one's by now: its name is worth more. */
static void death_add_sender(struct phrase *text, const struct death *d, const char *name)
{
	if (d->sender == d->who.pid)
		phrase_add(text, "It ended itself by SIG%s. See its own log", name);
	else
		phrase_add(text, "It was ended by SIG%s from pid %" PRId32 " (%s): see that "
			   "program's log", name, d->sender, d->sender_command);
}

/* "1 process of its cgroup (/sys/fs/cgroup/pod1, limit 64GiB)", or of its node */
static void death_add_killed(struct phrase *text, const struct death *d)
{
	uint64_t n = d->memory_cgroup ? d->memory_kills : d->oom_kills;
	char limit[TEXT_MAX];

	phrase_add(text, "%" PRIu64 " process%s of ", n, n == 1 ? "" : "es");
	if (!d->memory_cgroup) {
		phrase_add(text, "this node");
		return;
	}
	phrase_add(text, "%s (%s", d->memory_above ? "a cgroup above it" : "its cgroup",
		   d->memory_cgroup);
	if (d->memory_limit_bytes != UNKNOWN_U64) {
		text_bytes(limit, sizeof(limit), d->memory_limit_bytes);
		phrase_add(text, ", limit %s", limit);
	}
	phrase_add(text, ")");
}

static void death_add_kill(struct phrase *text, const struct death *d)
{
	if (d->for_memory)
		phrase_add(text, "The kernel killed it (SIGKILL) because memory ran out%s%s%s: "
			   "give it more memory, or its cgroup a higher limit. dmesg shows how "
			   "much each process used", d->cgroup && *d->cgroup ? " (cgroup " : "",
			   d->cgroup ?: "", d->cgroup && *d->cgroup ? ")" : "");
	else if (died_has_sender(d))
		phrase_add(text, "It was killed by SIGKILL from pid %" PRId32 " (%s): see that "
			   "program's log", d->sender, d->sender_command);
	else if (death_may_be_of_memory(d)) {
		phrase_add(text, "It was killed (SIGKILL), and the kernel killed ");
		death_add_killed(text, d);
		phrase_add(text, " at that time because memory ran out: %s this one. See dmesg for "
			   "\"out of memory\"; give it more memory, or its cgroup a higher limit",
			   d->memory_cgroup && !d->memory_above ? "probably" : "perhaps");
	} else {
		phrase_add(text, "It was killed (SIGKILL)%s: by a launcher, a scheduler, the end "
			   "of its container or a person. See their logs",
			   d->oom_kills && !death_is_of_a_spared_group(d) ? "" :
			   ", not by the kernel for lack of memory");
		if (d->oom_kills && d->oom_kills != UNKNOWN_U64)
			phrase_add(text, ". The kernel killed %" PRIu64 " process%s for memory "
				   "then, in other cgroups of this node", d->oom_kills,
				   d->oom_kills == 1 ? "" : "es");
	}
}

/* Signals that a program's own error makes. */
static bool signal_is_crash(int32_t signal)
{
	return signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE ||
	       signal == SIGTRAP || signal == SIGSYS;
}

/* Stands for sigabbrev_np() of the C library from 2.32 on; real-time signals have no name. */
static const char *signal_name(int32_t signal)
{
	static const char *const names[] = {
#define ABBREV(name) [SIG##name] = #name
		ABBREV(HUP), ABBREV(INT), ABBREV(QUIT), ABBREV(ILL), ABBREV(TRAP),
		ABBREV(ABRT), ABBREV(BUS), ABBREV(FPE), ABBREV(KILL), ABBREV(USR1),
		ABBREV(SEGV), ABBREV(USR2), ABBREV(PIPE), ABBREV(ALRM), ABBREV(TERM),
		ABBREV(STKFLT), ABBREV(CHLD), ABBREV(CONT), ABBREV(STOP), ABBREV(TSTP),
		ABBREV(TTIN), ABBREV(TTOU), ABBREV(URG), ABBREV(XCPU), ABBREV(XFSZ),
		ABBREV(VTALRM), ABBREV(PROF), ABBREV(WINCH), ABBREV(POLL), ABBREV(PWR),
		ABBREV(SYS),
#undef ABBREV
	};

	if (signal <= 0 || (size_t)signal >= ARRAY_LEN(names) || !names[signal])
		return "?";
	return names[signal];
}

static void death_add_signal(struct phrase *text, const struct death *d)
{
	int32_t signal = died_signal(d);
	const char *name = signal_name(signal);

	if (signal == SIGKILL)
		death_add_kill(text, d);
	else if (died_has_sender(d) && (signal != SIGABRT || d->sender != d->who.pid))
		death_add_sender(text, d, name);
	else if (signal == SIGABRT)
		phrase_add(text, "It aborted (SIGABRT): see its own log for the reason. PyTorch's "
			   "watchdog aborts a process whose operation takes too long");
	else if (signal_is_crash(signal))
		phrase_add(text, "It crashed (SIG%s%s): see its own log and its core "
			   "(coredumpctl), and dmesg for Xid", name,
			   WCOREDUMP(d->status) ? ", with a core dump" : "");
	else
		phrase_add(text, "It was ended by SIG%s: by a launcher, a scheduler or a person. "
			   "See their logs", name);
}

static void death_add_exit(struct phrase *text, const struct death *d)
{
	int32_t code = died_exit_code(d);

	if (code)
		phrase_add(text, "It ended by itself, with exit code %" PRId32 ": see its own log "
			   "for the error", code);
	else
		phrase_add(text, "It ended by itself, with exit code 0, but did not destroy its "
			   "communicators: it called _exit(), or had an operation in flight");
}

static void death_add_guess(struct phrase *text, const struct death *d)
{
	phrase_add(text, "It did not end by itself: a signal, the kernel's out-of-memory killer");
	if (death_may_be_of_memory(d)) {
		phrase_add(text, " (which killed ");
		death_add_killed(text, d);
		phrase_add(text, " at that time)");
	}
	phrase_add(text, " or a crash. See its own log, and dmesg for \"Out of memory\" and Xid");
}

static void death_add_cause(struct phrase *text, const struct death *d)
{
	phrase_add(text, ". ");
	if (d->xid.number)
		phrase_add(text, "%s", xid_advice(d->xid.number));
	else if (died_signal(d) != UNKNOWN_I32)
		death_add_signal(text, d);
	else if (d->status == UNKNOWN_I32 && (d->for_memory || died_has_sender(d)))
		death_add_kill(text, d);
	else if (died_exit_code(d) != UNKNOWN_I32)
		death_add_exit(text, d);
	else
		death_add_guess(text, d);
	phrase_add(text, ".");
}

void died_say(const struct death *const *deaths, uint32_t n, char *text, size_t size)
{
	struct phrase phrase;

	phrase_start(&phrase, text, size);
	for (uint32_t i = 0; i < n && i < NAMED; i++) {
		phrase_add(&phrase, i == 0 ? "" : i > 1 ? ", " :
				    death_is_later(deaths[0], deaths[1]) ? "; after it " :
				    "; at about the same time ");
		death_add_process(&phrase, deaths[i]);
		if (i)
			continue;
		phrase_add(&phrase, " died");
		death_add_operation(&phrase, deaths[i]);
		if (deaths[i]->xid.number)
			death_add_error(&phrase, deaths[i]);
	}
	if (n > NAMED)
		phrase_add(&phrase, " and %u more", n - NAMED);
	if (died_waiting(deaths, n))
		phrase_add(&phrase, "; %s", died_waiting(deaths, n));
	death_add_cause(&phrase, deaths[0]);
}
