/* SPDX-License-Identifier: Apache-2.0 */
/* GNUstep's headers ask for this file of another Objective-C runtime when the compiler knows blocks. */
#ifndef LAYA_STAND_IN_BLOCKS_RUNTIME_H
#define LAYA_STAND_IN_BLOCKS_RUNTIME_H

#include <Block.h>

#endif
