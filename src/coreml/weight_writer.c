/* SPDX-License-Identifier: Apache-2.0 */
#include "coreml/weight_file.h"
