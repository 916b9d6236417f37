/**
 * Enrols the key of this machine with a bootstrap token, and keeps the result on disk, so a restart does not enrol
 * again.
 *
 * - A refusal is remembered for a minute: the loops retry every few seconds, and the same token would be refused again.
 * - A deleted identity is not enrolled again with the same bootstrap token, because a revocation must last. Another
 *   bootstrap token in the configuration enrols again.
 */
import type { Log } from '../../../shared/observability/log.ts';
import type { AgentConfig } from '../../config.ts';
import type { KubeApi } from '../../ports/kube-api.ts';
import type { AgentTime } from '../../ports/time.ts';
import { enrolRequest, identityIn } from '../../rules/identity-request.ts';
import { isWorthATry } from '../../rules/key-rotation.ts';
import { answeredWith, describeAnswer, isTransient } from '../../rules/kube-answer.ts';
import { type Enrolment, readEnrolment, writeEnrolment } from './enrolment-file.ts';
import type { MachineKey } from './key-file.ts';

/** The API does not say which of them. */
const UNKNOWN_TOKEN = '401 the bootstrap token has expired, was revoked, or belongs to another cluster';

export class EnrolmentError extends Error {
  override readonly name = 'EnrolmentError';
  /** The cluster refused the bootstrap token; a repetition does not help. */
  readonly isRefused: boolean;
  constructor(message: string, { isRefused }: { readonly isRefused: boolean }) {
    super(message);
    this.isRefused = isRefused;
  }
}

export interface KeyPair {
  /** The enrolled key. */
  readonly key: MachineKey;
  /** The key that replaces it, during a key rotation. */
  readonly next: MachineKey | undefined;
}

export type EnrolmentConfig = Pick<AgentConfig, 'nodeName' | 'clusterId' | 'rootDirectory' | 'bootstrapToken'>;

export interface EnrollerDependencies {
  readonly time: Pick<AgentTime, 'monotonicMs'>;
  readonly log: Log;
  /** Sends the bootstrap token. */
  readonly bootstrapApi?: KubeApi | undefined;
}

type NodeLabels = Readonly<Record<string, string>>;

export class Enroller {
  readonly #config: EnrolmentConfig;
  readonly #dependencies: EnrollerDependencies;
  #refusal: { readonly error: EnrolmentError; readonly atMs: number } | undefined;
  /** An enrolment that could not be written. It is valid, because the enrolled key is on disk. */
  #unwritten: { readonly enrolment: Enrolment; readonly why: string; triedAtMs: number } | undefined;

  constructor(config: EnrolmentConfig, dependencies: EnrollerDependencies) {
    this.#config = config;
    this.#dependencies = dependencies;
  }

  /** Labels of the identity. Enrols the key first if that is due. Rejects with an EnrolmentError. */
  async nodeLabels({ key, next }: KeyPair): Promise<NodeLabels> {
    const { nodeName, clusterId, rootDirectory, bootstrapToken } = this.#config;
    const { bootstrapApi, log } = this.#dependencies;
    const stored = await readEnrolment(rootDirectory);
    const bootstrapTokenId = bootstrapToken?.split('.', 1)[0];
    const isStoredForUs =
      stored?.clusterId === clusterId &&
      stored.nodeName === nodeName &&
      [key.keyId, next?.keyId].includes(stored.keyId);
    if (isStoredForUs && (bootstrapTokenId === undefined || bootstrapTokenId === stored.bootstrapTokenId)) {
      return stored.nodeLabels;
    }
    // Without a bootstrap token, an administrator may have stored our public key.
    if (bootstrapTokenId === undefined || bootstrapApi === undefined) return {};
    const nodeLabels = await this.#enrol(bootstrapApi, key);
    await this.#write({ clusterId, nodeName, keyId: key.keyId, bootstrapTokenId, nodeLabels });
    log.info('enrolled', { node: nodeName, keyId: key.keyId });
    return nodeLabels;
  }

  /** Writes an enrolment that could not be written, at most once a minute. */
  async retryWrite(): Promise<void> {
    const nowMs = this.#dependencies.time.monotonicMs();
    if (this.#unwritten === undefined || !isWorthATry(this.#unwritten.triedAtMs, nowMs)) return;
    this.#unwritten.triedAtMs = nowMs;
    await this.#write(this.#unwritten.enrolment);
  }

  /** Names the next key in the file before it replaces the current one. The file is valid with either key. */
  async nameNextKey({ key, next }: KeyPair & { readonly next: MachineKey }): Promise<void> {
    const stored = await readEnrolment(this.#config.rootDirectory);
    if (stored?.keyId !== key.keyId) return;
    await writeEnrolment(this.#config.rootDirectory, { ...stored, keyId: next.keyId });
  }

  /** An enrolment that is still to be written names the adopted key. */
  keyAdopted(keyId: string): void {
    if (this.#unwritten === undefined) return;
    this.#unwritten = { ...this.#unwritten, enrolment: { ...this.#unwritten.enrolment, keyId } };
  }

  /** Why the enrolment is not on disk; undefined if it is. */
  complaint(): string | undefined {
    return this.#unwritten === undefined ? undefined : `the identity is not written: ${this.#unwritten.why}`;
  }

  async #enrol(api: KubeApi, key: MachineKey): Promise<NodeLabels> {
    const { nodeName } = this.#config;
    const { time } = this.#dependencies;
    if (this.#refusal !== undefined && !isWorthATry(this.#refusal.atMs, time.monotonicMs())) throw this.#refusal.error;
    const answer = await api.send(enrolRequest(nodeName, key.publicKey));
    if (!answeredWith(answer, 200, 201)) {
      const isRefused = !isTransient(answer);
      const why = answeredWith(answer, 401) ? UNKNOWN_TOKEN : describeAnswer(answer);
      const error = new EnrolmentError(`${nodeName} could not be enrolled: ${why}`, { isRefused });
      if (isRefused) this.#refusal = { error, atMs: time.monotonicMs() };
      throw error;
    }
    const identity = identityIn(answer);
    if (!identity?.keys.some(({ keyId }) => keyId === key.keyId)) {
      const message = `${nodeName} could not be enrolled: the answer does not hold our key`;
      throw new EnrolmentError(message, { isRefused: false });
    }
    return identity.nodeLabels;
  }

  async #write(enrolment: Enrolment): Promise<void> {
    const { time, log } = this.#dependencies;
    try {
      await writeEnrolment(this.#config.rootDirectory, enrolment);
      this.#unwritten = undefined;
    } catch (cause) {
      const why = (cause as Error).message;
      if (this.#unwritten === undefined) log.error('the identity cannot be written; the agent retries', { why });
      this.#unwritten = { enrolment, why, triedAtMs: time.monotonicMs() };
    }
  }
}
