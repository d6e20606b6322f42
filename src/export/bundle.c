/* SPDX-License-Identifier: Apache-2.0 */
#include "laya/coreml.h"
