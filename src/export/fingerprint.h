/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 fingerprints of the sources of this build, 64 hex digits; cmake/LayaFingerprint.cmake makes them. */
#ifndef LAYA_EXPORT_FINGERPRINT_H
#define LAYA_EXPORT_FINGERPRINT_H

#include "base/json.h"

extern const char laya_exporter_fingerprint[65]; /* what makes a package */
extern const char laya_runtime_fingerprint[65];  /* the whole library */

/* Members "tool" and "source_files_sha256" of manifests and reports: who wrote them. */
void laya_write_provenance(laya_json_writer *w);

#endif
