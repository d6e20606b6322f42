/* SPDX-License-Identifier: Apache-2.0 */
#include "coreml/package.h"
