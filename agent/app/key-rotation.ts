/**
 * Replaces the machine's key before it is too old, one step at a time (agent/rules/key-rotation.ts).
 *
 * The next step follows from the keys on disk and the newest answer of the cluster. Only the first read, and one after
 * a failure, is a request of its own. A failure changes nothing: both keys stay, it is logged once, and retried after
 * waits that double up to an hour. No other loop waits for this one, and the machine keeps its key until it can be
 * replaced.
 */
import { type Backoff, backoffMs } from '../../shared/backoff.ts';
import type { Log } from '../../shared/observability/log.ts';
import type { AgentConfig } from '../config.ts';
import type { KubeApi, KubeRequest } from '../ports/kube-api.ts';
import type { MachineKeys, PublicHalf } from '../ports/machine-keys.ts';
import type { AgentMeter } from '../ports/meter.ts';
import type { AgentTime, Fraction } from '../ports/time.ts';
import { enrolRequest, identityIn, identityRequest } from '../rules/identity-request.ts';
import { type EnrolledKey, firstLookMs, nextRotationStep } from '../rules/key-rotation.ts';
import { describeAnswer } from '../rules/kube-answer.ts';
import { describeError } from './describe-error.ts';

const FAILURE_WAITS: Backoff = { firstMs: 60_000, limitMs: 3_600_000 };
/** Longest wait before the signing key is checked again; the answer to a heartbeat ends the wait. Milliseconds. */
const PROOF_CHECK_MS = 60_000;

export interface KeyRotationDependencies {
  readonly keys: MachineKeys;
  readonly api: KubeApi;
  readonly time: AgentTime;
  readonly fraction: Fraction;
  readonly log: Log;
  readonly meter: AgentMeter;
}

export interface KeyRotation {
  /** Runs until stopped. Resolves at once if keys are never replaced. */
  run(stop: AbortSignal): Promise<void>;
  /**
   * A heartbeat was answered.
   *
   * @param signedBy the key of an accepted heartbeat; undefined if it was refused, or if the key is not certain
   */
  beatAnswered(signedBy: string | undefined): void;
}

type StepOutcome =
  | { readonly kind: 'done' }
  | { readonly kind: 'wait'; readonly forMs: number }
  | { readonly kind: 'failed'; readonly why: string };

const DONE: StepOutcome = { kind: 'done' };

type RotationConfig = Pick<AgentConfig, 'nodeName' | 'keyRotationPeriodMs'>;

export function createKeyRotation(config: RotationConfig, dependencies: KeyRotationDependencies): KeyRotation {
  const { nodeName, keyRotationPeriodMs } = config;
  const { time, fraction, log } = dependencies;
  const steps = new RotationSteps(config, dependencies);

  return {
    beatAnswered: (signedBy) => steps.beatAnswered(signedBy),
    async run(stop) {
      if (keyRotationPeriodMs === 0) return;
      await time.sleep(firstLookMs(keyRotationPeriodMs, fraction()), stop);
      for (let failures = 0; !stop.aborted; ) {
        const outcome = await steps.next(stop);
        if (stop.aborted) return;
        if (outcome.kind === 'failed') {
          if (failures === 0) {
            log.warn('the key cannot be replaced; it stays in use', { node: nodeName, why: outcome.why });
          }
          // Longer than any Retry-After.
          await time.sleep(backoffMs(FAILURE_WAITS, failures), stop);
          failures += 1;
        } else if (outcome.kind === 'wait') {
          failures = 0;
          await time.sleep(outcome.forMs, stop);
        }
      }
    },
  };
}

class RotationSteps {
  readonly #config: RotationConfig;
  readonly #dependencies: KeyRotationDependencies;
  /** From the newest answer of the cluster; undefined if it must be read. */
  #enrolled: readonly EnrolledKey[] | undefined;
  #provenKeyId: string | undefined;
  /** Aborted when a heartbeat is answered, which ends the wait in #prove. */
  #answered = new AbortController();

  constructor(config: RotationConfig, dependencies: KeyRotationDependencies) {
    this.#config = config;
    this.#dependencies = dependencies;
  }

  beatAnswered(signedBy: string | undefined): void {
    if (signedBy !== undefined) this.#provenKeyId = signedBy;
    this.#answered.abort();
  }

  /** Does the step that is due. After a failure the enrolled keys are read again: they may have been the cause. */
  async next(stop: AbortSignal): Promise<StepOutcome> {
    const outcome = await this.#step(stop).catch(
      (error: unknown): StepOutcome => ({ kind: 'failed', why: describeError(error) }),
    );
    if (outcome.kind === 'failed') this.#enrolled = undefined;
    return outcome;
  }

  async #step(stop: AbortSignal): Promise<StepOutcome> {
    const { nodeName, keyRotationPeriodMs } = this.#config;
    const { keys } = this.#dependencies;
    const { current, next } = await keys.held();
    if (this.#enrolled === undefined) return this.#request(identityRequest(nodeName), () => true, stop);
    const due = nextRotationStep({
      enrolled: this.#enrolled,
      currentKeyId: current.keyId,
      nextKeyId: next?.keyId,
      provenKeyId: this.#provenKeyId,
      periodMs: keyRotationPeriodMs,
      nowMs: keys.serverNowMs(),
    });
    switch (due.kind) {
      case 'wait':
        return due;
      case 'lost':
        return { kind: 'failed', why: 'the cluster does not know the key of this machine' };
      case 'make':
        await keys.makeNext();
        return DONE;
      case 'enrol':
        return this.#enrol(next ?? current, stop);
      case 'prove':
        return this.#prove((next ?? current).keyId, stop);
      case 'adopt':
        await keys.adoptNext();
        return DONE;
      case 'drop':
        return this.#dropOthers(current, stop);
    }
  }

  #enrol({ keyId, publicKey }: PublicHalf, stop: AbortSignal): Promise<StepOutcome> {
    const isEnrolled = (enrolled: readonly EnrolledKey[]): boolean => enrolled.some((key) => key.keyId === keyId);
    return this.#request(enrolRequest(this.#config.nodeName, publicKey), isEnrolled, stop);
  }

  /** Signs with the new key until a heartbeat signed with it was accepted. */
  async #prove(keyId: string, stop: AbortSignal): Promise<StepOutcome> {
    const { keys, time } = this.#dependencies;
    keys.signWithNext();
    while (!stop.aborted && this.#provenKeyId !== keyId) {
      if (keys.signingKeyId() !== keyId) return { kind: 'failed', why: 'the new key was refused' };
      this.#answered = new AbortController();
      await time.sleep(PROOF_CHECK_MS, AbortSignal.any([stop, this.#answered.signal]));
    }
    return DONE;
  }

  /** Enrols the key once more, signed by itself: the cluster then deletes all others. */
  async #dropOthers({ keyId, publicKey }: PublicHalf, stop: AbortSignal): Promise<StepOutcome> {
    const { nodeName } = this.#config;
    const { meter, log } = this.#dependencies;
    const isOnlyKey = (enrolled: readonly EnrolledKey[]): boolean =>
      enrolled.length === 1 && enrolled[0]?.keyId === keyId;
    const outcome = await this.#request(enrolRequest(nodeName, publicKey), isOnlyKey, stop);
    if (outcome.kind !== 'done') return outcome;
    meter.count('nodekeeper_agent_key_rotations_total');
    log.info('the key was replaced', { node: nodeName, keyId });
    return DONE;
  }

  /** Sends a request about our identity and keeps the enrolled keys of its answer, which must be the expected ones. */
  async #request(
    request: KubeRequest,
    isExpected: (enrolled: readonly EnrolledKey[]) => boolean,
    stop: AbortSignal,
  ): Promise<StepOutcome> {
    const answer = await this.#dependencies.api.send({ ...request, signal: stop });
    this.#enrolled = identityIn(answer)?.keys;
    if (this.#enrolled === undefined) return { kind: 'failed', why: describeAnswer(answer) };
    if (isExpected(this.#enrolled)) return DONE;
    return { kind: 'failed', why: 'the answer does not contain the requested keys' };
  }
}
