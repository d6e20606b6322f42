/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in's compute plan: the operations that the test scripted, delivered on another thread. */
#include "objects.h"

#include <string.h>

enum { DEPTHS = 8 };

/* ------------------------------------------------------------------ devices */

@interface StandInMetalDevice : StandInObject
- (NSString *)name;
@end

@implementation StandInMetalDevice
- (NSString *)name
{
    return @"Stand-in GPU";
}
@end

@implementation MLCPUComputeDevice
@end

@implementation MLGPUComputeDevice
- (id)metalDevice
{
    return [[[StandInMetalDevice alloc] init] autorelease];
}
@end

@implementation MLNeuralEngineComputeDevice
- (NSInteger)totalCoreCount
{
    return 16;
}
@end

static id device_named(NSString *name)
{
    if ([name isEqualToString:@"cpu"]) return [[[MLCPUComputeDevice alloc] init] autorelease];
    if ([name isEqualToString:@"gpu"]) return [[[MLGPUComputeDevice alloc] init] autorelease];
    if ([name isEqualToString:@"neural_engine"]) return [[[MLNeuralEngineComputeDevice alloc] init] autorelease];
    return [name isEqualToString:@"other"] ? [[[StandInObject alloc] init] autorelease] : nil;
}

NSArray *MLAllComputeDevices(void)
{
    return [NSArray arrayWithObjects:device_named(@"cpu"), device_named(@"gpu"), device_named(@"neural_engine"), nil];
}

/* ------------------------------------------------------------------ structure */

@implementation MLModelStructureProgramNamedValueType
- (id)initWithName:(NSString *)name
{
    self = [super init];
    _name = [name copy];
    return self;
}

- (void)dealloc
{
    [_name release];
    [super dealloc];
}

- (NSString *)name
{
    return _name;
}
@end

/* Knows its place in the script, for what the plan says about it. */
@interface StandInOperation : MLModelStructureProgramOperation {
    const stand_in_operation *_script;
}
- (id)initWithScript:(const stand_in_operation *)script blocks:(NSArray *)blocks;
- (const stand_in_operation *)script;
@end

@implementation MLModelStructureProgramOperation
- (void)dealloc
{
    [_operatorName release];
    [_outputs release];
    [_blocks release];
    [super dealloc];
}

- (NSString *)operatorName
{
    return _operatorName;
}

- (NSArray *)outputs
{
    return _outputs;
}

- (NSArray *)blocks
{
    return _blocks;
}
@end

@implementation StandInOperation
- (id)initWithScript:(const stand_in_operation *)script blocks:(NSArray *)blocks
{
    self = [super init];
    _script = script;
    _operatorName = [[NSString alloc] initWithUTF8String:script->operator_name];
    _blocks = [blocks copy];
    NSMutableArray *outputs = [[NSMutableArray alloc] init];
    if (script->output) {
        NSString *name = [NSString stringWithUTF8String:script->output];
        [outputs addObject:[[[MLModelStructureProgramNamedValueType alloc] initWithName:name] autorelease]];
    }
    _outputs = outputs;
    return self;
}

- (const stand_in_operation *)script
{
    return _script;
}
@end

@implementation MLModelStructureProgramBlock
- (id)initWithOperations:(NSArray *)operations
{
    self = [super init];
    _operations = [operations copy];
    return self;
}

- (void)dealloc
{
    [_operations release];
    [super dealloc];
}

- (NSArray *)operations
{
    return _operations;
}
@end

@implementation MLModelStructureProgramFunction
- (id)initWithBlock:(MLModelStructureProgramBlock *)block
{
    self = [super init];
    _block = [block retain];
    return self;
}

- (void)dealloc
{
    [_block release];
    [super dealloc];
}

- (MLModelStructureProgramBlock *)block
{
    return _block;
}
@end

@implementation MLModelStructureProgram
- (id)initWithFunctions:(NSDictionary *)functions
{
    self = [super init];
    _functions = [functions copy];
    return self;
}

- (void)dealloc
{
    [_functions release];
    [super dealloc];
}

- (NSDictionary *)functions
{
    return _functions;
}
@end

@implementation MLModelStructure
- (id)initWithProgram:(MLModelStructureProgram *)program
{
    self = [super init];
    _program = [program retain];
    return self;
}

- (void)dealloc
{
    [_program release];
    [super dealloc];
}

- (MLModelStructureProgram *)program
{
    return _program;
}
@end

/* The main block. Read backwards: when an operation comes, the blocks inside it are complete. */
static MLModelStructureProgramBlock *scripted_block(void)
{
    NSMutableArray *operations[DEPTHS], *blocks[DEPTHS]; /* of the depth: of the block begun last, those behind it */
    for (int depth = 0; depth < DEPTHS; depth++) {
        operations[depth] = [NSMutableArray array];
        blocks[depth] = [NSMutableArray array];
    }
    for (size_t at = stand_in.operation_count; at-- > 0;) {
        const stand_in_operation *script = &stand_in.operations[at];
        unsigned depth = script->depth, inner = depth + 1;
        bool next_inner = at + 1 < stand_in.operation_count && stand_in.operations[at + 1].depth == inner;
        if (next_inner)
            [blocks[inner]
                insertObject:[[[MLModelStructureProgramBlock alloc] initWithOperations:operations[inner]] autorelease]
                     atIndex:0];
        StandInOperation *operation = [[[StandInOperation alloc] initWithScript:script
                                                                         blocks:blocks[inner]] autorelease];
        if (next_inner) {
            [operations[inner] removeAllObjects];
            [blocks[inner] removeAllObjects];
        }
        [operations[depth] insertObject:operation atIndex:0];
        if (script->new_block) {
            [blocks[depth]
                insertObject:[[[MLModelStructureProgramBlock alloc] initWithOperations:operations[depth]] autorelease]
                     atIndex:0];
            [operations[depth] removeAllObjects];
        }
    }
    return [[[MLModelStructureProgramBlock alloc] initWithOperations:operations[0]] autorelease];
}

static MLModelStructureProgram *scripted_program(void)
{
    if (stand_in.no_program) return nil;
    MLModelStructureProgramFunction *function = [[[MLModelStructureProgramFunction alloc]
        initWithBlock:scripted_block()] autorelease];
    NSDictionary *functions = [NSDictionary dictionaryWithObject:function
                                                          forKey:stand_in.no_main ? @"another" : @"main"];
    return [[[MLModelStructureProgram alloc] initWithFunctions:functions] autorelease];
}

/* ------------------------------------------------------------------ plan */

@implementation MLComputePlanDeviceUsage
- (id)initWithScript:(const stand_in_operation *)script
{
    self = [super init];
    _preferred = [device_named([NSString stringWithUTF8String:script->preferred]) retain];
    NSMutableArray *supported = [[NSMutableArray alloc] init];
    for (NSString *name in [[NSString stringWithUTF8String:script->supported] componentsSeparatedByString:@","]) {
        id device = device_named(name);
        if (device) [supported addObject:device];
    }
    _supported = supported;
    return self;
}

- (void)dealloc
{
    [(id)_preferred release];
    [_supported release];
    [super dealloc];
}

- (id<MLComputeDeviceProtocol>)preferredComputeDevice
{
    return _preferred;
}

- (NSArray *)supportedComputeDevices
{
    return _supported;
}
@end

@implementation MLComputePlanCost
- (id)initWithWeight:(double)weight
{
    self = [super init];
    _weight = weight;
    return self;
}

- (double)weight
{
    return _weight;
}
@end

/* Delivers on a thread of its own, as Core ML may. */
@interface StandInDelivery : StandInObject {
    void (^_handler)(MLComputePlan *plan, NSError *error);
}
- (id)initWithHandler:(void (^)(MLComputePlan *plan, NSError *error))handler;
- (void)deliver:(id)nothing;
@end

@implementation MLComputePlan
+ (void)loadContentsOfURL:(NSURL *)url
            configuration:(MLModelConfiguration *)configuration
        completionHandler:(void (^)(MLComputePlan *computePlan, NSError *error))handler
{
    (void)configuration;
    if (![[url path] hasSuffix:@".mlmodelc"]) [NSException raise:@"StandInAbort" format:@"not compiled"];
    if (stand_in.plan >= STAND_IN_EXCEPTION) (void)stand_in_goes_on(stand_in.plan, NULL);
    StandInDelivery *delivery = [[[StandInDelivery alloc] initWithHandler:handler] autorelease];
    [NSThread detachNewThreadSelector:@selector(deliver:) toTarget:delivery withObject:nil];
}

- (id)initWithProgram:(MLModelStructureProgram *)program
{
    self = [super init];
    _structure = [[MLModelStructure alloc] initWithProgram:program];
    return self;
}

- (void)dealloc
{
    [_structure release];
    [super dealloc];
}

- (MLModelStructure *)modelStructure
{
    return _structure;
}

- (MLComputePlanDeviceUsage *)computeDeviceUsageForMLProgramOperation:(MLModelStructureProgramOperation *)operation
{
    const stand_in_operation *script = [(StandInOperation *)operation script];
    return script->preferred ? [[[MLComputePlanDeviceUsage alloc] initWithScript:script] autorelease] : nil;
}

- (MLComputePlanCost *)estimatedCostOfMLProgramOperation:(MLModelStructureProgramOperation *)operation
{
    const stand_in_operation *script = [(StandInOperation *)operation script];
    return script->cost >= 0 ? [[[MLComputePlanCost alloc] initWithWeight:script->cost] autorelease] : nil;
}
@end

@implementation StandInDelivery
- (id)initWithHandler:(void (^)(MLComputePlan *plan, NSError *error))handler
{
    self = [super init];
    _handler = Block_copy(handler);
    return self;
}

- (void)dealloc
{
    Block_release(_handler);
    [super dealloc];
}

- (void)deliver:(id)nothing
{
    (void)nothing;
    NSAutoreleasePool *pool = [[NSAutoreleasePool alloc] init];
    NSError *error = nil;
    if (stand_in_goes_on(stand_in.plan, &error))
        _handler([[[MLComputePlan alloc] initWithProgram:scripted_program()] autorelease], nil);
    else
        _handler(nil, error);
    [pool release];
}
@end
