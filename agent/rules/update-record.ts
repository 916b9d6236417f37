/** The records of an update on the machine's disk, and what a start does with them (docs/agent.md, "Updates"). */
import { isJsonObject } from '../../shared/kubernetes/json.ts';

/** Link to the file of the agent that starts. Absent: the installed agent starts. */
export const CURRENT_LINK = 'current';
/** Written before the link changes, and removed when the new version is confirmed or replaced. */
export const TRIAL_RECORD = 'trial.json';
/** Artifacts that this machine does not try again. */
export const FAILED_RECORD = 'failed.json';
/** Trials that proved nothing: neither the new version nor the one before could reach the cluster. */
export const INCONCLUSIVE_RECORD = 'inconclusive.json';
export const TEMPORARY_PREFIX = '.new-';

/** Starts of a version that is not confirmed. A power cut uses one. */
export const TRIAL_STARTS_MAX = 3;
/** Accepted heartbeats that confirm a version. */
export const CONFIRMING_BEATS = 2;
/** Time for these heartbeats after a start. Shorter than the 300 s after which pods are evicted. Milliseconds. */
export const TRIAL_MS = 120_000;
/** Trials of an artifact without heartbeats. The last one counts as a failure even if the cluster was unreachable. */
export const SILENT_TRIALS_MAX = 3;
const FAILED_MAX = 20;
const MESSAGE_CHARACTERS_MAX = 500;

export interface Trial {
  readonly version: string;
  readonly sha256: string;
  readonly file: string;
  /** File of the version before; '' for the installed agent. */
  readonly previous: string;
  readonly starts: number;
}

export interface FailedArtifact {
  readonly version: string;
  readonly sha256: string;
  readonly message: string;
  /**
   * It sent no accepted heartbeats, which may be the fault of the network or the cluster. The first heartbeat of the
   * version before decides: accepted, the new version is broken; otherwise it is tried again.
   */
  readonly isDoubtful?: boolean;
}

/** Trials of an artifact that proved nothing. */
export interface InconclusiveTrials {
  readonly sha256: string;
  readonly trials: number;
}

/** Digest characters in a file name: two builds of one version differ. */
const DIGEST_CHARACTERS = 16;

export const fileNameOf = ({ version, sha256 }: Pick<Trial, 'version' | 'sha256'>): string =>
  `agent-${version}-${sha256.slice(0, DIGEST_CHARACTERS)}.mjs`;

export const isAgentFile = (name: string): boolean => /^agent-.+\.mjs$/.test(name);

/** Undefined for a text that is no such record, such as one that a power cut left incomplete. */
export function parseTrial(text: string | undefined): Trial | undefined {
  const { version, sha256, file, previous, starts } = parseObject(text);
  if (typeof version !== 'string' || typeof sha256 !== 'string' || typeof file !== 'string') return undefined;
  if (!isAgentFile(file) || file.includes('/')) return undefined;
  if (typeof previous !== 'string' || previous.includes('/') || typeof starts !== 'number') return undefined;
  return { version, sha256, file, previous, starts };
}

export function parseFailed(text: string | undefined): readonly FailedArtifact[] {
  const { items } = parseObject(text);
  if (!Array.isArray(items)) return [];
  return items
    .filter(isJsonObject)
    .flatMap(({ version, sha256, message, isDoubtful }) =>
      typeof version === 'string' && typeof sha256 === 'string' && typeof message === 'string'
        ? [{ version, sha256, message, ...(isDoubtful === true ? { isDoubtful } : {}) }]
        : [],
    );
}

export function parseInconclusive(text: string | undefined): readonly InconclusiveTrials[] {
  const { items } = parseObject(text);
  if (!Array.isArray(items)) return [];
  return items
    .filter(isJsonObject)
    .flatMap(({ sha256, trials }) =>
      typeof sha256 === 'string' && typeof trials === 'number' ? [{ sha256, trials }] : [],
    );
}

function parseObject(text: string | undefined): Readonly<Record<string, unknown>> {
  try {
    // `undefined` is no JSON.
    const value: unknown = JSON.parse(String(text));
    return isJsonObject(value) ? value : {};
  } catch {
    return {};
  }
}

export const trialText = (trial: Trial): string => `${JSON.stringify(trial)}\n`;

/** The newest last; the oldest are dropped. */
export function failedText(known: readonly FailedArtifact[], added: FailedArtifact): string {
  const others = known.filter(({ sha256 }) => sha256 !== added.sha256);
  const item = { ...added, message: added.message.slice(0, MESSAGE_CHARACTERS_MAX) };
  return `${JSON.stringify({ items: [...others, item].slice(-FAILED_MAX) })}\n`;
}

export const failedWithoutText = (known: readonly FailedArtifact[], removed: string): string =>
  `${JSON.stringify({ items: known.filter(({ sha256 }) => sha256 !== removed) })}\n`;

/** The newest last; the oldest are dropped. */
export function inconclusiveText(known: readonly InconclusiveTrials[], added: InconclusiveTrials): string {
  const others = known.filter(({ sha256 }) => sha256 !== added.sha256);
  return `${JSON.stringify({ items: [...others, added].slice(-FAILED_MAX) })}\n`;
}

export interface StartRecords {
  /** Target of the link; undefined without one. */
  readonly current: string | undefined;
  readonly trial: Trial | undefined;
  readonly failed: readonly FailedArtifact[];
  /** Files in the directory. */
  readonly names: readonly string[];
}

export type StartDecision =
  /** '' is the installed agent. */
  | { readonly kind: 'start'; readonly file: string }
  /** The trial was never begun, or was ended already: its record is removed first. */
  | { readonly kind: 'discard'; readonly file: string }
  | { readonly kind: 'try'; readonly trial: Trial }
  | { readonly kind: 'rollBack'; readonly trial: Trial; readonly message: string; readonly isDoubtful?: boolean };

export function startDecision({ current, trial, failed, names }: StartRecords): StartDecision {
  // A link to a missing file, such as after a restored backup.
  const linked = current !== undefined && names.includes(current) ? current : '';
  if (trial === undefined) return { kind: 'start', file: linked };
  if (current !== trial.file) return { kind: 'discard', file: linked };
  const known = failed.find(({ sha256 }) => sha256 === trial.sha256);
  if (known !== undefined) return { kind: 'rollBack', trial, message: known.message };
  if (linked === '') return { kind: 'rollBack', trial, message: `${trial.file} is missing` };
  if (trial.starts >= TRIAL_STARTS_MAX) {
    const message = `${trial.starts} starts without ${CONFIRMING_BEATS} accepted heartbeats`;
    return { kind: 'rollBack', trial, message, isDoubtful: true };
  }
  return { kind: 'try', trial: { ...trial, starts: trial.starts + 1 } };
}
