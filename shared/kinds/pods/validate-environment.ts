/** Environment of containers, and references to fields (pkg/apis/core/validation/validation.go: ValidateEnv). */

import { invalidValue, notSupported, required } from '../../kubernetes/causes.ts';
import type { Cause } from '../../kubernetes/status.ts';
import {
  configKeyErrors,
  envVarErrors,
  qualifiedNameErrors,
  subdomainErrors,
} from '../../kubernetes/validate-metadata.ts';
import type { EnvFromSource, EnvVar, ObjectFieldSelector, ResourceFieldSelector } from '../types.ts';

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

function validateSource({ value = '', valueFrom }: EnvVar, field: string): Cause[] {
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
    causes.push(...validateSource(variable, `${path}.valueFrom`));
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
