/** ConfigMap, Secret and ServiceAccount (pkg/apis/core/validation/validation.go). */

import { forbiddenField, IMMUTABLE, invalidValue, required, sameJson } from '../../kubernetes/causes.ts';
import { isJsonObject } from '../../kubernetes/json.ts';
import type { Cause } from '../../kubernetes/status.ts';
import { configKeyErrors, subdomainName, validateObjectMetadata } from '../../kubernetes/validate-metadata.ts';
import type { KubeConfigMap, KubeSecret, KubeServiceAccount } from '../types.ts';

const REDACTED = '<secret contents redacted>';
const FROZEN = 'field is immutable when `immutable` is set';

export const DEFAULT_SECRET_TYPE = 'Opaque';
const ACCOUNT_NAME_ANNOTATION = 'kubernetes.io/service-account.name';

const RULES = { namespaced: true, name: subdomainName };

const validateKeys = (bag: Readonly<Record<string, string>>, field: string): Cause[] =>
  Object.keys(bag)
    .sort()
    .flatMap((key) => configKeyErrors(key).map((error) => invalidValue(`${field}[${key}]`, key, error)));

interface Freezable {
  readonly immutable?: boolean;
}

/** What changed although the stored object is immutable. */
function validateFrozen<T extends Freezable>(next: T, old: T | undefined, ...fields: (keyof T & string)[]): Cause[] {
  if (old?.immutable !== true) return [];
  return ['immutable' as const, ...fields]
    .filter((field) => !sameJson(next[field], old[field]))
    .map((field) => forbiddenField(field, FROZEN));
}

export function validateConfigMap(map: KubeConfigMap, old: KubeConfigMap | undefined): Cause[] {
  const { data = {}, binaryData = {} } = map;
  const duplicates = Object.keys(data)
    .filter((key) => Object.hasOwn(binaryData, key))
    .sort()
    .map((key) => invalidValue(`data[${key}]`, key, 'duplicate of key present in binaryData'));
  return [
    ...validateObjectMetadata(map, old, RULES),
    ...validateFrozen(map, old, 'data', 'binaryData'),
    ...validateKeys(data, 'data'),
    ...duplicates,
    ...validateKeys(binaryData, 'binaryData'),
  ];
}

export function validateSecret(secret: KubeSecret, old: KubeSecret | undefined): Cause[] {
  const { data = {}, type = DEFAULT_SECRET_TYPE } = secret;
  const causes = validateObjectMetadata(secret, old, RULES);
  if (old !== undefined) {
    if (type !== (old.type ?? DEFAULT_SECRET_TYPE)) causes.push(invalidValue('type', type, IMMUTABLE));
    causes.push(...validateFrozen(secret, old, 'data'));
  }
  return [...causes, ...validateKeys(data, 'data'), ...validateByType(secret)];
}

/** Data that a Secret of a certain type must have. Values never occur in the causes. */
function validateByType({ metadata, data = {}, type }: KubeSecret): Cause[] {
  const missing = (...keys: string[]): Cause[] =>
    keys.filter((key) => (data[key] ?? '') === '').map((key) => required(`data[${key}]`));
  const absent = (...keys: string[]): Cause[] =>
    keys.filter((key) => data[key] === undefined).map((key) => required(`data[${key}]`));
  switch (type) {
    case 'kubernetes.io/service-account-token':
      return (metadata.annotations?.[ACCOUNT_NAME_ANNOTATION] ?? '') === ''
        ? [required(`metadata.annotations[${ACCOUNT_NAME_ANNOTATION}]`)]
        : [];
    case 'kubernetes.io/dockercfg':
      return validateJson(data, '.dockercfg');
    case 'kubernetes.io/dockerconfigjson':
      return validateJson(data, '.dockerconfigjson');
    case 'kubernetes.io/basic-auth': {
      const causes = absent('username', 'password');
      return causes.length === 2 ? causes : [];
    }
    case 'kubernetes.io/ssh-auth':
      return missing('ssh-privatekey');
    case 'kubernetes.io/tls':
      return absent('tls.crt', 'tls.key');
    default:
      return [];
  }
}

function validateJson(data: Readonly<Record<string, string>>, key: string): Cause[] {
  const encoded = data[key];
  if (encoded === undefined) return [required(`data[${key}]`)];
  try {
    if (isJsonObject(JSON.parse(Buffer.from(encoded, 'base64').toString('utf8')))) return [];
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  return [invalidValue(`data[${key}]`, REDACTED, 'must be a JSON object')];
}

export const validateServiceAccount = (account: KubeServiceAccount, old: KubeServiceAccount | undefined): Cause[] =>
  validateObjectMetadata(account, old, RULES);
