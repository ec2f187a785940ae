/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLUGIN_TAG_H
#define PLUGIN_TAG_H

/*
 * Tells libncclinsp-nvtx.so, if the process has loaded it, that tags are taken here: the
 * ranges that the calling thread is in have their names in this segment then.  Takes the
 * loader's lock: hold none.
 */
void tag_attach(void);

#endif
