/**
 * Environment and volumes of a pod, both with references to fields, ConfigMaps and Secrets
 * (pkg/apis/core/validation/validation.go: ValidateEnv, ValidateVolumes, ValidateVolumeMounts).
 */

import {
  duplicate,
  forbiddenField,
  invalidValue,
  notFoundValue,
  notSupported,
  required,
} from '../../kubernetes/causes.ts';
import { parseQuantity } from '../../kubernetes/quantity.ts';
import type { Cause } from '../../kubernetes/status.ts';
import {
  configKeyErrors,
  envVarErrors,
  labelErrors,
  qualifiedNameErrors,
  subdomainErrors,
} from '../../kubernetes/validate-metadata.ts';
import type {
  DownwardAPIVolumeFile,
  EnvFromSource,
  EnvVar,
  KeyToPath,
  ObjectFieldSelector,
  ResourceFieldSelector,
  Volume,
  VolumeMount,
  VolumeProjection,
} from '../types.ts';

const ENV_FIELDS = [
  'metadata.name',
  'metadata.namespace',
  'metadata.uid',
  'spec.nodeName',
  'spec.serviceAccountName',
  'status.hostIP',
  'status.hostIPs',
  'status.podIP',
  'status.podIPs',
];
export const VOLUME_FIELDS = [
  'metadata.annotations',
  'metadata.labels',
  'metadata.name',
  'metadata.namespace',
  'metadata.uid',
];
const KNOWN_FIELDS = new Set([
  ...ENV_FIELDS,
  ...VOLUME_FIELDS,
  'spec.restartPolicy',
  'spec.schedulerName',
  'status.phase',
]);

export function validateFieldReference(ref: ObjectFieldSelector, field: string, supported: readonly string[]): Cause[] {
  const { apiVersion = '', fieldPath = '' } = ref;
  if (apiVersion === '') return [required(`${field}.apiVersion`)];
  if (fieldPath === '') return [required(`${field}.fieldPath`)];
  const [, path = fieldPath, subscript] = /^([^[]*)\['(.*)'\]$/.exec(fieldPath) ?? [];
  if (!KNOWN_FIELDS.has(path)) {
    const why = `error converting fieldPath: field label not supported: ${fieldPath}`;
    return [invalidValue(`${field}.fieldPath`, fieldPath, why)];
  }
  if (subscript === undefined) {
    return supported.includes(path) ? [] : [notSupported(`${field}.fieldPath`, path, supported)];
  }
  if (path !== 'metadata.annotations' && path !== 'metadata.labels') {
    return [invalidValue(field, path, 'does not support subscript')];
  }
  const key = path === 'metadata.labels' ? subscript : subscript.toLowerCase();
  return qualifiedNameErrors(key).map((error) => invalidValue(field, key, error));
}

const RESOURCES = [
  'limits.cpu',
  'limits.ephemeral-storage',
  'limits.memory',
  'requests.cpu',
  'requests.ephemeral-storage',
  'requests.memory',
];
const CPU_DIVISORS = ['1m', '1'];
const BYTE_DIVISORS = ['1', ...[...'kMGTPE'].flatMap((unit) => [`1${unit}`, `1${unit.toUpperCase()}i`])];

export function validateResourceReference(ref: ResourceFieldSelector, field: string, isVolume = false): Cause[] {
  const { containerName = '', resource = '', divisor = '0' } = ref;
  const causes: Cause[] = [];
  const isHugePage = /^(limits|requests)\.hugepages-/.test(resource);
  if (isVolume && containerName === '') causes.push(required(`${field}.containerName`));
  else if (resource === '') causes.push(required(`${field}.resource`));
  else if (!RESOURCES.includes(resource) && !isHugePage)
    causes.push(notSupported(`${field}.resource`, resource, RESOURCES));
  if (divisor === '0') return causes;
  const isCpu = resource.endsWith('.cpu');
  const divisors = isCpu ? CPU_DIVISORS : BYTE_DIVISORS;
  if (!divisors.includes(divisor) && (isHugePage || RESOURCES.includes(resource))) {
    const kind = isCpu ? 'cpu' : resource.slice(resource.indexOf('.') + 1);
    const why = `only divisor's values ${divisors.join(isCpu ? ' and ' : ', ')} are supported with the ${kind} resource`;
    causes.push(invalidValue(`${field}.divisor`, resource, why));
  }
  return causes;
}

function validateKeyReference({ name = '', key = '' }: { name?: string; key?: string }, field: string): Cause[] {
  return [
    ...subdomainErrors(name).map((error) => invalidValue(`${field}.name`, name, error)),
    ...(key === ''
      ? [required(`${field}.key`)]
      : configKeyErrors(key).map((error) => invalidValue(`${field}.key`, key, error))),
  ];
}

const ONE_SOURCE = 'must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`';
const SEVERAL = 'may not have more than one field specified at a time';

function validateVariableSource({ value = '', valueFrom }: EnvVar, field: string): Cause[] {
  if (valueFrom === undefined) return [];
  const { fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef } = valueFrom;
  const causes = [
    ...(fieldRef === undefined ? [] : validateFieldReference(fieldRef, `${field}.fieldRef`, ENV_FIELDS)),
    ...(resourceFieldRef === undefined ? [] : validateResourceReference(resourceFieldRef, `${field}.resourceFieldRef`)),
    ...(configMapKeyRef === undefined ? [] : validateKeyReference(configMapKeyRef, `${field}.configMapKeyRef`)),
    ...(secretKeyRef === undefined ? [] : validateKeyReference(secretKeyRef, `${field}.secretKeyRef`)),
  ];
  const count = Object.values(valueFrom).filter((source) => source !== undefined).length;
  if (count === 0) causes.push(invalidValue(field, '', ONE_SOURCE));
  else if (value !== '') causes.push(invalidValue(field, '', 'may not be specified when `value` is not empty'));
  else if (count > 1) causes.push(invalidValue(field, '', SEVERAL));
  return causes;
}

export function validateEnv(variables: readonly EnvVar[], field: string): Cause[] {
  const causes: Cause[] = [];
  for (const [index, variable] of variables.entries()) {
    const path = `${field}[${index}]`;
    const { name = '' } = variable;
    if (name === '') causes.push(required(`${path}.name`));
    else for (const error of envVarErrors(name)) causes.push(invalidValue(`${path}.name`, name, error));
    causes.push(...validateVariableSource(variable, `${path}.valueFrom`));
  }
  return causes;
}

export function validateEnvFrom(sources: readonly EnvFromSource[], field: string): Cause[] {
  const causes: Cause[] = [];
  for (const [index, { prefix = '', configMapRef, secretRef }] of sources.entries()) {
    const path = `${field}[${index}]`;
    if (prefix !== '') {
      for (const error of envVarErrors(prefix)) causes.push(invalidValue(`${path}.prefix`, prefix, error));
    }
    for (const [name, ref] of Object.entries({ configMapRef, secretRef })) {
      if (ref === undefined) continue;
      for (const error of subdomainErrors(ref.name ?? '')) {
        causes.push(invalidValue(`${path}.${name}.name`, ref.name ?? '', error));
      }
    }
    // Upstream reports these two at the list.
    if (configMapRef === undefined && secretRef === undefined) {
      causes.push(invalidValue(field, '', 'must specify one of: `configMapRef` or `secretRef`'));
    } else if (configMapRef !== undefined && secretRef !== undefined) causes.push(invalidValue(field, '', SEVERAL));
  }
  return causes;
}

const FILE_MODE_MAX = 0o777;
const TOKEN_SECONDS_MIN = 600;
const TOKEN_SECONDS_MAX = 2 ** 32;
const FILE_MODE_TEXT = 'must be a number between 0 and 0777 (octal), both inclusive';

const HOST_PATH_TYPES = [
  '',
  'BlockDevice',
  'CharDevice',
  'Directory',
  'DirectoryOrCreate',
  'File',
  'FileOrCreate',
  'Socket',
];

const validateMode = (field: string, mode: number | undefined): Cause[] =>
  mode === undefined || (mode >= 0 && mode <= FILE_MODE_MAX) ? [] : [invalidValue(field, mode, FILE_MODE_TEXT)];

export const validateBacksteps = (field: string, path: string): Cause[] =>
  path.split('/').includes('..') ? [invalidValue(field, path, "must not contain '..'")] : [];

/** A path below a directory. */
export const validateDescendingPath = (field: string, path: string): Cause[] => [
  ...(path.startsWith('/') ? [invalidValue(field, path, 'must be a relative path')] : []),
  ...validateBacksteps(field, path),
];

/** The same for a file of a volume, where names that start with two dots are those of the kubelet. */
const validateFilePath = (field: string, path: string): Cause[] => [
  ...validateDescendingPath(field, path),
  ...(path.startsWith('..') && !path.startsWith('../../kube/')
    ? [invalidValue(field, path, "must not start with '..'")]
    : []),
];

const validateItems = (items: readonly KeyToPath[], field: string): Cause[] =>
  items.flatMap(({ key = '', path = '', mode }, index) => {
    const at = `${field}.items[${index}]`;
    return [
      ...(key === '' ? [required(`${at}.key`)] : []),
      ...(path === '' ? [required(`${at}.path`)] : []),
      ...validateFilePath(`${at}.path`, path),
      ...validateMode(`${at}.mode`, mode),
    ];
  });

const validateDownwardItem = (
  { path = '', mode, fieldRef, resourceFieldRef }: DownwardAPIVolumeFile,
  field: string,
): Cause[] => [
  ...(path === '' ? [required(`${field}.path`)] : []),
  ...validateFilePath(`${field}.path`, path),
  ...(fieldRef === undefined ? [] : validateFieldReference(fieldRef, `${field}.fieldRef`, VOLUME_FIELDS)),
  ...(fieldRef !== undefined || resourceFieldRef === undefined
    ? []
    : validateResourceReference(resourceFieldRef, `${field}.resourceFieldRef`, true)),
  ...(fieldRef !== undefined && resourceFieldRef !== undefined
    ? [invalidValue(field, 'resource', 'fieldRef and resourceFieldRef can not be specified simultaneously')]
    : []),
  ...(fieldRef === undefined && resourceFieldRef === undefined
    ? [required(field, 'one of fieldRef and resourceFieldRef is required')]
    : []),
  ...validateMode(`${field}.mode`, mode),
];

/** `field`: the path of the volume itself, where upstream reports the path of a token. */
/** How long a token of an account may be asked for, also by a TokenRequest and a CSIDriver. */
export function validateTokenSeconds(field: string, seconds: number): Cause[] {
  if (seconds >= TOKEN_SECONDS_MIN && seconds <= TOKEN_SECONDS_MAX) return [];
  const bound = seconds < TOKEN_SECONDS_MIN ? 'less than 10 minutes' : 'larger than 2^32 seconds';
  return [invalidValue(field, seconds, `may not specify a duration ${bound}`)];
}

function validateToken(
  token: NonNullable<VolumeProjection['serviceAccountToken']>,
  at: string,
  field: string,
): Cause[] {
  const { expirationSeconds: seconds = TOKEN_SECONDS_MIN, path = '' } = token;
  const causes = validateTokenSeconds(`${at}.expirationSeconds`, seconds);
  return [...causes, ...(path === '' ? [required(`${field}.path`)] : validateFilePath(`${field}.path`, path))];
}

function validateProjected(sources: readonly VolumeProjection[], field: string): Cause[] {
  const causes: Cause[] = [];
  const paths = new Set<string>();
  for (const [index, source] of sources.entries()) {
    const at = `${field}.sources[${index}]`;
    for (const name of ['secret', 'configMap'] as const) {
      const projection = source[name];
      if (projection === undefined) continue;
      if ((projection.name ?? '') === '') causes.push(required(`${at}.${name}.name`));
      causes.push(...validateItems(projection.items ?? [], `${at}.${name}`));
    }
    for (const item of source.downwardAPI?.items ?? []) {
      causes.push(...validateDownwardItem(item, `${at}.downwardAPI`));
    }
    const { serviceAccountToken: token } = source;
    if (token !== undefined) causes.push(...validateToken(token, `${at}.serviceAccountToken`, field));
    if (Object.keys(source).length > 1) causes.push(forbiddenField(at, 'may not specify more than 1 volume type'));
    for (const { path = '' } of [
      ...(source.secret?.items ?? []),
      ...(source.configMap?.items ?? []),
      ...(source.downwardAPI?.items ?? []),
    ]) {
      if (path !== '' && paths.has(path)) causes.push(invalidValue(field, path, 'conflicting duplicate paths'));
      paths.add(path);
    }
  }
  return causes;
}

export function validateHostPath({ path = '', type = '' }: { path?: string; type?: string }, field: string): Cause[] {
  if (path === '') return [required(`${field}.path`)];
  const causes = validateBacksteps(`${field}.path`, path);
  if (!HOST_PATH_TYPES.includes(type)) causes.push(notSupported(`${field}.type`, type, HOST_PATH_TYPES));
  return causes;
}

type Validator = (volume: Volume, field: string) => Cause[];

/**
 * In upstream's order: of several sources the first one is validated. The sources of other drivers are stored, and not
 * validated, because nothing here mounts them.
 */
const SOURCES: Readonly<Record<string, Validator>> = {
  emptyDir({ emptyDir }, field) {
    const { sizeLimit } = emptyDir ?? {};
    if (sizeLimit === undefined) return [];
    const parsed = parseQuantity(String(sizeLimit));
    return parsed.kind === 'malformed' || parsed.quantity.nanos < 0n
      ? [forbiddenField(`${field}.sizeLimit`, 'SizeLimit field must be a valid resource quantity')]
      : [];
  },
  hostPath: ({ hostPath = {} }, field) => validateHostPath(hostPath, field),
  secret: ({ secret = {} }, field) => [
    ...((secret.secretName ?? '') === '' ? [required(`${field}.secretName`)] : []),
    ...validateMode(`${field}.defaultMode`, secret.defaultMode),
    ...validateItems(secret.items ?? [], field),
  ],
  persistentVolumeClaim: ({ persistentVolumeClaim: claim }, field) =>
    (claim?.claimName ?? '') === '' ? [required(`${field}.claimName`)] : [],
  downwardAPI: ({ downwardAPI = {} }, field) => [
    ...validateMode(`${field}.defaultMode`, downwardAPI.defaultMode),
    // Upstream reports the items at the source.
    ...(downwardAPI.items ?? []).flatMap((item) => validateDownwardItem(item, field)),
  ],
  configMap: ({ configMap = {} }, field) => [
    ...((configMap.name ?? '') === '' ? [required(`${field}.name`)] : []),
    ...validateMode(`${field}.defaultMode`, configMap.defaultMode),
    ...validateItems(configMap.items ?? [], field),
  ],
  projected: ({ projected = {} }, field) => [
    ...validateMode(`${field}.defaultMode`, projected.defaultMode),
    ...validateProjected(projected.sources ?? [], field),
  ],
};

function validateSource(volume: Volume, field: string): Cause[] {
  const { name: _name, ...given } = volume;
  const [first, ...more] = [
    ...Object.keys(SOURCES).filter((source) => Object.hasOwn(given, source)),
    ...Object.keys(given).filter((source) => !Object.hasOwn(SOURCES, source)),
  ];
  if (first === undefined) return [required(field, 'must specify a volume type')];
  return [
    ...(Object.hasOwn(SOURCES, first) ? (SOURCES[first]?.(volume, `${field}.${first}`) ?? []) : []),
    ...more.map((name) => forbiddenField(`${field}.${name}`, 'may not specify more than 1 volume type')),
  ];
}

/** Causes, and the names of the volumes without a fault: a mount of another one is "not found", as upstream. */
export function validateVolumes(volumes: readonly Volume[], field: string): { causes: Cause[]; names: Set<string> } {
  const causes: Cause[] = [];
  const names = new Set<string>();
  for (const [index, volume] of volumes.entries()) {
    const path = `${field}[${index}]`;
    const { name = '' } = volume;
    const found = validateSource(volume, path);
    if (name === '') found.push(required(`${path}.name`));
    else for (const error of labelErrors(name)) found.push(invalidValue(`${path}.name`, name, error));
    if (names.has(name)) found.push(duplicate(`${path}.name`, name));
    if (found.length === 0) names.add(name);
    causes.push(...found);
  }
  return { causes, names };
}

const PROPAGATIONS = ['Bidirectional', 'HostToContainer', 'None'];
const RECURSIVE = ['Disabled', 'Enabled', 'IfPossible'];

function validatePropagation({ mountPropagation: mode }: VolumeMount, isPrivileged: boolean, field: string): Cause[] {
  if (mode === undefined) return [];
  if (!PROPAGATIONS.includes(mode)) return [notSupported(field, mode, PROPAGATIONS)];
  return mode !== 'Bidirectional' || isPrivileged
    ? []
    : [forbiddenField(field, 'Bidirectional mount propagation is available only to privileged containers')];
}

function validateRecursive(
  { recursiveReadOnly: mode, readOnly, mountPropagation }: VolumeMount,
  field: string,
): Cause[] {
  if (mode === undefined || mode === 'Disabled') return [];
  if (!RECURSIVE.includes(mode)) return [notSupported(field, mode, RECURSIVE)];
  const causes = readOnly === true ? [] : [forbiddenField(field, 'may only be specified when readOnly is true')];
  if ((mountPropagation ?? 'None') === 'None') return causes;
  return [...causes, forbiddenField(field, 'may only be specified when mountPropagation is None or not specified')];
}

export function validateMounts(
  mounts: readonly VolumeMount[],
  { volumes, isPrivileged, field }: { readonly volumes: ReadonlySet<string>; isPrivileged: boolean; field: string },
): Cause[] {
  const causes: Cause[] = [];
  const paths = new Set<string>();
  for (const [index, mount] of mounts.entries()) {
    const path = `${field}[${index}]`;
    const { name = '', mountPath = '', subPath = '', subPathExpr = '' } = mount;
    if (name === '') causes.push(required(`${path}.name`));
    if (!volumes.has(name)) causes.push(notFoundValue(`${path}.name`, name));
    if (mountPath === '') causes.push(required(`${path}.mountPath`));
    if (paths.has(mountPath)) causes.push(invalidValue(`${path}.mountPath`, mountPath, 'must be unique'));
    paths.add(mountPath);
    // Upstream reports these paths at the list.
    if (subPath !== '') causes.push(...validateDescendingPath(`${field}.subPath`, subPath));
    if (subPathExpr !== '') {
      if (subPath !== '') {
        const why = 'subPathExpr and subPath are mutually exclusive';
        causes.push(invalidValue(`${path}.subPathExpr`, subPathExpr, why));
      }
      causes.push(...validateDescendingPath(`${field}.subPathExpr`, subPathExpr));
    }
    causes.push(...validatePropagation(mount, isPrivileged, `${field}.mountPropagation`));
    causes.push(...validateRecursive(mount, `${field}.recursiveReadOnly`));
  }
  return causes;
}
