/** Default values of the fields of a pod, and of a pod template (pkg/apis/core/v1/defaults.go). */

import { defined } from '../../defined.ts';
import { tidyMetadata, withoutEmpty, withoutNulls } from '../../kubernetes/normal-form.ts';
import { canonicalQuantity } from '../../kubernetes/quantity.ts';
import type {
  Container,
  ContainerPort,
  DownwardAPIVolumeFile,
  EnvVar,
  KubeObject,
  LifecycleHandler,
  ObjectFieldSelector,
  PodSpec,
  PodTemplateSpec,
  Probe,
  ResourceList,
  ResourceRequirements,
  Volume,
  VolumeProjection,
} from '../types.ts';

const DEFAULT_GRACE_SECONDS = 30;
/** Octal 0644. */
const DEFAULT_FILE_MODE = 420;
/** Validity of a projected service account token. */
const DEFAULT_TOKEN_SECONDS = 3_600;

/** True for an image without a tag or digest, or with the tag `latest`. Its default imagePullPolicy is Always. */
function isLatestImage(image: string): boolean {
  if (image.includes('@')) return false;
  const afterHost = image.slice(image.lastIndexOf('/') + 1);
  const colon = afterHost.indexOf(':');
  return colon < 0 || afterHost.slice(colon + 1) === 'latest';
}

/** When the image of a container is pulled. Source: SetDefaults_Container in upstream pkg/apis/core/v1/defaults.go. */
export const pullPolicyOf = ({ image, imagePullPolicy }: Container): NonNullable<Container['imagePullPolicy']> =>
  imagePullPolicy || (isLatestImage(image ?? '') ? 'Always' : 'IfNotPresent');

function withFieldVersion<T extends { fieldRef?: ObjectFieldSelector }>(holder: T): T {
  const { fieldRef } = holder;
  return fieldRef === undefined ? holder : { ...holder, fieldRef: { apiVersion: 'v1', ...fieldRef } };
}

function defaultHandler<T extends LifecycleHandler>(handler: T): T {
  const { httpGet } = handler;
  if (httpGet === undefined) return handler;
  return { ...handler, httpGet: { ...httpGet, path: httpGet.path || '/', scheme: httpGet.scheme || 'HTTP' } };
}

const PROBE_DEFAULTS = { timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3 };

function defaultProbe(given: Probe): Probe {
  const probe = defaultHandler(withoutEmpty(given, 'initialDelaySeconds', ...Object.keys(PROBE_DEFAULTS)));
  const { grpc } = probe;
  return { ...PROBE_DEFAULTS, ...probe, ...(grpc === undefined ? {} : { grpc: { service: '', ...grpc } }) };
}

const canonicalAmounts = (amounts: ResourceList = {}): ResourceList =>
  Object.fromEntries(Object.entries(amounts).map(([name, value]) => [name, canonicalQuantity(value)]));

/** Quantities in canonical form. */
function defaultResources(resources: ResourceRequirements = {}): ResourceRequirements {
  const limits = canonicalAmounts(resources.limits);
  const requests = canonicalAmounts(resources.requests);
  return withoutEmpty({ ...resources, limits, requests }, 'limits', 'requests', 'claims');
}

/** A limit without a request is also the request. */
const withRequests = (resources: ResourceRequirements): ResourceRequirements =>
  resources.limits === undefined
    ? resources
    : { ...resources, requests: { ...resources.limits, ...resources.requests } };

const withContainerRequests = (containers: readonly Container[] | undefined): Container[] | undefined =>
  containers?.map((container) =>
    container.resources === undefined ? container : { ...container, resources: withRequests(container.resources) },
  );

const CONTAINER_PROBES = ['livenessProbe', 'readinessProbe', 'startupProbe'] as const;
const HOOKS = ['postStart', 'preStop'] as const;

const defaultPort = (port: ContainerPort, hostNetwork: boolean): ContainerPort => ({
  ...withoutEmpty(port, 'name', 'hostPort', 'hostIP'),
  ...(hostNetwork && (port.hostPort ?? 0) === 0 ? defined({ hostPort: port.containerPort }) : {}),
  protocol: port.protocol || 'TCP',
});

function defaultVariable(variable: EnvVar): EnvVar {
  const tidy = withoutEmpty(variable, 'value');
  return tidy.valueFrom === undefined ? tidy : { ...tidy, valueFrom: withFieldVersion(tidy.valueFrom) };
}

function defaultContainer(given: Container, hostNetwork: boolean): Container {
  const container = { ...given };
  if (given.ports !== undefined) container.ports = given.ports.map((port) => defaultPort(port, hostNetwork));
  if (given.env !== undefined) container.env = given.env.map(defaultVariable);
  for (const name of CONTAINER_PROBES) {
    const probe = given[name];
    if (probe !== undefined) container[name] = defaultProbe(probe);
  }
  if (given.lifecycle !== undefined) {
    container.lifecycle = { ...given.lifecycle };
    for (const hook of HOOKS) {
      const handler = given.lifecycle[hook];
      if (handler !== undefined) container.lifecycle[hook] = defaultHandler(handler);
    }
  }
  return withoutEmpty(
    {
      ...container,
      imagePullPolicy: pullPolicyOf(given),
      resources: defaultResources(given.resources),
      terminationMessagePath: given.terminationMessagePath || '/dev/termination-log',
      terminationMessagePolicy: given.terminationMessagePolicy || 'File',
    },
    'image',
    'command',
    'args',
    'workingDir',
    'ports',
    'env',
    'envFrom',
    'volumeMounts',
    'volumeDevices',
    'stdin',
    'stdinOnce',
    'tty',
  );
}

function defaultProjectedSource(source: VolumeProjection): VolumeProjection {
  const { serviceAccountToken: token, downwardAPI } = source;
  return {
    ...source,
    ...(token === undefined ? {} : { serviceAccountToken: { expirationSeconds: DEFAULT_TOKEN_SECONDS, ...token } }),
    ...(downwardAPI === undefined ? {} : { downwardAPI: withFieldVersions(downwardAPI) }),
  };
}

const withFieldVersions = <T extends { items?: DownwardAPIVolumeFile[] }>(source: T): T => ({
  ...source,
  items: (source.items ?? []).map(withFieldVersion),
});

const MODE = { defaultMode: DEFAULT_FILE_MODE };

function defaultVolume(given: Volume): Volume {
  if (Object.keys(given).every((key) => key === 'name')) return { ...given, emptyDir: {} };
  const volume = { ...given };
  const { configMap, downwardAPI, hostPath, projected, secret } = given;
  if (configMap !== undefined) volume.configMap = { ...MODE, ...configMap };
  if (secret !== undefined) volume.secret = { ...MODE, ...secret };
  if (downwardAPI !== undefined) volume.downwardAPI = withFieldVersions({ ...MODE, ...downwardAPI });
  if (projected !== undefined) {
    volume.projected = { ...MODE, ...projected, sources: (projected.sources ?? []).map(defaultProjectedSource) };
  }
  if (hostPath !== undefined) volume.hostPath = { type: '', ...hostPath };
  return volume;
}

/** A pod's spec as it is stored. Admission, not this function, sets tolerations and priority. */
export function defaultPodSpec(given: PodSpec | undefined): PodSpec {
  const spec = defaultTemplateSpec(given);
  return {
    ...spec,
    ...defined({
      containers: withContainerRequests(spec.containers),
      initContainers: withContainerRequests(spec.initContainers),
      resources: spec.resources && withRequests(spec.resources),
    }),
    enableServiceLinks: spec.enableServiceLinks ?? true,
  };
}

/** The spec of a template as it is stored. Upstream sets some defaults only in a pod (SetDefaults_Pod). */
export function defaultTemplateSpec(given: PodSpec | undefined): PodSpec {
  const spec = withoutNulls(given ?? {});
  const hostNetwork = spec.hostNetwork === true;
  const account = spec.serviceAccountName || spec.serviceAccount;
  const withDefaults = (containers: readonly Container[] | undefined): Container[] | undefined =>
    containers?.map((container) => defaultContainer(container, hostNetwork));
  return withoutEmpty(
    {
      ...spec,
      ...defined({
        containers: withDefaults(spec.containers),
        initContainers: withDefaults(spec.initContainers),
        volumes: spec.volumes?.map(defaultVolume),
        resources: spec.resources && defaultResources(spec.resources),
      }),
      ...(account ? { serviceAccountName: account, serviceAccount: account } : {}),
      restartPolicy: spec.restartPolicy || 'Always',
      dnsPolicy: spec.dnsPolicy || 'ClusterFirst',
      schedulerName: spec.schedulerName || 'default-scheduler',
      securityContext: spec.securityContext ?? {},
      terminationGracePeriodSeconds: spec.terminationGracePeriodSeconds ?? DEFAULT_GRACE_SECONDS,
    },
    'initContainers',
    'ephemeralContainers',
    'volumes',
    'nodeSelector',
    'nodeName',
    'hostNetwork',
    'hostPID',
    'hostIPC',
    'hostname',
    'subdomain',
    'imagePullSecrets',
    'tolerations',
    'hostAliases',
    'priorityClassName',
    'readinessGates',
    'topologySpreadConstraints',
    'schedulingGates',
    'resourceClaims',
    'serviceAccountName',
    'serviceAccount',
    'overhead',
  );
}

export const defaultTemplate = (template: PodTemplateSpec = {}): PodTemplateSpec => ({
  ...template,
  metadata: { creationTimestamp: null, ...tidyMetadata(template.metadata ?? {}) },
  spec: defaultTemplateSpec(template.spec),
});

/** Labels of the template, for an object without labels. Jobs and ReplicationControllers have this default. */
export function withTemplateLabels<T extends KubeObject>(object: T, template: PodTemplateSpec = {}): T {
  const labels = template.metadata?.labels ?? {};
  if (Object.keys(object.metadata.labels ?? {}).length > 0 || Object.keys(labels).length === 0) return object;
  return { ...object, metadata: { ...object.metadata, labels } };
}
