/* SPDX-License-Identifier: Apache-2.0 */
/* What the stand-in's files share: how its objects are made, and the failures that tests ask for. */
#ifndef LAYA_STAND_IN_OBJECTS_H
#define LAYA_STAND_IN_OBJECTS_H

#import <CoreML/CoreML.h>

#include "network.h"
#include "stand_in.h"

/* Do what a switch says: true when the call goes on; else *error (may be NULL) is set, or something is thrown. */
bool stand_in_goes_on(stand_in_failure failure, NSError **error);
NSError *stand_in_error(NSString *domain, NSInteger code, NSString *description);

@interface MLMultiArray (StandIn)
/* A new array of the shape with rows `padding` elements longer, all bytes 0xFF. */
+ (id)arrayOfShape:(NSArray *)shape dataType:(MLMultiArrayDataType)dataType padding:(NSInteger)padding;
/* Of the array's shape and type, which are set already. */
- (void)takeMemoryWithPadding:(NSInteger)padding;
/* Copy from or to a float array in C order. */
- (void)getValues:(float *)values;
- (void)setValues:(const float *)values;
@end

@interface MLModelDescription (StandIn)
- (id)initWithNetwork:(stand_in_network *)network;
@end

@interface MLDictionaryFeatureProvider (StandIn)
- (id)initWithValues:(NSDictionary *)values;
@end

#endif
