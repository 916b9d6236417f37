import {
  always,
  atomicStruct,
  bool,
  embedded,
  int32,
  int64,
  intOrString,
  keyDefault,
  keyedList,
  list,
  listOf,
  oneOf,
  optionalStruct,
  pointer,
  quantity,
  required,
  resourceList,
  type StructSchema,
  struct,
  text,
  textList,
} from '../../kubernetes/schema/schema.ts';

const CORE = 'io.k8s.api.core.v1';

export const localObjectReference: StructSchema = atomicStruct(
  `${CORE}.LocalObjectReference`,
  'Names an object of a known kind in the same namespace.',
  { name: text('Name of the object.') },
);

const objectFieldSelector = atomicStruct(`${CORE}.ObjectFieldSelector`, 'Names a field of the pod.', {
  apiVersion: text('API version the path is written in; v1 if left out.'),
  fieldPath: required(text('Path of the field.')),
});

const resourceFieldSelector = atomicStruct(`${CORE}.ResourceFieldSelector`, 'Names a resource of a container.', {
  containerName: text('Container in question; needed in volumes only.'),
  resource: required(text('Resource, such as limits.cpu.')),
  divisor: always(quantity('Unit the value is expressed in; 1 if left out.')),
});

export const downwardFields = { objectFieldSelector, resourceFieldSelector };

const keySelector = (name: string, what: string): StructSchema =>
  atomicStruct(`${CORE}.${name}`, `Names one key of a ${what}.`, {
    name: text(`Name of the ${what}.`),
    key: required(text('The key.')),
    optional: pointer(bool('Whether it may be missing.')),
  });

const fileKeySelector = atomicStruct(`${CORE}.FileKeySelector`, 'Names one variable in a file of a volume.', {
  volumeName: required(text('Volume that holds the file.')),
  path: required(text('Path of the file in the volume.')),
  key: required(text('The variable.')),
  optional: pointer(bool('Whether it may be missing.')),
});

const envVarSource = struct(`${CORE}.EnvVarSource`, 'Where the value of a variable comes from.', {
  fieldRef: optionalStruct(objectFieldSelector, 'A field of the pod.'),
  resourceFieldRef: optionalStruct(resourceFieldSelector, 'A resource of a container.'),
  configMapKeyRef: optionalStruct(keySelector('ConfigMapKeySelector', 'ConfigMap'), 'A key of a ConfigMap.'),
  secretKeyRef: optionalStruct(keySelector('SecretKeySelector', 'Secret'), 'A key of a Secret.'),
  fileKeyRef: optionalStruct(fileKeySelector, 'A variable in a file.'),
});

const envVar = struct(`${CORE}.EnvVar`, 'A variable in the environment of a container.', {
  name: required(text('Name of the variable.')),
  value: text('Its value; $(NAME) stands for variables named before it.'),
  valueFrom: optionalStruct(envVarSource, 'Source of the value, if value is not set.'),
});

const envSource = (name: string, what: string): StructSchema =>
  struct(`${CORE}.${name}`, `Names a ${what} that contains variables.`, {
    name: text(`Name of the ${what}.`),
    optional: pointer(bool('Whether it may be missing.')),
  });

const envFromSource = struct(`${CORE}.EnvFromSource`, 'Where a set of variables comes from.', {
  prefix: text('Prefix of the name of each variable.'),
  configMapRef: optionalStruct(envSource('ConfigMapEnvSource', 'ConfigMap'), 'A ConfigMap.'),
  secretRef: optionalStruct(envSource('SecretEnvSource', 'Secret'), 'A Secret.'),
});

const containerPort = struct(`${CORE}.ContainerPort`, 'A port of a container.', {
  name: text('Name of the port, unique in the pod.'),
  hostPort: int32('Port of the node that leads to it.'),
  containerPort: required(int32('Port number in the pod.')),
  protocol: keyDefault(oneOf('v1.Protocol', ['TCP', 'UDP', 'SCTP'], 'Protocol; TCP if left out.'), 'TCP'),
  hostIP: text('Address of the node that the host port is bound to.'),
});

const resourceClaim = struct(`${CORE}.ResourceClaim`, 'A resource claim of the pod that a container uses.', {
  name: required(text('Name of the claim in the pod.')),
  request: text('Which request of the claim is meant; all if left out.'),
});

export const resourceRequirements: StructSchema = struct(
  `${CORE}.ResourceRequirements`,
  'How much of the resources of a node is needed.',
  {
    limits: resourceList('The most it may use.'),
    requests: resourceList('What is set aside for it; the limits, if left out.'),
    claims: listOf(resourceClaim, 'Resource claims it uses.', { listType: 'map', mapKeys: ['name'] }),
  },
);

const resizePolicy = struct(`${CORE}.ContainerResizePolicy`, 'What a change of a resource asks of a container.', {
  resourceName: required(text('Resource in question.')),
  restartPolicy: required(text('NotRequired or RestartContainer.')),
});

const exitCodes = struct(`${CORE}.ContainerRestartRuleOnExitCodes`, 'Which exit codes a rule is for.', {
  operator: required(text('In or NotIn.')),
  values: listOf({ kind: 'integer', format: 'int32' }, 'Exit codes.', { listType: 'set' }),
});

const restartRule = struct(`${CORE}.ContainerRestartRule`, 'What to do when a container terminates.', {
  action: required(text('What to do: Restart.')),
  exitCodes: optionalStruct(exitCodes, 'Exit codes the rule is for.'),
});

const volumeMount = struct(`${CORE}.VolumeMount`, 'A volume in the file system of a container.', {
  name: required(text('Name of the volume in the pod.')),
  readOnly: bool('Whether it is mounted read-only.'),
  recursiveReadOnly: pointer(text('Whether mounts below are read-only too: Disabled, IfPossible or Enabled.')),
  mountPath: required(text('Where it is mounted.')),
  subPath: text('Part of the volume that is mounted.'),
  mountPropagation: pointer(text('How mounts pass between node and container.')),
  subPathExpr: text('Like subPath, with variables.'),
});

const volumeDevice = struct(`${CORE}.VolumeDevice`, 'A raw device in a container.', {
  name: required(text('Name of the volume in the pod.')),
  devicePath: required(text('Path of the device in the container.')),
});

const execAction = struct(`${CORE}.ExecAction`, 'A command run in the container.', {
  command: textList('Program and arguments; no shell.'),
});

const httpHeader = struct(`${CORE}.HTTPHeader`, 'A header of a request.', {
  name: required(text('Name of the header.')),
  value: required(text('Its value.')),
});

const httpGetAction = struct(`${CORE}.HTTPGetAction`, 'An HTTP GET request.', {
  path: text('Path asked for.'),
  port: required(intOrString('Number or name of the port.')),
  host: text('Host asked; the pod itself if left out.'),
  scheme: oneOf('v1.URIScheme', ['HTTP', 'HTTPS'], 'Scheme; HTTP if left out.'),
  httpHeaders: list(httpHeader, 'Headers sent.'),
});

const tcpSocketAction = struct(`${CORE}.TCPSocketAction`, 'Opening of a TCP connection.', {
  port: required(intOrString('Number or name of the port.')),
  host: text('Host asked; the pod itself if left out.'),
});

const grpcAction = struct(`${CORE}.GRPCAction`, 'A gRPC health check.', {
  port: required(int32('Port number.')),
  service: pointer(text('Service asked for.')),
});

const sleepAction = struct(`${CORE}.SleepAction`, 'A pause.', { seconds: required(int64('Length, in seconds.')) });

const lifecycleHandler = struct(`${CORE}.LifecycleHandler`, 'Action at a lifecycle event of a container.', {
  exec: optionalStruct(execAction, 'Runs a command.'),
  httpGet: optionalStruct(httpGetAction, 'Sends a request.'),
  tcpSocket: optionalStruct(tcpSocketAction, 'Not supported; kept for old manifests.'),
  sleep: optionalStruct(sleepAction, 'Waits.'),
});

const lifecycle = struct(`${CORE}.Lifecycle`, 'What to do as a container starts and before it stops.', {
  postStart: optionalStruct(lifecycleHandler, 'Right after it started.'),
  preStop: optionalStruct(lifecycleHandler, 'Before it is stopped.'),
  stopSignal: pointer(text('Signal that stops it.')),
});

const probe = struct(`${CORE}.Probe`, 'A check of a container.', {
  exec: optionalStruct(execAction, 'Runs a command.'),
  httpGet: optionalStruct(httpGetAction, 'Sends a request.'),
  tcpSocket: optionalStruct(tcpSocketAction, 'Opens a connection.'),
  grpc: optionalStruct(grpcAction, 'Asks a gRPC health service.'),
  initialDelaySeconds: int32('Seconds from start to the first check.'),
  timeoutSeconds: int32('Timeout of one check in seconds.'),
  periodSeconds: int32('Seconds from check to check.'),
  successThreshold: int32('Successes in a row after a failure that count as success.'),
  failureThreshold: int32('Failures in a row that count as failure.'),
  terminationGracePeriodSeconds: pointer(int64('Seconds of grace when the check fails; the pod’s, if left out.')),
});

const capabilities = struct(`${CORE}.Capabilities`, 'Linux capabilities added and dropped.', {
  add: listOf({ kind: 'string', goType: 'v1.Capability' }, 'Capabilities added.', {}),
  drop: listOf({ kind: 'string', goType: 'v1.Capability' }, 'Capabilities dropped.', {}),
});

const seLinuxOptions = struct(`${CORE}.SELinuxOptions`, 'SELinux label.', {
  user: text('User part of the label.'),
  role: text('Role part of the label.'),
  type: text('Type part of the label.'),
  level: text('Level part of the label.'),
});

const windowsOptions = struct(`${CORE}.WindowsSecurityContextOptions`, 'Settings for Windows.', {
  gmsaCredentialSpecName: pointer(text('Name of the credential spec.')),
  gmsaCredentialSpec: pointer(text('The credential spec itself.')),
  runAsUserName: pointer(text('User to run as.')),
  hostProcess: pointer(bool('Whether it runs on the host.')),
});

const seccompProfile = struct(`${CORE}.SeccompProfile`, 'Which system calls are allowed.', {
  type: required(text('Localhost, RuntimeDefault or Unconfined.')),
  localhostProfile: pointer(text('File on the node, for Localhost.')),
});

const appArmorProfile = struct(`${CORE}.AppArmorProfile`, 'AppArmor profile.', {
  type: required(text('Localhost, RuntimeDefault or Unconfined.')),
  localhostProfile: pointer(text('Profile on the node, for Localhost.')),
});

const securityContext = struct(
  `${CORE}.SecurityContext`,
  'Security settings of a container. They override those of the pod.',
  {
    capabilities: optionalStruct(capabilities, 'Capabilities added and dropped.'),
    privileged: pointer(bool('Whether it has the rights of root on the node.')),
    seLinuxOptions: optionalStruct(seLinuxOptions, 'SELinux label.'),
    windowsOptions: optionalStruct(windowsOptions, 'Settings for Windows.'),
    runAsUser: pointer(int64('User id to run as.')),
    runAsGroup: pointer(int64('Group id to run as.')),
    runAsNonRoot: pointer(bool('Whether running as root is refused.')),
    readOnlyRootFilesystem: pointer(bool('Whether the root file system is read-only.')),
    allowPrivilegeEscalation: pointer(bool('Whether a process may gain more rights than its parent.')),
    procMount: pointer(text('How /proc is mounted: Default or Unmasked.')),
    seccompProfile: optionalStruct(seccompProfile, 'System calls allowed.'),
    appArmorProfile: optionalStruct(appArmorProfile, 'AppArmor profile.'),
  },
);

const sysctl = struct(`${CORE}.Sysctl`, 'A kernel parameter.', {
  name: required(text('Name of the parameter.')),
  value: required(text('Its value.')),
});

export const podSecurityContext: StructSchema = struct(
  `${CORE}.PodSecurityContext`,
  'Rights of all containers of a pod.',
  {
    seLinuxOptions: optionalStruct(seLinuxOptions, 'SELinux label.'),
    windowsOptions: optionalStruct(windowsOptions, 'Settings for Windows.'),
    runAsUser: pointer(int64('User id to run as.')),
    runAsGroup: pointer(int64('Group id to run as.')),
    runAsNonRoot: pointer(bool('Whether running as root is refused.')),
    supplementalGroups: listOf({ kind: 'integer', format: 'int64' }, 'Further group ids.', {}),
    supplementalGroupsPolicy: pointer(text('How they join those of the image: Merge or Strict.')),
    fsGroup: pointer(int64('Group id that owns volumes.')),
    sysctls: list(sysctl, 'Kernel parameters.'),
    fsGroupChangePolicy: pointer(text('When volumes change owner: Always or OnRootMismatch.')),
    seccompProfile: optionalStruct(seccompProfile, 'System calls allowed.'),
    appArmorProfile: optionalStruct(appArmorProfile, 'AppArmor profile.'),
    seLinuxChangePolicy: pointer(text('How volumes get their label: MountOption or Recursive.')),
  },
);

const containerFields = {
  name: required(text('Name of the container, unique in the pod.')),
  image: text('Image it runs.'),
  command: textList('Program, in place of that of the image.'),
  args: textList('Arguments, in place of those of the image.'),
  workingDir: text('Directory it starts in.'),
  ports: keyedList(containerPort, 'Ports it opens.', {
    mergeKey: 'containerPort',
    mapKeys: ['containerPort', 'protocol'],
  }),
  envFrom: list(envFromSource, 'Where sets of variables come from.'),
  env: keyedList(envVar, 'Variables, one by one.', { mergeKey: 'name' }),
  resources: embedded(resourceRequirements, 'Resources it needs.'),
  resizePolicy: list(resizePolicy, 'What a change of resources asks of it.'),
  restartPolicy: pointer(text('Always makes an init container a sidecar.')),
  restartPolicyRules: list(restartRule, 'What to do when it ends, before the policy is asked.'),
  volumeMounts: keyedList(volumeMount, 'Volumes in its file system.', { mergeKey: 'mountPath' }),
  volumeDevices: keyedList(volumeDevice, 'Raw devices it uses.', { mergeKey: 'devicePath' }),
  livenessProbe: optionalStruct(probe, 'Restarts it on failure.'),
  readinessProbe: optionalStruct(probe, 'Marks the container not ready on failure.'),
  startupProbe: optionalStruct(probe, 'Holds the other checks until it has started.'),
  lifecycle: optionalStruct(lifecycle, 'What to do as it starts and before it stops.'),
  terminationMessagePath: text('File its last words are read from.'),
  terminationMessagePolicy: text('Where they come from: File or FallbackToLogsOnError.'),
  imagePullPolicy: oneOf('v1.PullPolicy', ['Always', 'IfNotPresent', 'Never'], 'When the image is fetched.'),
  securityContext: optionalStruct(securityContext, 'Its rights.'),
  stdin: bool('Whether it has a standard input.'),
  stdinOnce: bool('Whether that closes after the first client.'),
  tty: bool('Whether it has a terminal.'),
};

export const container: StructSchema = struct(`${CORE}.Container`, 'A container of a pod.', containerFields);

export const ephemeralContainer: StructSchema = struct(
  `${CORE}.EphemeralContainer`,
  'A container added to a running pod, to look into it.',
  { ...containerFields, targetContainerName: text('Container that it shares the process namespace with.') },
);
