/**
 * What a volume of a pod contains. Source: upstream pkg/volume/{configmap,secret,downwardapi,projected,emptydir,
 * hostpath}, pkg/kubelet/token/token_manager.go.
 */

import type { DownwardAPIVolumeFile, KeyToPath, KubePod, Volume, VolumeProjection } from '../../shared/kinds/types.ts';
import { parseQuantity } from '../../shared/kubernetes/quantity.ts';
import type { VolumeFile } from '../ports/pod-volumes.ts';
import { type MachineFacts, podFieldValue, resourceFieldValue } from './pod-fields.ts';
import { notFoundText, type ObjectKind, type ObjectSource } from './pod-objects.ts';

export type VolumeContent =
  /** By path within the volume. */
  | { readonly kind: 'files'; readonly files: ReadonlyMap<string, VolumeFile>; readonly isSecret: boolean }
  | { readonly kind: 'emptyDir'; readonly inMemory: boolean }
  | { readonly kind: 'hostPath'; readonly path: string; readonly type: string }
  | { readonly kind: 'failed'; readonly message: string };

export interface TokenRequest {
  /** '' for the audience of the API. */
  readonly audience: string;
  /** Seconds. */
  readonly lifetimeSeconds: number;
}

export type TokenValue =
  | { readonly kind: 'token'; readonly token: string }
  | { readonly kind: 'failed'; readonly message: string };

export interface VolumeFacts {
  readonly pod: KubePod;
  readonly objects: ObjectSource;
  readonly machine: MachineFacts;
  readonly token: (request: TokenRequest) => TokenValue;
}

const FILE_MODE = 0o644;
/** Readable by its owner only; the ownership of the volume adds the group. */
const OWNED_TOKEN_MODE = 0o600;
const TOKEN_SECONDS = 3_600;
const REFRESH_SHARE = 0.8;
const TOKEN_AGE_MAX_MS = 24 * 3_600_000;

/** The content cannot be read now. The message is that of the event. */
class VolumeError extends Error {
  override readonly name = 'VolumeError';
}

export function volumeContent(volume: Volume, facts: VolumeFacts): VolumeContent {
  try {
    return contentOf(volume, facts);
  } catch (error) {
    if (error instanceof VolumeError) return { kind: 'failed', message: error.message };
    throw error;
  }
}

type Files = Map<string, VolumeFile>;

/** @throws VolumeError */
function contentOf(volume: Volume, facts: VolumeFacts): VolumeContent {
  const { configMap, secret, downwardAPI, projected, emptyDir, hostPath } = volume;
  if (configMap !== undefined) {
    const files = objectFiles(facts, 'configmap', configMap.name, configMap, configMap.defaultMode);
    return { kind: 'files', files, isSecret: false };
  }
  if (secret !== undefined) {
    const files = objectFiles(facts, 'secret', secret.secretName, secret, secret.defaultMode);
    return { kind: 'files', files, isSecret: true };
  }
  if (downwardAPI !== undefined) {
    const files = downwardFiles(facts, downwardAPI.items, downwardAPI.defaultMode);
    return { kind: 'files', files, isSecret: false };
  }
  if (projected !== undefined) {
    return { kind: 'files', files: projectedFiles(facts, projected.sources, projected.defaultMode), isSecret: true };
  }
  if (hostPath !== undefined) return { kind: 'hostPath', path: hostPath.path ?? '', type: hostPath.type ?? '' };
  const source =
    Object.entries(volume).find(([field, value]) => field !== 'name' && value !== undefined)?.[0] ?? 'emptyDir';
  if (source === 'emptyDir') return { kind: 'emptyDir', inMemory: emptyDir?.medium === 'Memory' };
  throw new VolumeError(`volumes of type ${source} are not supported on this node`);
}

/** Limit of an emptyDir; undefined if it has none. Bytes. */
export function sizeLimitBytes({ emptyDir }: Volume): number | undefined {
  const parsed = parseQuantity(String(emptyDir?.sizeLimit ?? ''));
  if (parsed.kind !== 'parsed' || parsed.quantity.nanos <= 0n) return undefined;
  return Number((parsed.quantity.nanos + 999_999_999n) / 1_000_000_000n);
}

/** @throws VolumeError with all faults of all sources */
function projectedFiles(facts: VolumeFacts, sources: readonly VolumeProjection[] = [], mode = FILE_MODE): Files {
  const faults: string[] = [];
  const files: Files = new Map();
  for (const source of sources) {
    try {
      for (const [path, file] of sourceFiles(facts, source, mode)) files.set(path, file);
    } catch (error) {
      if (!(error instanceof VolumeError)) throw error;
      faults.push(error.message);
    }
  }
  if (faults.length > 0) throw new VolumeError(aggregated(faults));
  return files;
}

/** Go's aggregate of errors: each text once, in brackets if there are several. */
function aggregated(faults: readonly string[]): string {
  const texts = [...new Set(faults)];
  return texts.length === 1 ? (texts[0] ?? '') : `[${texts.join(', ')}]`;
}

function sourceFiles(facts: VolumeFacts, source: VolumeProjection, mode: number): Files {
  const { configMap, secret, downwardAPI, serviceAccountToken } = source;
  if (configMap !== undefined) return objectFiles(facts, 'configmap', configMap.name, configMap, mode);
  if (secret !== undefined) return objectFiles(facts, 'secret', secret.name, secret, mode);
  if (downwardAPI !== undefined) return downwardFiles(facts, downwardAPI.items, mode);
  if (serviceAccountToken !== undefined) {
    const { path = '' } = serviceAccountToken;
    const read = facts.token(tokenRequest(serviceAccountToken));
    if (read.kind === 'failed') throw new VolumeError(read.message);
    return new Map([[path, tokenFile(facts.pod, read.token, mode)]]);
  }
  const type = Object.keys(source)[0] ?? 'unknown';
  throw new VolumeError(`projected sources of type ${type} are not supported on this node`);
}

export const tokenRequest = ({
  audience = '',
  expirationSeconds = TOKEN_SECONDS,
}: NonNullable<VolumeProjection['serviceAccountToken']>): TokenRequest => ({
  audience,
  lifetimeSeconds: expirationSeconds,
});

/** The tokens that the volumes of a pod contain, each once. */
export function tokensOf({ spec }: KubePod): readonly TokenRequest[] {
  const requests = (spec?.volumes ?? [])
    .flatMap(({ projected }) => projected?.sources ?? [])
    .flatMap(({ serviceAccountToken }) => (serviceAccountToken === undefined ? [] : tokenRequest(serviceAccountToken)));
  return [...new Map(requests.map((each) => [tokenKey(each), each])).values()];
}

export const tokenKey = ({ audience, lifetimeSeconds }: TokenRequest): string => `${lifetimeSeconds} ${audience}`;

/** When a token is replaced: after 80 % of its life, and after 24 h at the latest. Milliseconds from its issue. */
export const tokenRefreshMs = (lifeMs: number): number => Math.min(lifeMs * REFRESH_SHARE, TOKEN_AGE_MAX_MS);

function tokenFile(pod: KubePod, token: string, mode: number): VolumeFile {
  const bytes = new TextEncoder().encode(token);
  const userId = commonUserOf(pod);
  if (userId !== undefined) return { bytes, mode: OWNED_TOKEN_MODE, userId };
  return { bytes, mode: fsGroupOf(pod) === undefined ? mode : OWNED_TOKEN_MODE };
}

export function fsGroupOf({ spec }: KubePod): number | undefined {
  const group = spec?.securityContext?.['fsGroup'];
  return typeof group === 'number' ? group : undefined;
}

/** The user of all containers; undefined if they differ. Source: upstream pkg/volume/util (FsUserFrom). */
function commonUserOf({ spec }: KubePod): number | undefined {
  const { initContainers = [], containers = [], securityContext = {} } = spec ?? {};
  const users = new Set(
    [...initContainers, ...containers].map(
      (each) => each.securityContext?.['runAsUser'] ?? securityContext['runAsUser'],
    ),
  );
  const [user] = users;
  return users.size === 1 && typeof user === 'number' ? user : undefined;
}

/** @throws VolumeError */
function objectFiles(
  { objects }: VolumeFacts,
  kind: ObjectKind,
  name = '',
  { items = [], optional = false }: { readonly items?: readonly KeyToPath[]; readonly optional?: boolean },
  mode = FILE_MODE,
): Files {
  const read = objects(kind, name);
  if (read.kind === 'failed') throw new VolumeError(read.message);
  if (read.kind === 'missing' && !optional) throw new VolumeError(notFoundText(kind, name));
  const { data = {}, binaryData = {} } = read.kind === 'found' ? read.object : {};
  const contents = new Map<string, Uint8Array>();
  for (const [key, text] of Object.entries(data)) {
    contents.set(key, kind === 'secret' ? bytesOfBase64(text) : new TextEncoder().encode(text));
  }
  for (const [key, base64] of Object.entries(binaryData)) contents.set(key, bytesOfBase64(base64));
  if (items.length === 0) return new Map([...contents].map(([key, bytes]) => [key, { bytes, mode }]));
  const files: Files = new Map();
  for (const { key = '', path = '', mode: ownMode } of items) {
    const bytes = contents.get(key);
    if (bytes !== undefined) files.set(path, { bytes, mode: ownMode ?? mode });
    else if (!optional) throw new VolumeError(missingKeyText(kind, key));
  }
  return files;
}

const missingKeyText = (kind: ObjectKind, key: string): string =>
  kind === 'secret'
    ? `references non-existent secret key: ${key}`
    : `configmap references non-existent config key: ${key}`;

const bytesOfBase64 = (base64: string): Uint8Array =>
  Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));

/** @throws VolumeError */
function downwardFiles(
  { pod, machine }: VolumeFacts,
  items: readonly DownwardAPIVolumeFile[] = [],
  mode = FILE_MODE,
): Files {
  const faults: string[] = [];
  const files: Files = new Map();
  for (const { path = '', mode: ownMode, fieldRef, resourceFieldRef = {} } of items) {
    const field =
      fieldRef === undefined
        ? resourceFieldValue(resourceFieldRef, pod, undefined, machine)
        : podFieldValue(fieldRef.fieldPath ?? '', pod, machine);
    if (field.kind === 'failed') faults.push(field.message);
    else files.set(path, { bytes: new TextEncoder().encode(field.text), mode: ownMode ?? mode });
  }
  if (faults.length > 0) throw new VolumeError(aggregated(faults));
  return files;
}
