/**
 * Field numbers of the messages that clients send as protobuf: those of kubectl's typed clients and of kubelets (Lease,
 * Node, Event). Source: generated.proto of each API group. Field numbers never change.
 */
export type ProtoType =
  | 'string'
  | 'bool'
  | 'int'
  /** Timestamp, to seconds or to microseconds. */
  | 'time'
  | 'microTime'
  | 'quantity'
  | 'intOrString'
  /** A message around JSON text. */
  | 'json'
  | ProtoMessage;

/** By field number: JSON name, type, and whether the field is a list or map. */
export interface ProtoMessage {
  readonly [number: number]: readonly [name: string, type: ProtoType, shape?: 'list' | 'map'];
}

const ownerReference: ProtoMessage = {
  1: ['kind', 'string'],
  3: ['name', 'string'],
  4: ['uid', 'string'],
  5: ['apiVersion', 'string'],
  6: ['controller', 'bool'],
  7: ['blockOwnerDeletion', 'bool'],
};

const managedFieldsEntry: ProtoMessage = {
  1: ['manager', 'string'],
  2: ['operation', 'string'],
  3: ['apiVersion', 'string'],
  4: ['time', 'time'],
  6: ['fieldsType', 'string'],
  7: ['fieldsV1', 'json'],
  8: ['subresource', 'string'],
};

const objectMeta: ProtoMessage = {
  1: ['name', 'string'],
  2: ['generateName', 'string'],
  3: ['namespace', 'string'],
  4: ['selfLink', 'string'],
  5: ['uid', 'string'],
  6: ['resourceVersion', 'string'],
  7: ['generation', 'int'],
  8: ['creationTimestamp', 'time'],
  9: ['deletionTimestamp', 'time'],
  10: ['deletionGracePeriodSeconds', 'int'],
  11: ['labels', 'string', 'map'],
  12: ['annotations', 'string', 'map'],
  13: ['ownerReferences', ownerReference, 'list'],
  14: ['finalizers', 'string', 'list'],
  17: ['managedFields', managedFieldsEntry, 'list'],
};

const deleteOptions: ProtoMessage = {
  1: ['gracePeriodSeconds', 'int'],
  2: ['preconditions', { 1: ['uid', 'string'], 2: ['resourceVersion', 'string'] }],
  3: ['orphanDependents', 'bool'],
  4: ['propagationPolicy', 'string'],
  5: ['dryRun', 'string', 'list'],
  6: ['ignoreStoreReadErrorWithClusterBreakingPotential', 'bool'],
};

const selectorRequirement: ProtoMessage = {
  1: ['key', 'string'],
  2: ['operator', 'string'],
  3: ['values', 'string', 'list'],
};

const selectorAttributes: ProtoMessage = {
  1: ['rawSelector', 'string'],
  2: ['requirements', selectorRequirement, 'list'],
};

const selfSubjectAccessReview: ProtoMessage = {
  1: ['metadata', objectMeta],
  2: [
    'spec',
    {
      1: [
        'resourceAttributes',
        {
          1: ['namespace', 'string'],
          2: ['verb', 'string'],
          3: ['group', 'string'],
          4: ['version', 'string'],
          5: ['resource', 'string'],
          6: ['subresource', 'string'],
          7: ['name', 'string'],
          8: ['fieldSelector', selectorAttributes],
          9: ['labelSelector', selectorAttributes],
        },
      ],
      2: ['nonResourceAttributes', { 1: ['path', 'string'], 2: ['verb', 'string'] }],
    },
  ],
};

const selfSubjectRulesReview: ProtoMessage = {
  1: ['metadata', objectMeta],
  2: ['spec', { 1: ['namespace', 'string'] }],
};

const selfSubjectReview: ProtoMessage = { 1: ['metadata', objectMeta] };

const tokenRequest: ProtoMessage = {
  1: ['metadata', objectMeta],
  2: [
    'spec',
    {
      1: ['audiences', 'string', 'list'],
      3: [
        'boundObjectRef',
        { 1: ['kind', 'string'], 2: ['apiVersion', 'string'], 3: ['name', 'string'], 4: ['uid', 'string'] },
      ],
      4: ['expirationSeconds', 'int'],
    },
  ],
};

const eviction: ProtoMessage = { 1: ['metadata', objectMeta], 2: ['deleteOptions', deleteOptions] };

const namespaceCondition: ProtoMessage = {
  1: ['type', 'string'],
  2: ['status', 'string'],
  4: ['lastTransitionTime', 'time'],
  5: ['reason', 'string'],
  6: ['message', 'string'],
};

const namespace: ProtoMessage = {
  1: ['metadata', objectMeta],
  2: ['spec', { 1: ['finalizers', 'string', 'list'] }],
  3: ['status', { 1: ['phase', 'string'], 2: ['conditions', namespaceCondition, 'list'] }],
};

const lease: ProtoMessage = {
  1: ['metadata', objectMeta],
  2: [
    'spec',
    {
      1: ['holderIdentity', 'string'],
      2: ['leaseDurationSeconds', 'int'],
      3: ['acquireTime', 'microTime'],
      4: ['renewTime', 'microTime'],
      5: ['leaseTransitions', 'int'],
      6: ['strategy', 'string'],
      7: ['preferredHolder', 'string'],
    },
  ],
};

const taint: ProtoMessage = {
  1: ['key', 'string'],
  2: ['value', 'string'],
  3: ['effect', 'string'],
  4: ['timeAdded', 'time'],
};

const nodeCondition: ProtoMessage = {
  1: ['type', 'string'],
  2: ['status', 'string'],
  3: ['lastHeartbeatTime', 'time'],
  4: ['lastTransitionTime', 'time'],
  5: ['reason', 'string'],
  6: ['message', 'string'],
};

const nodeSystemInfo: ProtoMessage = {
  1: ['machineID', 'string'],
  2: ['systemUUID', 'string'],
  3: ['bootID', 'string'],
  4: ['kernelVersion', 'string'],
  5: ['osImage', 'string'],
  6: ['containerRuntimeVersion', 'string'],
  7: ['kubeletVersion', 'string'],
  8: ['kubeProxyVersion', 'string'],
  9: ['operatingSystem', 'string'],
  10: ['architecture', 'string'],
  11: ['swap', { 1: ['capacity', 'int'] }],
};

const runtimeHandler: ProtoMessage = {
  1: ['name', 'string'],
  2: ['features', { 1: ['recursiveReadOnlyMounts', 'bool'], 2: ['userNamespaces', 'bool'] }],
};

const node: ProtoMessage = {
  1: ['metadata', objectMeta],
  2: [
    'spec',
    {
      1: ['podCIDR', 'string'],
      2: ['externalID', 'string'],
      3: ['providerID', 'string'],
      4: ['unschedulable', 'bool'],
      5: ['taints', taint, 'list'],
      7: ['podCIDRs', 'string', 'list'],
    },
  ],
  3: [
    'status',
    {
      1: ['capacity', 'quantity', 'map'],
      2: ['allocatable', 'quantity', 'map'],
      3: ['phase', 'string'],
      4: ['conditions', nodeCondition, 'list'],
      5: ['addresses', { 1: ['type', 'string'], 2: ['address', 'string'] }, 'list'],
      6: ['daemonEndpoints', { 1: ['kubeletEndpoint', { 1: ['Port', 'int'] }] }],
      7: ['nodeInfo', nodeSystemInfo],
      8: ['images', { 1: ['names', 'string', 'list'], 2: ['sizeBytes', 'int'] }, 'list'],
      9: ['volumesInUse', 'string', 'list'],
      10: ['volumesAttached', { 1: ['name', 'string'], 2: ['devicePath', 'string'] }, 'list'],
      12: ['runtimeHandlers', runtimeHandler, 'list'],
      13: ['features', { 1: ['supplementalGroupsPolicy', 'bool'] }],
      14: ['declaredFeatures', 'string', 'list'],
    },
  ],
};

const objectReference: ProtoMessage = {
  1: ['kind', 'string'],
  2: ['namespace', 'string'],
  3: ['name', 'string'],
  4: ['uid', 'string'],
  5: ['apiVersion', 'string'],
  6: ['resourceVersion', 'string'],
  7: ['fieldPath', 'string'],
};

const event: ProtoMessage = {
  1: ['metadata', objectMeta],
  2: ['involvedObject', objectReference],
  3: ['reason', 'string'],
  4: ['message', 'string'],
  5: ['source', { 1: ['component', 'string'], 2: ['host', 'string'] }],
  6: ['firstTimestamp', 'time'],
  7: ['lastTimestamp', 'time'],
  8: ['count', 'int'],
  9: ['type', 'string'],
  10: ['eventTime', 'microTime'],
  11: ['series', { 1: ['count', 'int'], 2: ['lastObservedTime', 'microTime'] }],
  12: ['action', 'string'],
  13: ['related', objectReference],
  14: ['reportingComponent', 'string'],
  15: ['reportingInstance', 'string'],
};

const csiNodeDriver: ProtoMessage = {
  1: ['name', 'string'],
  2: ['nodeID', 'string'],
  3: ['topologyKeys', 'string', 'list'],
  4: ['allocatable', { 1: ['count', 'int'] }],
};

const csiNode: ProtoMessage = { 1: ['metadata', objectMeta], 2: ['spec', { 1: ['drivers', csiNodeDriver, 'list'] }] };

/** Messages by `<apiVersion> <kind>`. */
export const PROTOBUF_KINDS: Readonly<Record<string, ProtoMessage>> = {
  'v1 DeleteOptions': deleteOptions,
  'v1 Namespace': namespace,
  'v1 Node': node,
  'v1 Event': event,
  'coordination.k8s.io/v1 Lease': lease,
  'storage.k8s.io/v1 CSINode': csiNode,
  'policy/v1 Eviction': eviction,
  'policy/v1beta1 Eviction': eviction,
  'authorization.k8s.io/v1 SelfSubjectAccessReview': selfSubjectAccessReview,
  'authorization.k8s.io/v1 SelfSubjectRulesReview': selfSubjectRulesReview,
  'authentication.k8s.io/v1 SelfSubjectReview': selfSubjectReview,
  'authentication.k8s.io/v1 TokenRequest': tokenRequest,
};
