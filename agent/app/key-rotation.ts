/**
 * Replaces the machine's key before it is old, step by step as agent/rules/key-rotation.ts says.
 *
 * Each step asks the disk and the cluster's last word what is next; only the first look, and one after a failure, is a
 * request of its own. What fails changes nothing: both keys stay where they are, it is told once, and tried again after
 * waits that double up to an hour. Nobody waits for this loop, and a machine whose key cannot be replaced goes on with it.
 */
import type { Log } from '../../shared/ports/log.ts';
import type { AgentConfig } from '../config.ts';
import type { KubeApi, KubeRequest } from '../ports/kube-api.ts';
import type { MachineKeys } from '../ports/machine-keys.ts';
import type { AgentMeter } from '../ports/meter.ts';
import type { AgentTime, Fraction } from '../ports/time.ts';
import { type Doubling, doublingWaitMs, retryAfterWaitMs } from '../rules/backoff.ts';
import { enrolRequest, identityIn, identityRequest } from '../rules/identity-request.ts';
import { type EnrolledKey, firstLookMs, nextRotationStep } from '../rules/key-rotation.ts';
import { describeAnswer } from '../rules/kube-answer.ts';

const FAILURE_WAITS: Doubling = { firstMs: 60_000, limitMs: 3_600_000 };
/** Between two looks whether the new key has signed a beat; a beat wakes us anyway. Milliseconds. */
const PROOF_LOOK_MS = 60_000;

export interface KeyRotationDependencies {
  readonly keys: MachineKeys;
  readonly api: KubeApi;
  readonly time: AgentTime;
  readonly fraction: Fraction;
  readonly log: Log;
  readonly meter: AgentMeter;
}

export interface KeyRotation {
  /** Until stopped; at once when keys are never replaced. */
  run(stop: AbortSignal): Promise<void>;
  /** A beat was answered. `signedBy`: the key of an accepted one; undefined when it was refused, or that is not certain. */
  beatAnswered(signedBy: string | undefined): void;
}

type StepOutcome =
  | { readonly kind: 'done' }
  | { readonly kind: 'wait'; readonly forMs: number }
  | { readonly kind: 'failed'; readonly why: string; readonly atLeastMs?: number };

const DONE: StepOutcome = { kind: 'done' };

export function createKeyRotation(
  { nodeName, keyRotationPeriodMs: periodMs }: Pick<AgentConfig, 'nodeName' | 'keyRotationPeriodMs'>,
  { keys, api, time, fraction, log, meter }: KeyRotationDependencies,
): KeyRotation {
  let enrolled: readonly EnrolledKey[] | undefined;
  let provenKeyId: string | undefined;
  let answered = new AbortController();
  let failures = 0;

  /** Asks for something about our identity, and keeps what the cluster says of it, which must be as expected. */
  async function ask(
    request: KubeRequest,
    stop: AbortSignal,
    expected: (told: readonly EnrolledKey[]) => boolean = () => true,
  ): Promise<StepOutcome> {
    const answer = await api.send({ ...request, signal: stop });
    enrolled = identityIn(answer)?.keys;
    if (enrolled === undefined) {
      const atLeastMs = answer.kind === 'answered' ? retryAfterWaitMs(answer, fraction()) : 0;
      return { kind: 'failed', why: describeAnswer(answer), atLeastMs };
    }
    if (expected(enrolled)) return DONE;
    return { kind: 'failed', why: 'the answer does not hold the keys that were asked for' };
  }

  async function prove(keyId: string, stop: AbortSignal): Promise<StepOutcome> {
    keys.signWithNext();
    while (!stop.aborted && provenKeyId !== keyId) {
      if (keys.signingKeyId() !== keyId) return { kind: 'failed', why: 'the new key was refused' };
      answered = new AbortController();
      await time.sleep(PROOF_LOOK_MS, AbortSignal.any([stop, answered.signal]));
    }
    return DONE;
  }

  async function step(stop: AbortSignal): Promise<StepOutcome> {
    const { current, next } = await keys.held();
    if (enrolled === undefined) return ask(identityRequest(nodeName), stop);
    const due = nextRotationStep({
      enrolled,
      currentKeyId: current.keyId,
      nextKeyId: next?.keyId,
      provenKeyId,
      periodMs,
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
        return ask(enrolRequest(nodeName, (next ?? current).publicKey), stop, (told) =>
          told.some(({ keyId }) => keyId === next?.keyId),
        );
      case 'prove':
        return prove((next ?? current).keyId, stop);
      case 'adopt':
        await keys.adoptNext();
        return DONE;
      case 'drop': {
        const alone = (told: readonly EnrolledKey[]) => told.length === 1 && told[0]?.keyId === current.keyId;
        const outcome = await ask(enrolRequest(nodeName, current.publicKey), stop, alone);
        if (outcome.kind !== 'done') return outcome;
        meter.count('nodekeeper_agent_key_rotations_total');
        log.info('the key was replaced', { node: nodeName, keyId: current.keyId });
        return DONE;
      }
    }
  }

  async function tried(stop: AbortSignal): Promise<StepOutcome> {
    try {
      return await step(stop);
    } catch (error) {
      return { kind: 'failed', why: error instanceof Error ? error.message : String(error) };
    }
  }

  return {
    beatAnswered(signedBy) {
      if (signedBy !== undefined) provenKeyId = signedBy;
      answered.abort();
    },
    async run(stop) {
      if (periodMs === 0) return;
      await time.sleep(firstLookMs(periodMs, fraction()), stop);
      while (!stop.aborted) {
        const outcome = await tried(stop);
        if (stop.aborted) return;
        if (outcome.kind === 'failed') {
          // What was told before may be what was wrong.
          enrolled = undefined;
          if (failures === 0)
            log.warn('the key cannot be replaced; it goes on counting', { node: nodeName, why: outcome.why });
          await time.sleep(Math.max(doublingWaitMs(FAILURE_WAITS, failures), outcome.atLeastMs ?? 0), stop);
          failures += 1;
        } else if (outcome.kind === 'wait') {
          failures = 0;
          await time.sleep(outcome.forMs, stop);
        }
      }
    },
  };
}
