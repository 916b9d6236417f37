import { metadata } from '../../kubernetes/schema/meta.ts';
import {
  bool,
  embedded,
  int32,
  int64,
  keyedList,
  kindStruct,
  list,
  listOf,
  oneOf,
  optionalStruct,
  pointer,
  required,
  resourceList,
  type StructSchema,
  struct,
  text,
  textList,
  textSet,
  time,
} from '../../kubernetes/schema/schema.ts';

const CORE = 'io.k8s.api.core.v1';

export const TAINT_EFFECTS = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'] as const;

export const taint: StructSchema = struct(
  `${CORE}.Taint`,
  'Keeps pods off a node, or evicts them, unless they tolerate the taint.',
  {
    key: required(text('Taint key.')),
    value: text('Taint value that belongs to the key.'),
    effect: required(
      oneOf(
        'v1.TaintEffect',
        TAINT_EFFECTS,
        'What happens to pods without a toleration: NoSchedule keeps new ones off, PreferNoSchedule tries to, NoExecute also evicts those that run.',
      ),
    ),
    timeAdded: pointer(
      time('When the taint was added. Of a NoExecute taint the server writes it, because eviction counts from it.'),
    ),
  },
);

const configMapNodeConfigSource = struct(`${CORE}.ConfigMapNodeConfigSource`, 'No longer used by any kubelet.', {
  namespace: required(text('Namespace of the ConfigMap.')),
  name: required(text('Name of the ConfigMap.')),
  uid: text('UID of the ConfigMap.'),
  resourceVersion: text('Version of the ConfigMap.'),
  kubeletConfigKey: required(text('Key that holds the configuration.')),
});

const nodeConfigSource = struct(`${CORE}.NodeConfigSource`, 'No longer used by any kubelet.', {
  configMap: optionalStruct(configMapNodeConfigSource, 'ConfigMap that contains the configuration.'),
});

const nodeSpec = struct(`${CORE}.NodeSpec`, 'Desired state of a node.', {
  podCIDR: text('Address range for the pods of the node; the first of podCIDRs.'),
  podCIDRs: textSet('Address ranges for the pods of the node, at most one per IP family.'),
  providerID: text('Identity of the machine at its provider: <provider>://<id as the provider writes it>.'),
  unschedulable: bool('Whether no new pods are scheduled here. Set by cordon, reset by uncordon.'),
  taints: list(taint, 'Taints of the node, unique by key and effect. A patch replaces the whole list.'),
  configSource: optionalStruct(nodeConfigSource, 'No longer used by any kubelet.'),
  externalID: text('No longer used; some old kubelets still send it.'),
});

export const nodeCondition: StructSchema = struct(`${CORE}.NodeCondition`, 'One aspect of the state of a node.', {
  type: required(
    text('Aspect in question: Ready, MemoryPressure, DiskPressure, PIDPressure, NetworkUnavailable or other.'),
  ),
  status: required(text('True, False or Unknown.')),
  lastHeartbeatTime: { ...time('When the node last reported the condition.'), presence: 'always' },
  lastTransitionTime: { ...time('When the status last changed.'), presence: 'always' },
  reason: text('One word for the cause, for programs.'),
  message: text('Explanation for people.'),
});

const nodeAddress = struct(`${CORE}.NodeAddress`, 'One address of a node.', {
  type: required(text('Sort of the address: Hostname, InternalIP, ExternalIP, InternalDNS or ExternalDNS.')),
  address: required(text('The address.')),
});

const daemonEndpoint = struct(`${CORE}.DaemonEndpoint`, 'Where a daemon listens.', {
  Port: required(int32('Port number.')),
});

const nodeDaemonEndpoints = struct(`${CORE}.NodeDaemonEndpoints`, 'Endpoints of the daemons of a node.', {
  kubeletEndpoint: embedded(daemonEndpoint, 'Where the kubelet listens.'),
});

const nodeSwapStatus = struct(`${CORE}.NodeSwapStatus`, 'Swap space of a node.', {
  capacity: pointer(int64('Total swap space, in bytes.')),
});

const nodeSystemInfo = struct(`${CORE}.NodeSystemInfo`, 'What a node reports about its machine and software.', {
  machineID: required(text('Machine id, unique in the cluster.')),
  systemUUID: required(text('System UUID, as the firmware reports it.')),
  bootID: required(text('Id of the current boot.')),
  kernelVersion: required(text('Kernel release, as uname -r prints it.')),
  osImage: required(text('Operating system, for people.')),
  containerRuntimeVersion: required(text('Container runtime and its version.')),
  kubeletVersion: required(text('Version of the kubelet or agent.')),
  kubeProxyVersion: required(text('No longer meaningful; equals the kubelet version.')),
  operatingSystem: required(text('Operating system, as in kubernetes.io/os.')),
  architecture: required(text('Architecture, as in kubernetes.io/arch.')),
  swap: optionalStruct(nodeSwapStatus, 'Swap space of the machine.'),
});

const containerImage = struct(`${CORE}.ContainerImage`, 'An image that a node has.', {
  names: listOf({ kind: 'string' }, 'Names the image is known by.', {}),
  sizeBytes: int64('Size in bytes.'),
});

const attachedVolume = struct(`${CORE}.AttachedVolume`, 'A volume attached to a node.', {
  name: required(text('Name of the volume.')),
  devicePath: required(text('Where the device is found.')),
});

const nodeConfigStatus = struct(`${CORE}.NodeConfigStatus`, 'No longer used by any kubelet.', {
  assigned: optionalStruct(nodeConfigSource, 'Configuration the node is to use.'),
  active: optionalStruct(nodeConfigSource, 'Configuration the node uses.'),
  lastKnownGood: optionalStruct(nodeConfigSource, 'Configuration the node falls back to.'),
  error: text('What went wrong.'),
});

const runtimeHandlerFeatures = struct(`${CORE}.NodeRuntimeHandlerFeatures`, 'What a runtime handler can do.', {
  recursiveReadOnlyMounts: pointer(bool('Whether it can mount read-only recursively.')),
  userNamespaces: pointer(bool('Whether it can use user namespaces.')),
});

const runtimeHandler = struct(`${CORE}.NodeRuntimeHandler`, 'A runtime handler of a node.', {
  name: text('Name of the handler; empty for the default one.'),
  features: optionalStruct(runtimeHandlerFeatures, 'What the handler can do.'),
});

const nodeFeatures = struct(`${CORE}.NodeFeatures`, 'What the runtime of a node can do, whatever the handler.', {
  supplementalGroupsPolicy: pointer(bool('Whether it honours supplementalGroupsPolicy.')),
});

const nodeStatus = struct(`${CORE}.NodeStatus`, 'Last known state of a node.', {
  capacity: resourceList('Resources of the machine in all.'),
  allocatable: resourceList('Resources that pods may use. Capacity, if left out.'),
  phase: text('No longer set.'),
  conditions: keyedList(nodeCondition, 'Conditions of the node, one per type.', { mergeKey: 'type' }),
  addresses: keyedList(
    nodeAddress,
    'Addresses of the node. A patch merges them by type, so replace the list when a type stands twice.',
    {
      mergeKey: 'type',
    },
  ),
  daemonEndpoints: embedded(nodeDaemonEndpoints, 'Endpoints of the daemons of the node.'),
  nodeInfo: embedded(nodeSystemInfo, 'What the node reports about its machine and software.'),
  images: list(containerImage, 'Images the node has.'),
  volumesInUse: textList('Volumes in use, which must not be detached.'),
  volumesAttached: list(attachedVolume, 'Volumes attached to the node.'),
  config: optionalStruct(nodeConfigStatus, 'No longer used by any kubelet.'),
  runtimeHandlers: list(runtimeHandler, 'Runtime handlers of the node.'),
  features: optionalStruct(nodeFeatures, 'What the runtime of the node can do.'),
  declaredFeatures: textList('Features that the node reports.'),
});

export const node: StructSchema = kindStruct(
  `${CORE}.Node`,
  { group: '', version: 'v1', kind: 'Node' },
  'Node is a worker node in Kubernetes. It stays alive by renewing its Lease in kube-node-lease; its conditions describe its state.',
  {
    metadata,
    spec: embedded(nodeSpec, 'Desired state of the node.'),
    status: embedded(nodeStatus, 'Last known state of the node. Written through the status subresource.'),
  },
);

const namespaceSpec = struct(`${CORE}.NamespaceSpec`, 'Desired state of a namespace.', {
  finalizers: listOf(
    { kind: 'string', goType: 'v1.FinalizerName' },
    'Tasks that must be done before the namespace is removed.',
    {},
  ),
});

const namespaceCondition = struct(`${CORE}.NamespaceCondition`, 'One aspect of the deletion of a namespace.', {
  type: required(text('Aspect in question.')),
  status: required(text('True, False or Unknown.')),
  lastTransitionTime: { ...time('When the status last changed.'), presence: 'always' },
  reason: text('One word for the cause, for programs.'),
  message: text('Explanation for people.'),
});

const namespaceStatus = struct(`${CORE}.NamespaceStatus`, 'State of a namespace.', {
  phase: oneOf('v1.NamespacePhase', ['Active', 'Terminating'], 'Lifecycle phase of the namespace.'),
  conditions: keyedList(namespaceCondition, 'Progress of its deletion.', { mergeKey: 'type' }),
});

export const namespace: StructSchema = kindStruct(
  `${CORE}.Namespace`,
  { group: '', version: 'v1', kind: 'Namespace' },
  'Namespace provides a scope for Names.',
  {
    metadata,
    spec: embedded(namespaceSpec, 'Desired state of the namespace.'),
    status: embedded(namespaceStatus, 'State of the namespace.'),
  },
);
