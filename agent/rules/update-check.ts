/** The report of the agent's version to the API, and what the answer means. */
import { isOlderVersion } from '../../shared/agents/version-order.ts';
import { isJsonObject } from '../../shared/kubernetes/json.ts';
import type { KubeAnswer, KubeRequest } from '../ports/kube-api.ts';
import { describeAnswer } from './kube-answer.ts';
import type { FailedArtifact } from './update-record.ts';

/** The agent refuses a larger file, whatever the release says. */
export const UPDATE_BYTES_MAX = 64 * 1_024 * 1_024;

/** The file to install, as the API names it. Nothing of it is trusted before its signature was checked. */
export interface OfferedRelease {
  readonly name: string;
  readonly version: string;
  readonly url: string;
  /** Lower-case hex. */
  readonly sha256: string;
  /** Base64. */
  readonly signature: string;
  /** Base64. Undefined: the release is no downgrade. */
  readonly downgradeSignature: string | undefined;
  readonly sizeBytes: number | undefined;
}

export type UpdateAnswer =
  | { readonly kind: 'none' }
  | { readonly kind: 'wait'; readonly waitMs: number }
  | { readonly kind: 'update'; readonly release: OfferedRelease }
  | { readonly kind: 'failed'; readonly why: string };

export interface RunningVersion {
  readonly nodeName: string;
  readonly version: string;
  readonly architecture: string;
  /** The newest artifact that is not tried again. */
  readonly failed: FailedArtifact | undefined;
}

export function updateRequest({ nodeName, version, architecture, failed }: RunningVersion): KubeRequest {
  return {
    method: 'PUT',
    path: `/apis/nodekeeper.dev/v1alpha1/nodeupdates/${encodeURIComponent(nodeName)}`,
    body: {
      version,
      architecture,
      ...(failed === undefined ? {} : { failed: { sha256: failed.sha256, message: failed.message } }),
    },
  };
}

/** A file name has the version: it must not leave the directory. */
const VERSION = /^[0-9A-Za-z][0-9A-Za-z.+-]{0,62}$/;
const WAIT_MS_MIN = 10_000;
const WAIT_MS_MAX = 3_600_000;

export function updateAnswer(answer: KubeAnswer): UpdateAnswer {
  if (answer.kind === 'failed' || answer.status !== 200) return { kind: 'failed', why: describeAnswer(answer) };
  const body = isJsonObject(answer.body) ? answer.body : {};
  // A captive portal answers 200, too.
  if (body['kind'] !== 'NodeUpdateAnswer') return { kind: 'failed', why: 'the answer is not from the API' };
  if (body['action'] === 'wait') {
    const { waitSeconds } = body;
    const waitMs = typeof waitSeconds === 'number' ? waitSeconds * 1_000 : WAIT_MS_MIN;
    return { kind: 'wait', waitMs: Math.min(WAIT_MS_MAX, Math.max(WAIT_MS_MIN, waitMs)) };
  }
  if (body['action'] !== 'update') return { kind: 'none' };
  const release = offeredRelease(body['release']);
  return release === undefined ? { kind: 'failed', why: 'the release is malformed' } : { kind: 'update', release };
}

function offeredRelease(value: unknown): OfferedRelease | undefined {
  const { name, version, url, sha256, signature, downgradeSignature, sizeBytes } = isJsonObject(value) ? value : {};
  if (typeof version !== 'string' || !VERSION.test(version)) return undefined;
  if (typeof sha256 !== 'string' || !/^[0-9a-f]{64}$/.test(sha256)) return undefined;
  if (typeof url !== 'string' || typeof signature !== 'string') return undefined;
  return {
    name: typeof name === 'string' ? name : '',
    version,
    url,
    sha256,
    signature,
    downgradeSignature: typeof downgradeSignature === 'string' ? downgradeSignature : undefined,
    sizeBytes: typeof sizeBytes === 'number' ? sizeBytes : undefined,
  };
}

/** What a release is signed over. The version is part of it: a signature makes no old file a new version. */
export const signedStatement = ({ version, sha256 }: Pick<OfferedRelease, 'version' | 'sha256'>): string =>
  `nodekeeper-agent ${version} ${sha256}\n`;

/**
 * What a release is signed over for machines that run a newer version. Without it, whoever may write AgentReleases
 * could install an old version with known defects: its signature stays valid.
 */
export const signedDowngrade = ({ version, sha256 }: Pick<OfferedRelease, 'version' | 'sha256'>): string =>
  `nodekeeper-agent ${version} ${sha256} downgrade\n`;

/** Why a machine that runs `version` does not install the release; undefined if nothing prevents it. */
export function signatureFault(
  release: OfferedRelease,
  version: string,
  isSigned: (statement: string, signature: string) => boolean,
): string | undefined {
  if (!isSigned(signedStatement(release), release.signature)) {
    return `the signature of ${release.version} is not by the key of this machine (updatePublicKey)`;
  }
  if (!isOlderVersion(release.version, version)) return undefined;
  if (isSigned(signedDowngrade(release), release.downgradeSignature ?? '')) return undefined;
  return `${release.version} is older than ${version}, and is not signed as a downgrade`;
}
