/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of Core ML's interface that src/macos/coreml_bridge.m uses, declared anew for tests on other systems, and
 * what Foundation has on macOS and GNUstep lacks. stand_in.h says how the classes behave.
 */
#ifndef LAYA_STAND_IN_COREML_H
#define LAYA_STAND_IN_COREML_H

#import <Foundation/Foundation.h>

/* ------------------------------------------------------------------ Foundation */

typedef struct {
    NSInteger majorVersion, minorVersion, patchVersion;
} NSOperatingSystemVersion;

@interface NSProcessInfo (StandIn)
- (BOOL)isOperatingSystemAtLeastVersion:(NSOperatingSystemVersion)version;
@end

/* ------------------------------------------------------------------ models */

extern NSString *const MLModelErrorDomain;
enum { MLModelErrorGeneric = 0, MLModelErrorFeatureType = 1, MLModelErrorIO = 3 };

typedef enum MLComputeUnits {
    MLComputeUnitsCPUOnly = 0,
    MLComputeUnitsCPUAndGPU = 1,
    MLComputeUnitsAll = 2,
    MLComputeUnitsCPUAndNeuralEngine = 3
} MLComputeUnits;

typedef enum MLMultiArrayDataType {
    MLMultiArrayDataTypeFloat16 = 0x10010,
    MLMultiArrayDataTypeFloat32 = 0x10020,
    MLMultiArrayDataTypeDouble = 0x10040,
    MLMultiArrayDataTypeInt32 = 0x20020
} MLMultiArrayDataType;

/* Counts its living instances (stand_in_live_objects). */
@interface StandInObject : NSObject
@end

@interface MLMultiArray : StandInObject {
    unsigned char *_bytes;
    NSArray *_shape, *_strides;
    MLMultiArrayDataType _dataType;
    void (^_deallocator)(void *bytes);
}
- (id)initWithDataPointer:(void *)dataPointer
                    shape:(NSArray *)shape
                 dataType:(MLMultiArrayDataType)dataType
                  strides:(NSArray *)strides
              deallocator:(void (^)(void *bytes))deallocator
                    error:(NSError **)error;
- (NSArray *)shape;
- (NSArray *)strides;
- (MLMultiArrayDataType)dataType;
- (void)getBytesWithHandler:(void (^)(const void *bytes, NSInteger size))handler;
- (void)getMutableBytesWithHandler:(void (^)(void *mutableBytes, NSInteger size,
                                             NSArray<NSNumber *> *strides))handler;
@end

@interface MLFeatureValue : StandInObject {
    MLMultiArray *_array;
}
+ (id)featureValueWithMultiArray:(MLMultiArray *)array;
- (MLMultiArray *)multiArrayValue;
@end

@protocol MLFeatureProvider
- (MLFeatureValue *)featureValueForName:(NSString *)name;
@end

@interface MLDictionaryFeatureProvider : StandInObject <MLFeatureProvider> {
    NSDictionary *_values;
}
- (id)initWithDictionary:(NSDictionary *)dictionary error:(NSError **)error;
@end

@interface MLMultiArrayConstraint : StandInObject {
    NSArray *_shape;
    MLMultiArrayDataType _dataType;
}
- (NSArray *)shape;
- (MLMultiArrayDataType)dataType;
@end

@interface MLFeatureDescription : StandInObject {
    MLMultiArrayConstraint *_constraint;
}
- (MLMultiArrayConstraint *)multiArrayConstraint;
@end

@interface MLModelDescription : StandInObject {
    NSDictionary *_inputs, *_outputs;
}
- (NSDictionary *)inputDescriptionsByName;
- (NSDictionary *)outputDescriptionsByName;
@end

@interface MLModelConfiguration : StandInObject {
    MLComputeUnits _computeUnits;
}
- (MLComputeUnits)computeUnits;
- (void)setComputeUnits:(MLComputeUnits)computeUnits;
@end

@interface MLPredictionOptions : StandInObject {
    NSDictionary *_outputBackings;
}
- (NSDictionary *)outputBackings;
- (void)setOutputBackings:(NSDictionary *)outputBackings;
@end

@interface MLModel : StandInObject {
    struct stand_in_network *_network;
    MLModelDescription *_description;
}
+ (NSURL *)compileModelAtURL:(NSURL *)modelURL error:(NSError **)error;
+ (id)modelWithContentsOfURL:(NSURL *)url configuration:(MLModelConfiguration *)configuration error:(NSError **)error;
- (MLModelDescription *)modelDescription;
- (id<MLFeatureProvider>)predictionFromFeatures:(id<MLFeatureProvider>)input
                                        options:(MLPredictionOptions *)options
                                          error:(NSError **)error;
@end

/* ------------------------------------------------------------------ compute plan */

@protocol MLComputeDeviceProtocol
@end
@interface MLCPUComputeDevice : StandInObject <MLComputeDeviceProtocol>
@end
@interface MLGPUComputeDevice : StandInObject <MLComputeDeviceProtocol>
- (id)metalDevice;
@end
@interface MLNeuralEngineComputeDevice : StandInObject <MLComputeDeviceProtocol>
- (NSInteger)totalCoreCount;
@end

NSArray *MLAllComputeDevices(void);

@interface MLModelStructureProgramNamedValueType : StandInObject {
    NSString *_name;
}
- (NSString *)name;
@end

@interface MLModelStructureProgramOperation : StandInObject {
    NSString *_operatorName;
    NSArray *_outputs, *_blocks;
}
- (NSString *)operatorName;
- (NSArray *)outputs;
- (NSArray *)blocks;
@end

@interface MLModelStructureProgramBlock : StandInObject {
    NSArray *_operations;
}
- (NSArray *)operations;
@end

@interface MLModelStructureProgramFunction : StandInObject {
    MLModelStructureProgramBlock *_block;
}
- (MLModelStructureProgramBlock *)block;
@end

@interface MLModelStructureProgram : StandInObject {
    NSDictionary *_functions;
}
- (NSDictionary *)functions;
@end

@interface MLModelStructure : StandInObject {
    MLModelStructureProgram *_program;
}
- (MLModelStructureProgram *)program;
@end

@interface MLComputePlanDeviceUsage : StandInObject {
    id<MLComputeDeviceProtocol> _preferred;
    NSArray *_supported;
}
- (id<MLComputeDeviceProtocol>)preferredComputeDevice;
- (NSArray *)supportedComputeDevices;
@end

@interface MLComputePlanCost : StandInObject {
    double _weight;
}
- (double)weight;
@end

@interface MLComputePlan : StandInObject {
    MLModelStructure *_structure;
}
+ (void)loadContentsOfURL:(NSURL *)url
            configuration:(MLModelConfiguration *)configuration
        completionHandler:(void (^)(MLComputePlan *computePlan, NSError *error))handler;
- (MLModelStructure *)modelStructure;
- (MLComputePlanDeviceUsage *)computeDeviceUsageForMLProgramOperation:(MLModelStructureProgramOperation *)operation;
- (MLComputePlanCost *)estimatedCostOfMLProgramOperation:(MLModelStructureProgramOperation *)operation;
@end

#endif
