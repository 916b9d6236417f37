import { labelSelector, metadata, objectReference } from '../../kubernetes/schema/meta.ts';
import {
  always,
  atomicStruct,
  atomicTextMap,
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
  time,
} from '../../kubernetes/schema/schema.ts';
import {
  container,
  ephemeralContainer,
  localObjectReference,
  podSecurityContext,
  resourceRequirements,
} from './container.ts';
import { volume } from './volume.ts';

const CORE = 'io.k8s.api.core.v1';

const nodeSelectorRequirement = struct(`${CORE}.NodeSelectorRequirement`, 'One requirement for a node.', {
  key: required(text('Label key, or field.')),
  operator: required(text('In, NotIn, Exists, DoesNotExist, Gt or Lt.')),
  values: textList('Values the operator compares with.'),
});

const nodeSelectorTerm = atomicStruct(`${CORE}.NodeSelectorTerm`, 'Requirements that must all be met.', {
  matchExpressions: list(nodeSelectorRequirement, 'Requirements for labels.'),
  matchFields: list(nodeSelectorRequirement, 'Requirements for fields.'),
});

export const nodeSelector: StructSchema = atomicStruct(
  `${CORE}.NodeSelector`,
  'Selects nodes; one of the terms must match.',
  {
    nodeSelectorTerms: required(list(nodeSelectorTerm, 'The terms.')),
  },
);

const preferredSchedulingTerm = struct(`${CORE}.PreferredSchedulingTerm`, 'A preference for nodes.', {
  weight: required(int32('Weight of the preference, 1 to 100.')),
  preference: required(embedded(nodeSelectorTerm, 'Preferred nodes.')),
});

const nodeAffinity = struct(`${CORE}.NodeAffinity`, 'Nodes a pod must or should run on.', {
  requiredDuringSchedulingIgnoredDuringExecution: optionalStruct(nodeSelector, 'Nodes it must run on.'),
  preferredDuringSchedulingIgnoredDuringExecution: list(preferredSchedulingTerm, 'Nodes it should run on.'),
});

const podAffinityTerm = struct(`${CORE}.PodAffinityTerm`, 'Pods to be near to, or away from.', {
  labelSelector: optionalStruct(labelSelector, 'Which pods.'),
  namespaces: textList('Namespaces they are in.'),
  topologyKey: required(text('Node label that defines the topology domain.')),
  namespaceSelector: optionalStruct(labelSelector, 'Selects namespaces by label.'),
  matchLabelKeys: textList('Labels that must have the same values as on this pod.'),
  mismatchLabelKeys: textList('Labels that must have other values than on this pod.'),
});

const weightedPodAffinityTerm = struct(
  `${CORE}.WeightedPodAffinityTerm`,
  'A preference to be near to, or away from, pods.',
  {
    weight: required(int32('Weight of the preference, 1 to 100.')),
    podAffinityTerm: required(embedded(podAffinityTerm, 'The pods.')),
  },
);

const podAffinityOf = (name: string, where: string): StructSchema =>
  struct(`${CORE}.${name}`, `Pods that a pod must or should be ${where}.`, {
    requiredDuringSchedulingIgnoredDuringExecution: list(podAffinityTerm, `Pods it must be ${where}.`),
    preferredDuringSchedulingIgnoredDuringExecution: list(weightedPodAffinityTerm, `Pods it should be ${where}.`),
  });

const affinity = struct(`${CORE}.Affinity`, 'Where a pod must or should run.', {
  nodeAffinity: optionalStruct(nodeAffinity, 'By nodes.'),
  podAffinity: optionalStruct(podAffinityOf('PodAffinity', 'near to'), 'Near other pods.'),
  podAntiAffinity: optionalStruct(podAffinityOf('PodAntiAffinity', 'away from'), 'Away from other pods.'),
});

export const toleration: StructSchema = struct(`${CORE}.Toleration`, 'Tolerates the taints that it matches.', {
  key: text('Taint key; all, if empty with operator Exists.'),
  operator: oneOf(
    'v1.TolerationOperator',
    ['Equal', 'Exists', 'Lt', 'Gt'],
    'How the values compare; Equal if not set.',
  ),
  value: text('Taint value.'),
  effect: oneOf('v1.TaintEffect', ['NoSchedule', 'PreferNoSchedule', 'NoExecute'], 'Taint effect; all if empty.'),
  tolerationSeconds: pointer(
    int64(
      'Seconds the pod stays on a node with such a NoExecute taint; forever if not set, evicted at once if 0 or less.',
    ),
  ),
});

const topologySpreadConstraint = struct(
  `${CORE}.TopologySpreadConstraint`,
  'How evenly pods are spread over topology domains.',
  {
    maxSkew: required(int32('Largest difference between domains.')),
    topologyKey: required(text('Node label that defines the topology domains.')),
    whenUnsatisfiable: required(text('DoNotSchedule or ScheduleAnyway.')),
    labelSelector: optionalStruct(labelSelector, 'Pods that count.'),
    minDomains: pointer(int32('Minimum number of domains.')),
    nodeAffinityPolicy: pointer(text('Whether affinity limits the nodes that count: Honor or Ignore.')),
    nodeTaintsPolicy: pointer(text('Whether taints limit the nodes that count: Honor or Ignore.')),
    matchLabelKeys: textList('Labels that must have the same values as on this pod.'),
  },
);

const hostAlias = struct(`${CORE}.HostAlias`, 'A line of the hosts file.', {
  ip: required(text('Address.')),
  hostnames: textList('Names for it.'),
});

const dnsOption = struct(`${CORE}.PodDNSConfigOption`, 'An option of the resolver.', {
  name: text('Name of the option.'),
  value: pointer(text('Its value.')),
});

const dnsConfig = struct(`${CORE}.PodDNSConfig`, 'Settings of the resolver, added to those of the policy.', {
  nameservers: textList('Addresses of name servers.'),
  searches: textList('Search domains.'),
  options: list(dnsOption, 'Options.'),
});

const readinessGate = struct(`${CORE}.PodReadinessGate`, 'A condition that a pod needs to be ready.', {
  conditionType: required(text('Type of the condition.')),
});

const schedulingGate = struct(`${CORE}.PodSchedulingGate`, 'Blocks the scheduling of a pod.', {
  name: required(text('Name of the gate.')),
});

const podResourceClaim = struct(`${CORE}.PodResourceClaim`, 'A resource claim of a pod.', {
  name: required(text('Name of the claim in the pod.')),
  resourceClaimName: pointer(text('The claim.')),
  resourceClaimTemplateName: pointer(text('Template that the claim is created from.')),
});

const podOs = struct(`${CORE}.PodOS`, 'Operating system a pod is for.', { name: required(text('linux or windows.')) });

export const podSpec: StructSchema = struct(`${CORE}.PodSpec`, 'Desired state of a pod.', {
  volumes: keyedList(volume, 'Volumes the containers may mount.', { mergeKey: 'name', retainKeys: true }),
  initContainers: keyedList(container, 'Containers that run first, one after another.', { mergeKey: 'name' }),
  containers: required(keyedList(container, 'Containers of the pod.', { mergeKey: 'name' })),
  ephemeralContainers: keyedList(ephemeralContainer, 'Containers added while it runs.', { mergeKey: 'name' }),
  restartPolicy: oneOf('v1.RestartPolicy', ['Always', 'OnFailure', 'Never'], 'When containers are restarted.'),
  terminationGracePeriodSeconds: pointer(int64('Seconds from the stop signal to the kill.')),
  activeDeadlineSeconds: pointer(int64('Seconds it may run.')),
  dnsPolicy: text('Which resolver it uses: ClusterFirst, ClusterFirstWithHostNet, Default or None.'),
  nodeSelector: atomicTextMap('Labels the node must have.'),
  serviceAccountName: text('Service account it runs as.'),
  serviceAccount: text('Deprecated name of serviceAccountName.'),
  automountServiceAccountToken: pointer(bool('Whether a token of the service account is mounted.')),
  nodeName: text('Node that it is bound to. Set once, by a scheduler or at creation.'),
  hostNetwork: bool('Whether it uses the network of the node.'),
  hostPID: bool('Whether it sees the processes of the node.'),
  hostIPC: bool('Whether it shares the IPC of the node.'),
  shareProcessNamespace: pointer(bool('Whether its containers see each other’s processes.')),
  securityContext: optionalStruct(podSecurityContext, 'Security settings of its containers.'),
  imagePullSecrets: keyedList(localObjectReference, 'Secrets to pull images with.', { mergeKey: 'name' }),
  hostname: text('Host name; the name of the pod if not set.'),
  subdomain: text('Subdomain of its host name.'),
  affinity: optionalStruct(affinity, 'Where it must or should run.'),
  schedulerName: text('Scheduler that places it.'),
  tolerations: list(toleration, 'Taints that it tolerates.'),
  hostAliases: keyedList(hostAlias, 'Lines for its hosts file.', { mergeKey: 'ip' }),
  priorityClassName: text('Priority class.'),
  priority: pointer(int32('Priority, resolved from the class.')),
  dnsConfig: optionalStruct(dnsConfig, 'Settings of the resolver.'),
  readinessGates: list(readinessGate, 'Conditions it needs to be ready.'),
  runtimeClassName: pointer(text('Runtime class.')),
  enableServiceLinks: pointer(bool('Whether services appear in its environment.')),
  preemptionPolicy: pointer(text('Whether it may preempt other pods: PreemptLowerPriority or Never.')),
  overhead: resourceList('Resources that the runtime needs in addition.'),
  topologySpreadConstraints: keyedList(
    topologySpreadConstraint,
    'How evenly pods like it are spread over topology domains.',
    {
      mergeKey: 'topologyKey',
      mapKeys: ['topologyKey', 'whenUnsatisfiable'],
    },
  ),
  setHostnameAsFQDN: pointer(bool('Whether its host name is the fully qualified one.')),
  os: optionalStruct(podOs, 'Operating system it is for.'),
  hostUsers: pointer(bool('Whether it uses the user ids of the node.')),
  schedulingGates: keyedList(schedulingGate, 'Gates that block its scheduling.', { mergeKey: 'name' }),
  resourceClaims: keyedList(podResourceClaim, 'Resource claims.', { mergeKey: 'name', retainKeys: true }),
  resources: optionalStruct(resourceRequirements, 'Resources of all containers together.'),
  hostnameOverride: pointer(text('Host name that replaces the computed one.')),
});

const podCondition = struct(`${CORE}.PodCondition`, 'One aspect of the state of a pod.', {
  type: required(text('Aspect in question: Ready, PodScheduled, DisruptionTarget or other.')),
  observedGeneration: int64('Generation of the pod that the condition was computed from.'),
  status: required(text('True, False or Unknown.')),
  lastProbeTime: always(time('When it was last probed.')),
  lastTransitionTime: always(time('When the status last changed.')),
  reason: text('One word for the cause, for programs.'),
  message: text('Explanation for people.'),
});

const waiting = struct(`${CORE}.ContainerStateWaiting`, 'A container that is not running yet.', {
  reason: text('One word for the cause.'),
  message: text('Explanation for people.'),
});

const running = struct(`${CORE}.ContainerStateRunning`, 'A container that runs.', {
  startedAt: always(time('When it started.')),
});

const terminated = struct(`${CORE}.ContainerStateTerminated`, 'A container that has terminated.', {
  exitCode: required(int32('Exit code.')),
  signal: int32('Signal that terminated it.'),
  reason: text('One word for the cause.'),
  message: text('Termination message of the container.'),
  startedAt: always(time('When it started.')),
  finishedAt: always(time('When it terminated.')),
  containerID: text('Id of the container.'),
});

const containerState = struct(`${CORE}.ContainerState`, 'State of a container; one of the three.', {
  waiting: optionalStruct(waiting, 'It waits.'),
  running: optionalStruct(running, 'It runs.'),
  terminated: optionalStruct(terminated, 'It has terminated.'),
});

const volumeMountStatus = struct(`${CORE}.VolumeMountStatus`, 'A volume as mounted.', {
  name: required(text('Name of the volume.')),
  mountPath: required(text('Where it is mounted.')),
  readOnly: bool('Whether it is read-only.'),
  recursiveReadOnly: pointer(text('Whether mounts below are read-only too.')),
});

const linuxUser = struct(`${CORE}.LinuxContainerUser`, 'User of the first process.', {
  uid: required(int64('User id.')),
  gid: required(int64('Group id.')),
  supplementalGroups: listOf({ kind: 'integer', format: 'int64' }, 'Further group ids.', {}),
});

const containerUser = struct(`${CORE}.ContainerUser`, 'User a container runs as.', {
  linux: optionalStruct(linuxUser, 'On Linux.'),
});

const resourceHealth = struct(`${CORE}.ResourceHealth`, 'Health of one resource.', {
  resourceID: required(text('Id of the resource.')),
  health: text('Healthy, Unhealthy or Unknown.'),
});

const resourceStatus = struct(`${CORE}.ResourceStatus`, 'Health of the resources of one sort.', {
  name: required(text('Name of the resource.')),
  resources: listOf(resourceHealth, 'One by one.', { listType: 'map', mapKeys: ['resourceID'] }),
});

const containerStatus = struct(`${CORE}.ContainerStatus`, 'Observed state of a container.', {
  name: required(text('Name of the container.')),
  state: embedded(containerState, 'Its current state.'),
  lastState: embedded(containerState, 'Its state before the last restart.'),
  ready: required(bool('Whether it is ready.')),
  restartCount: required(int32('How often it was restarted.')),
  image: required(text('Image it runs.')),
  imageID: required(text('Id of the image.')),
  containerID: text('Id of the container.'),
  started: pointer(bool('Whether it has started.')),
  allocatedResources: resourceList('Resources allocated to it.'),
  resources: optionalStruct(resourceRequirements, 'Resources it has.'),
  volumeMounts: keyedList(volumeMountStatus, 'Volumes as mounted.', { mergeKey: 'mountPath' }),
  user: optionalStruct(containerUser, 'User it runs as.'),
  allocatedResourcesStatus: keyedList(resourceStatus, 'Health of its resources.', { mergeKey: 'name' }),
  stopSignal: pointer(text('Signal that stops it.')),
});

const ipOf = (name: string, whose: string): StructSchema =>
  struct(`${CORE}.${name}`, `An address of the ${whose}.`, { ip: required(text('The address.')) });

const claimStatus = struct(`${CORE}.PodResourceClaimStatus`, 'A claim that was created.', {
  name: required(text('Name of the claim in the pod.')),
  resourceClaimName: pointer(text('The claim.')),
});

const podStatus = struct(`${CORE}.PodStatus`, 'Last known state of a pod.', {
  observedGeneration: int64('Generation that the status was computed from.'),
  phase: oneOf('v1.PodPhase', ['Pending', 'Running', 'Succeeded', 'Failed', 'Unknown'], 'Lifecycle phase of the pod.'),
  conditions: keyedList(podCondition, 'Conditions of the pod, one per type.', { mergeKey: 'type' }),
  message: text('Explanation of the state, for people.'),
  reason: text('Reason in one word, such as Evicted.'),
  nominatedNodeName: text('Node that is being cleared for it by preemption.'),
  hostIP: text('Address of the node.'),
  hostIPs: listOf(ipOf('HostIP', 'node'), 'Addresses of the node.', { patchStrategy: 'merge', mergeKey: 'ip' }),
  podIP: text('Address of the pod; the first of podIPs.'),
  podIPs: keyedList(ipOf('PodIP', 'pod'), 'Addresses of the pod.', { mergeKey: 'ip' }),
  startTime: pointer(time('When the node accepted the pod.')),
  initContainerStatuses: list(containerStatus, 'Observed state of the init containers.'),
  containerStatuses: list(containerStatus, 'Observed state of the containers.'),
  qosClass: oneOf('v1.PodQOSClass', ['Guaranteed', 'Burstable', 'BestEffort'], 'Class by resources.'),
  ephemeralContainerStatuses: list(containerStatus, 'Observed state of the ephemeral containers.'),
  resize: text('Progress of a change of resources.'),
  resourceClaimStatuses: keyedList(claimStatus, 'Claims that were created.', { mergeKey: 'name', retainKeys: true }),
  allocatedResources: resourceList('Resources allocated to the pod.'),
  resources: optionalStruct(resourceRequirements, 'Resources the pod has.'),
});

export const pod: StructSchema = kindStruct(
  `${CORE}.Pod`,
  { group: '', version: 'v1', kind: 'Pod' },
  'Pod is a collection of containers that can run on a host.',
  {
    metadata,
    spec: embedded(podSpec, 'What is wanted of the pod.'),
    status: embedded(podStatus, 'Last known state of the pod. Written through the status subresource.'),
  },
);

export const binding: StructSchema = kindStruct(
  `${CORE}.Binding`,
  { group: '', version: 'v1', kind: 'Binding' },
  'Binds a pod to a node.',
  {
    metadata,
    target: required(embedded(objectReference, 'The node.')),
  },
);
