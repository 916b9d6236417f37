/**
 * The heartbeat: renews the node's Lease, round after round (component-helpers/apimachinery/lease/controller.go).
 *
 * A round renews the Lease known from the round before; if that fails, or none is known, it reads or creates the Lease
 * and renews what it read. Between rounds it waits a quarter of the lease's duration, counted from the end of a round.
 *
 * The loop holds one Lease and no queue, so an outage of any length costs no memory. It ends with its stop signal alone,
 * which is not the machine's shutdown: a node that ends its pods gracefully goes on beating.
 *
 * Where this leaves upstream: the wait after the first round is a share of the interval that follows from the node's name,
 * so that a fleet switched on at once does not beat in step; a Retry-After is kept, within bounds; and when the Node turns
 * out to be gone, it is registered again before the Lease is created.
 */
import type { KubeNode, KubeObject } from '../../shared/kube/types.ts';
import type { Log } from '../../shared/ports/log.ts';
import type { AgentConfig } from '../config.ts';
import type { KubeAnswer, KubeApi, KubeRequest } from '../ports/kube-api.ts';
import type { AgentTime, Fraction } from '../ports/time.ts';
import { doublingWaitMs, ENSURE_LEASE_WAITS, retryAfterWaitMs } from '../rules/backoff.ts';
import { answeredWith, describeAnswer, leaseIn, nodeIn } from '../rules/kube-answer.ts';
import {
  firstWaitMs,
  jitteredMs,
  LEASES_PATH,
  leaseDurationSeconds,
  leasePath,
  needsOwner,
  newLease,
  nodePath,
  podsVersionOf,
  renewedLease,
  renewIntervalMs,
} from '../rules/lease.ts';

/** PUTs of one update pass, conflicts included. */
const UPDATE_TRIES = 5;

export interface LeaseLoopDependencies {
  readonly api: KubeApi;
  readonly time: AgentTime;
  readonly fraction: Fraction;
  readonly log: Log;
  /** Ends the loop. Aborted last, when the process ends. */
  readonly stop: AbortSignal;
  /** An answer later than this counts as none. Milliseconds. */
  readonly timeoutMs: number;
  /** Registers the Node again, because it is gone. False: it was not. */
  readonly registerAgain: () => Promise<boolean>;
}

export type BeatListener = (atMs: number, silentMs: number) => void;

export interface LeaseLoop {
  /** Beats until stopped. */
  run(): Promise<void>;
  /** One round. */
  round(): Promise<void>;
  /** The Lease that the next round begins with. */
  cached(): KubeObject | undefined;
  /**
   * Called after each acknowledged beat, with its time in milliseconds since the epoch, and how long it was since the beat
   * before: after a silence the controller may have marked the Node. Milliseconds; 0 at the first.
   */
  onBeat(listener: BeatListener): void;
  /** Called when the answer to a beat says that pods of this node changed since the one before. */
  onPodsChange(listener: () => void): void;
}

type Ensured =
  | { readonly kind: 'found' | 'created'; readonly lease: KubeObject }
  /** Stopped, or the Node to own the Lease cannot be read; the next round tries again. */
  | { readonly kind: 'nothing' };

type EnsureTry = Ensured | { readonly kind: 'failed'; readonly answer: KubeAnswer };

export function createLeaseLoop(
  config: Pick<AgentConfig, 'nodeName' | 'nodeLeaseDurationSeconds'>,
  { api, time, fraction, log, stop, timeoutMs, registerAgain }: LeaseLoopDependencies,
): LeaseLoop {
  const { nodeName } = config;
  const durationSeconds = leaseDurationSeconds(config.nodeLeaseDurationSeconds);
  const intervalMs = renewIntervalMs(durationSeconds);
  const beatListeners: BeatListener[] = [];
  const podsListeners: (() => void)[] = [];
  let cached: KubeObject | undefined;
  let podsVersion: string | undefined;
  /** On the monotonic clock. */
  let beatAtMs: number | undefined;

  const send = (request: KubeRequest) => api.send({ ...request, timeoutMs, signal: stop });
  const timing = () => ({ leaseDurationSeconds: durationSeconds, nowMs: time.nowMs() });

  const whyNoLease = (answer: KubeAnswer): string =>
    answeredWith(answer, 200, 201)
      ? `${describeAnswer(answer)}, but the answer is not the Lease ${nodeName}`
      : describeAnswer(answer);

  function acknowledge(lease: KubeObject): void {
    cached = lease;
    const version = podsVersionOf(lease);
    const changed = version !== podsVersion;
    podsVersion = version;
    const monotonicMs = time.monotonicMs();
    const silentMs = beatAtMs === undefined ? 0 : monotonicMs - beatAtMs;
    beatAtMs = monotonicMs;
    for (const listener of beatListeners) listener(time.nowMs(), silentMs);
    if (changed) for (const listener of podsListeners) listener();
  }

  async function waitAsAsked(answer: KubeAnswer, atLeastMs = 0): Promise<void> {
    const askedMs = answer.kind === 'answered' ? retryAfterWaitMs(answer, fraction()) : 0;
    const waitMs = Math.max(atLeastMs, askedMs);
    if (waitMs > 0) await time.sleep(waitMs, stop);
  }

  /** The Node that is to own the Lease; undefined when it cannot be read. */
  async function owner(): Promise<KubeNode | undefined> {
    const answer = await send({ method: 'GET', path: nodePath(nodeName) });
    const node = answeredWith(answer, 200) ? nodeIn(answer, nodeName) : undefined;
    if (node !== undefined) return node;
    if (!answeredWith(answer, 404)) {
      log.warn('the Node that owns the Lease cannot be read', { node: nodeName, why: describeAnswer(answer) });
      return undefined;
    }
    log.warn('the Node is not there', { node: nodeName });
    if (!(await registerAgain())) return undefined;
    const again = await send({ method: 'GET', path: nodePath(nodeName) });
    return answeredWith(again, 200) ? nodeIn(again, nodeName) : undefined;
  }

  async function ensureOnce(): Promise<EnsureTry> {
    const found = await send({ method: 'GET', path: leasePath(nodeName) });
    const lease = answeredWith(found, 200) ? leaseIn(found, nodeName) : undefined;
    if (lease !== undefined) return { kind: 'found', lease };
    if (!answeredWith(found, 404)) return { kind: 'failed', answer: found };
    const node = await owner();
    if (node === undefined) return { kind: 'nothing' };
    const created = await send({ method: 'POST', path: LEASES_PATH, body: newLease(node, timing()) });
    const stored = answeredWith(created, 200, 201) ? leaseIn(created, nodeName) : undefined;
    return stored === undefined ? { kind: 'failed', answer: created } : { kind: 'created', lease: stored };
  }

  /** Reads or creates the Lease, for as long as it takes. */
  async function ensure(): Promise<Ensured> {
    for (let number = 0; !stop.aborted; number += 1) {
      const tried = await ensureOnce();
      if (tried.kind === 'created') acknowledge(tried.lease);
      if (tried.kind !== 'failed') return tried;
      const waitMs = doublingWaitMs(ENSURE_LEASE_WAITS, number);
      log.warn('the Lease could be neither read nor created', {
        node: nodeName,
        why: whyNoLease(tried.answer),
        waitMs,
      });
      await waitAsAsked(tried.answer, waitMs);
    }
    return { kind: 'nothing' };
  }

  /** What to send; undefined when the owner it lacks cannot be read. */
  async function build(base: KubeObject | undefined): Promise<KubeObject | undefined> {
    if (base === undefined) return undefined;
    if (!needsOwner(base)) return renewedLease(base, timing());
    const node = await owner();
    return node === undefined ? undefined : renewedLease(base, { ...timing(), node });
  }

  /** Renews this Lease; false when all tries failed. */
  async function update(known: KubeObject): Promise<boolean> {
    let base: KubeObject | undefined = known;
    for (let number = 0; number < UPDATE_TRIES && !stop.aborted; number += 1) {
      const body = await build(base);
      if (body === undefined) continue;
      const answer = await send({ method: 'PUT', path: leasePath(nodeName), body });
      const renewed = answeredWith(answer, 200, 201) ? leaseIn(answer, nodeName) : undefined;
      if (renewed !== undefined) {
        acknowledge(renewed);
        return true;
      }
      log.warn('the Lease was not renewed', { node: nodeName, why: whyNoLease(answer), attempt: number + 1 });
      if (answeredWith(answer, 409)) {
        const ensured = await ensure();
        base = ensured.kind === 'nothing' ? undefined : ensured.lease;
        continue;
      }
      if (number > 0) api.reconnect();
      if (number < UPDATE_TRIES - 1) await waitAsAsked(answer);
    }
    if (!stop.aborted) log.error(`failed ${UPDATE_TRIES} attempts to update lease`, { node: nodeName });
    return false;
  }

  async function round(): Promise<void> {
    if (cached !== undefined && (await update(cached))) return;
    if (stop.aborted) return;
    const ensured = await ensure();
    cached = ensured.kind === 'nothing' ? undefined : ensured.lease;
    if (ensured.kind === 'found') await update(ensured.lease);
  }

  return {
    round,
    async run() {
      for (let first = true; !stop.aborted; first = false) {
        await round();
        await time.sleep(first ? firstWaitMs(intervalMs, nodeName) : jitteredMs(intervalMs, fraction()), stop);
      }
    },
    cached: () => cached,
    onBeat: (listener) => {
      beatListeners.push(listener);
    },
    onPodsChange: (listener) => {
      podsListeners.push(listener);
    },
  };
}
