/** Volumes of a pod (pkg/apis/core/validation/validation.go: ValidateVolumes, ValidateVolumeMounts). */

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
import { labelErrors } from '../../kubernetes/validate-metadata.ts';
import type { DownwardAPIVolumeFile, KeyToPath, Volume, VolumeMount, VolumeProjection } from '../types.ts';
import { VOLUME_FIELDS, validateFieldReference, validateResourceReference } from './validate-environment.ts';

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
