/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in's MLModel. A compiled model is a directory that holds the package as model.mlpackage. */
#include "objects.h"

static id refuse(NSError **error, NSInteger code, NSString *description)
{
    if (error) *error = stand_in_error(MLModelErrorDomain, code, description);
    return nil;
}

@implementation MLModel
+ (NSURL *)compileModelAtURL:(NSURL *)modelURL error:(NSError **)error
{
    if (!stand_in_goes_on(stand_in.compile, error)) return nil;
    stand_in_seen.compilations++;
    NSFileManager *files = [NSFileManager defaultManager];
    NSString *name = [NSString stringWithFormat:@"%@.mlmodelc", [[NSProcessInfo processInfo] globallyUniqueString]];
    NSString *folder = [[NSString stringWithUTF8String:stand_in.temporary] stringByAppendingPathComponent:name];
    if (![files createDirectoryAtPath:folder withIntermediateDirectories:NO attributes:nil error:error] ||
        ![files copyItemAtPath:[modelURL path]
                        toPath:[folder stringByAppendingPathComponent:@"model.mlpackage"]
                         error:error])
        return nil;
    if (stand_in.compiled) stand_in.compiled();
    if (stand_in.vanishes) [files removeItemAtPath:folder error:NULL];
    return [NSURL fileURLWithPath:folder isDirectory:YES];
}

+ (id)modelWithContentsOfURL:(NSURL *)url configuration:(MLModelConfiguration *)configuration error:(NSError **)error
{
    char message[1024];
    if (!stand_in_goes_on(stand_in.load, error)) return nil;
    MLModel *model = [[[self alloc] init] autorelease];
    model->_network = stand_in_network_open([[url path] UTF8String], message);
    if (!model->_network) return refuse(error, MLModelErrorIO, [NSString stringWithUTF8String:message]);
    model->_description = [[MLModelDescription alloc] initWithNetwork:model->_network];
    stand_in_seen.loads++;
    stand_in_seen.compute_units = (int)[configuration computeUnits];
    return model;
}

- (void)dealloc
{
    [_description release];
    stand_in_network_close(_network);
    [super dealloc];
}

- (MLModelDescription *)modelDescription
{
    return _description;
}

/* What Core ML requires of an array: the shape and type that the model declares. */
- (BOOL)takes:(MLMultiArray *)array as:(const stand_in_feature *)feature
{
    NSMutableArray *shape = [NSMutableArray array];
    for (int axis = 0; axis < 4; axis++) [shape addObject:[NSNumber numberWithLongLong:feature->shape[axis]]];
    MLMultiArrayDataType type = feature->half ? MLMultiArrayDataTypeFloat16 : MLMultiArrayDataTypeFloat32;
    return [array dataType] == type && [[array shape] isEqualToArray:shape];
}

- (MLMultiArray *)outputFor:(const stand_in_feature *)feature backing:(MLMultiArray *)backing
{
    if (backing && !stand_in.ignore_backings && !stand_in.padding && !stand_in.swap_axes && !stand_in.output_type) {
        stand_in_seen.backings_used++;
        [backing setValues:feature->values];
        return backing;
    }
    if (backing) stand_in_seen.backings_ignored++;
    NSMutableArray *shape = [NSMutableArray array];
    for (int axis = 0; axis < 4; axis++)
        [shape addObject:[NSNumber numberWithLongLong:feature->shape[stand_in.swap_axes ? 3 - axis : axis]]];
    MLMultiArrayDataType type = feature->half ? MLMultiArrayDataTypeFloat16 : MLMultiArrayDataTypeFloat32;
    if (stand_in.output_type) type = (MLMultiArrayDataType)stand_in.output_type;
    MLMultiArray *array = [MLMultiArray arrayOfShape:shape dataType:type padding:stand_in.padding];
    if (!stand_in.output_type) [array setValues:feature->values];
    return array;
}

- (id<MLFeatureProvider>)predictionFromFeatures:(id<MLFeatureProvider>)input
                                        options:(MLPredictionOptions *)options
                                          error:(NSError **)error
{
    char message[1024];
    if (!stand_in_goes_on(stand_in.predict, error)) return nil;
    stand_in_seen.predictions++;
    for (size_t at = 0; at < stand_in_network_features(_network, false); at++) {
        stand_in_feature feature = stand_in_network_feature(_network, false, at);
        NSString *name = [NSString stringWithUTF8String:feature.name];
        MLMultiArray *array = [[input featureValueForName:name] multiArrayValue];
        if (![self takes:array as:&feature]) {
            return refuse(error, MLModelErrorFeatureType,
                          [NSString stringWithFormat:@"Feature %@ is required but not specified.", name]);
        }
        [array getValues:feature.values];
    }
    if (!stand_in_network_run(_network, message))
        return refuse(error, MLModelErrorGeneric, [NSString stringWithUTF8String:message]);
    NSMutableDictionary *results = [NSMutableDictionary dictionary];
    for (size_t at = 0; at < stand_in_network_features(_network, true) && !stand_in.lose_outputs; at++) {
        stand_in_feature feature = stand_in_network_feature(_network, true, at);
        NSString *name = [NSString stringWithUTF8String:feature.name];
        MLMultiArray *array = [self outputFor:&feature backing:[[options outputBackings] objectForKey:name]];
        [results setObject:[MLFeatureValue featureValueWithMultiArray:array] forKey:name];
    }
    return [[[MLDictionaryFeatureProvider alloc] initWithValues:results] autorelease];
}
@end
