/** What an API server fills in where a pod says nothing (pkg/apis/core/v1/defaults.go). */

import { isRecord, type Json, recordOf, recordsOf, textOf, withoutEmpty, withoutNulls } from '../normal-form.ts';
import { canonicalQuantity } from '../quantity.ts';

const DEFAULT_GRACE_SECONDS = 30;
/** Octal 0644. */
const DEFAULT_FILE_MODE = 420;
const DEFAULT_TOKEN_SECONDS = 3_600;

/** Sources with a file mode for what they put into the volume. */
const MODED_SOURCES = ['configMap', 'secret', 'downwardAPI', 'projected'];

/** `app` and `app:latest` may change behind their name; `app:1` and `app@sha256:…` do not. */
function isLatestImage(image: string): boolean {
  if (image.includes('@')) return false;
  const afterHost = image.slice(image.lastIndexOf('/') + 1);
  const colon = afterHost.indexOf(':');
  return colon < 0 || afterHost.slice(colon + 1) === 'latest';
}

function withFieldVersion(holder: Json): Json {
  const fieldRef = holder['fieldRef'];
  return isRecord(fieldRef) ? { ...holder, fieldRef: { apiVersion: 'v1', ...fieldRef } } : holder;
}

function defaultHandler(handler: Json): Json {
  const httpGet = handler['httpGet'];
  if (!isRecord(httpGet)) return handler;
  return {
    ...handler,
    httpGet: { ...httpGet, path: textOf(httpGet['path']) || '/', scheme: textOf(httpGet['scheme']) || 'HTTP' },
  };
}

const PROBE_DEFAULTS = { timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3 };

function defaultProbe(given: Json): Json {
  const probe = defaultHandler(withoutEmpty(given, 'initialDelaySeconds', ...Object.keys(PROBE_DEFAULTS)));
  const grpc = probe['grpc'];
  return {
    ...PROBE_DEFAULTS,
    ...probe,
    ...(isRecord(grpc) ? { grpc: { service: '', ...grpc } } : {}),
  };
}

const canonicalAmounts = (amounts: Json): Json =>
  Object.fromEntries(
    Object.entries(amounts).map(([name, value]) => [
      name,
      typeof value === 'string' || typeof value === 'number' ? canonicalQuantity(value) : value,
    ]),
  );

/** Quantities in canonical form; a limit without a request asks for as much. */
function defaultResources(given: unknown, requestsFromLimits: boolean): Json {
  const resources = recordOf(given);
  const limits = canonicalAmounts(recordOf(resources['limits']));
  const requests = canonicalAmounts(recordOf(resources['requests']));
  return withoutEmpty(
    { ...resources, limits, requests: requestsFromLimits ? { ...limits, ...requests } : requests },
    'limits',
    'requests',
    'claims',
  );
}

const CONTAINER_PROBES = ['livenessProbe', 'readinessProbe', 'startupProbe'] as const;

function defaultContainer(given: Json, hostNetwork: boolean): Json {
  const container = { ...given };
  if (Array.isArray(given['ports'])) {
    container['ports'] = recordsOf(given['ports']).map((port) => ({
      ...withoutEmpty(port, 'name', 'hostPort', 'hostIP'),
      ...(hostNetwork && (port['hostPort'] ?? 0) === 0 ? { hostPort: port['containerPort'] } : {}),
      protocol: textOf(port['protocol']) || 'TCP',
    }));
  }
  if (Array.isArray(given['env'])) {
    container['env'] = recordsOf(given['env']).map((variable) => {
      const tidy = withoutEmpty(variable, 'value');
      return isRecord(tidy['valueFrom']) ? { ...tidy, valueFrom: withFieldVersion(tidy['valueFrom']) } : tidy;
    });
  }
  for (const name of CONTAINER_PROBES) {
    const probe = given[name];
    if (isRecord(probe)) container[name] = defaultProbe(probe);
  }
  const lifecycle = given['lifecycle'];
  if (isRecord(lifecycle)) {
    container['lifecycle'] = Object.fromEntries(
      Object.entries(lifecycle).map(([hook, handler]) => [hook, isRecord(handler) ? defaultHandler(handler) : handler]),
    );
  }
  return withoutEmpty(
    {
      ...container,
      imagePullPolicy:
        textOf(given['imagePullPolicy']) || (isLatestImage(textOf(given['image'])) ? 'Always' : 'IfNotPresent'),
      resources: defaultResources(given['resources'], true),
      terminationMessagePath: textOf(given['terminationMessagePath']) || '/dev/termination-log',
      terminationMessagePolicy: textOf(given['terminationMessagePolicy']) || 'File',
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

function defaultProjected(source: Json): Json {
  const sources = recordsOf(source['sources']).map((each) => {
    const token = each['serviceAccountToken'];
    const downward = each['downwardAPI'];
    return {
      ...each,
      ...(isRecord(token) ? { serviceAccountToken: { expirationSeconds: DEFAULT_TOKEN_SECONDS, ...token } } : {}),
      ...(isRecord(downward)
        ? { downwardAPI: { ...downward, items: recordsOf(downward['items']).map(withFieldVersion) } }
        : {}),
    };
  });
  return { ...source, sources };
}

function defaultVolume(given: Json): Json {
  const volume = { ...given };
  if (Object.keys(given).every((key) => key === 'name')) return { ...volume, emptyDir: {} };
  for (const name of MODED_SOURCES) {
    const source = given[name];
    if (!isRecord(source)) continue;
    const moded = { defaultMode: DEFAULT_FILE_MODE, ...source };
    if (name === 'projected') volume[name] = defaultProjected(moded);
    else if (name === 'downwardAPI') {
      volume[name] = { ...moded, items: recordsOf(source['items']).map(withFieldVersion) };
    } else volume[name] = moded;
  }
  const hostPath = given['hostPath'];
  if (isRecord(hostPath)) volume['hostPath'] = { type: '', ...hostPath };
  return volume;
}

/** A pod's spec as it is stored. Tolerations and priority are admission's, not defaults'. */
export function defaultPodSpec(given: unknown): Json {
  const spec = withoutNulls(recordOf(given));
  const hostNetwork = spec['hostNetwork'] === true;
  const account = textOf(spec['serviceAccountName']) || textOf(spec['serviceAccount']);
  const podResources = spec['resources'];
  const containers = (field: string): Json =>
    Array.isArray(spec[field])
      ? { [field]: recordsOf(spec[field]).map((container) => defaultContainer(container, hostNetwork)) }
      : {};
  return withoutEmpty(
    {
      ...spec,
      ...containers('containers'),
      ...containers('initContainers'),
      ...(Array.isArray(spec['volumes']) ? { volumes: recordsOf(spec['volumes']).map(defaultVolume) } : {}),
      ...(isRecord(podResources) ? { resources: defaultResources(podResources, true) } : {}),
      ...(account === '' ? {} : { serviceAccountName: account, serviceAccount: account }),
      restartPolicy: textOf(spec['restartPolicy']) || 'Always',
      dnsPolicy: textOf(spec['dnsPolicy']) || 'ClusterFirst',
      schedulerName: textOf(spec['schedulerName']) || 'default-scheduler',
      securityContext: recordOf(spec['securityContext']),
      terminationGracePeriodSeconds: spec['terminationGracePeriodSeconds'] ?? DEFAULT_GRACE_SECONDS,
      enableServiceLinks: spec['enableServiceLinks'] ?? true,
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
