/** Reads, creates and renews the Lease of this node. Source: component-helpers/apimachinery/lease/controller.go. */

import { backoffMs } from '../../shared/backoff.ts';
import type { NodeUsage } from '../../shared/fleet/nodes/node-usage.ts';
import type { KubeNode, KubeObject } from '../../shared/kinds/types.ts';
import type { Log } from '../../shared/observability/log.ts';
import type { KubeAnswer, KubeApi, KubeRequest } from '../ports/kube-api.ts';
import type { AgentTime, Fraction } from '../ports/time.ts';
import { ENSURE_LEASE_WAITS, retryAfterWaitMs } from '../rules/backoff.ts';
import { answeredWith, describeAnswer, nodeIn } from '../rules/kube-answer.ts';
import { LEASES_PATH, leasePath, needsOwner, newLease, nodePath, type Renewal, renewedLease } from '../rules/lease.ts';
import { leaseRead, leaseWrite, RENEWAL_ATTEMPTS_MAX, renewedBy } from '../rules/lease-answers.ts';
import { type ClockReading, clockReading } from '../rules/offline-stop.ts';
import { earliestStoredMs } from '../rules/relay-use.ts';
import type { SilenceReport } from './silence-report.ts';

export interface LeaseClientDependencies {
  readonly nodeName: string;
  /** leaseDurationSeconds of the Lease, current. Seconds. */
  readonly durationSeconds: () => number;
  /** Interval of heartbeats, current. Milliseconds. */
  readonly intervalMs: () => number;
  readonly api: KubeApi;
  readonly time: AgentTime;
  readonly fraction: Fraction;
  readonly log: Log;
  /** Stops the loop. Aborted last, before the process exits. */
  readonly stop: AbortSignal;
  /** A request without an answer in this time has failed. Milliseconds. */
  readonly timeoutMs: number;
  /** Registers the deleted Node again. False if it was not registered. */
  readonly registerAgain: () => Promise<boolean>;
  /** What this machine used in the last minute. Absent: not reported. */
  readonly usage?: () => NodeUsage | undefined;
  /** What this machine reports about others of its site. Absent: nothing. */
  readonly silence?: Pick<SilenceReport, 'text' | 'isNews' | 'changed' | 'accepted'> | undefined;
  /**
   * Called with each Lease that the server accepted from us: renewed or created. `isRelayed`: a relay may have made up
   * the answer. `sentAt`: read before the request was sent.
   */
  readonly onAccepted: (lease: KubeObject, isRelayed: boolean, sentAt: ClockReading) => void;
}

type EnsureAttempt =
  | { readonly kind: 'found'; readonly lease: KubeObject }
  | { readonly kind: 'created'; readonly lease: KubeObject; readonly isRelayed: boolean; readonly sentAt: ClockReading }
  /** The Node, which owns the Lease, cannot be read. */
  | { readonly kind: 'noOwner' }
  | { readonly kind: 'failed'; readonly answer: KubeAnswer };

/** `undefined`: stopped, or without an owner; the next round tries again. */
export type EnsuredLease = Extract<EnsureAttempt, { kind: 'found' | 'created' }> | undefined;

export class LeaseClient {
  readonly #dependencies: LeaseClientDependencies;
  /** The earliest time at which the last accepted heartbeat was stored. Monotonic milliseconds. */
  #storedAtMs: number | undefined;
  #hasReadNode = false;

  constructor(dependencies: LeaseClientDependencies) {
    this.#dependencies = dependencies;
  }

  /** Reads or creates the Lease. Retries until it succeeds, or until stopped. */
  async ensure(): Promise<EnsuredLease> {
    const { nodeName, log, stop, onAccepted } = this.#dependencies;
    for (let attempt = 0; !stop.aborted; attempt += 1) {
      const ensured = await this.#readOrCreate();
      if (ensured.kind === 'created') onAccepted(ensured.lease, ensured.isRelayed, ensured.sentAt);
      if (ensured.kind === 'noOwner') return undefined;
      if (ensured.kind !== 'failed') return ensured;
      const waitMs = backoffMs(ENSURE_LEASE_WAITS, attempt);
      log.warn('the Lease could be neither read nor created', {
        node: nodeName,
        why: this.#whyNoLease(ensured.answer),
        waitMs,
      });
      await this.#wait(ensured.answer, waitMs);
    }
    return undefined;
  }

  /** Renews this Lease, or the stored one after a conflict. False if all attempts failed. */
  async renew(lease: KubeObject): Promise<boolean> {
    const { nodeName, intervalMs, api, time, log, stop, silence, onAccepted } = this.#dependencies;
    let base: KubeObject | undefined = lease;
    for (let attempt = 1; attempt <= RENEWAL_ATTEMPTS_MAX && !stop.aborted; attempt += 1) {
      const silentMachines = silence?.text();
      const isUrgent = silence?.isNews() ?? false;
      const body = await this.#renewalOf(base, silentMachines);
      if (body === undefined) continue;
      const renewal = {
        method: 'PUT',
        path: leasePath(nodeName),
        body,
        prefersMinimal: true,
        heartbeat: {
          intervalMs: intervalMs(),
          storedAtMs: this.#storedAtMs,
          ...(isUrgent ? { isUrgent } : { becomesUrgent: silence?.changed() }),
        },
      } as const;
      const fromMs = time.monotonicMs();
      const sentAt = clockReading(time);
      const answer = await this.#send(renewal);
      const written = leaseWrite(answer, nodeName);
      if (written.kind === 'written') {
        const isRelayed = isFromRelay(answer);
        this.#storedAtMs = earliestStoredMs({ fromMs, answeredAtMs: time.monotonicMs(), isRelayed });
        silence?.accepted(silentMachines);
        onAccepted(renewedBy(body, written.lease), isRelayed, sentAt);
        return true;
      }
      log.warn('the Lease was not renewed', { node: nodeName, why: this.#whyNoLease(answer), attempt });
      if (written.kind === 'conflict') {
        base = (await this.ensure())?.lease;
        continue;
      }
      if (attempt > 1) api.reconnect();
      if (attempt < RENEWAL_ATTEMPTS_MAX) await this.#wait(answer, 0);
    }
    if (!stop.aborted) log.error(`failed ${RENEWAL_ATTEMPTS_MAX} attempts to update lease`, { node: nodeName });
    return false;
  }

  async #readOrCreate(): Promise<EnsureAttempt> {
    const { nodeName } = this.#dependencies;
    const found = await this.#send({ method: 'GET', path: leasePath(nodeName) });
    const read = leaseRead(found, nodeName);
    if (read.kind === 'found') return read;
    if (read.kind === 'failed') return { kind: 'failed', answer: found };
    const node = await this.#owner();
    if (node === undefined) return { kind: 'noOwner' };
    const sentAt = clockReading(this.#dependencies.time);
    const created = await this.#send({ method: 'POST', path: LEASES_PATH, body: newLease(node, this.#timing()) });
    const written = leaseWrite(created, nodeName);
    if (written.kind !== 'written') return { kind: 'failed', answer: created };
    return { kind: 'created', lease: written.lease, isRelayed: isFromRelay(created), sentAt };
  }

  /** The body of the PUT. Undefined without a base, or if the base has no owner and the Node cannot be read. */
  async #renewalOf(base: KubeObject | undefined, silentMachines: string | undefined): Promise<KubeObject | undefined> {
    if (base === undefined) return undefined;
    if (!needsOwner(base)) return renewedLease(base, { ...this.#timing(), silentMachines });
    const node = await this.#owner();
    return node === undefined ? undefined : renewedLease(base, { ...this.#timing(), silentMachines, node });
  }

  /** The Node that owns the Lease. Registers it again if it was deleted. Undefined if it cannot be read. */
  async #owner(): Promise<KubeNode | undefined> {
    const { nodeName, log, registerAgain } = this.#dependencies;
    const { node, answer } = await this.#readNode();
    if (node !== undefined) return node;
    if (!answeredWith(answer, 404)) {
      log.warn('the Node that owns the Lease cannot be read', { node: nodeName, why: describeAnswer(answer) });
      return undefined;
    }
    // At a first start, the loops begin side by side.
    if (this.#hasReadNode) log.warn('the Node no longer exists', { node: nodeName });
    return (await registerAgain()) ? (await this.#readNode()).node : undefined;
  }

  async #readNode(): Promise<{ readonly answer: KubeAnswer; readonly node: KubeNode | undefined }> {
    const { nodeName } = this.#dependencies;
    const answer = await this.#send({ method: 'GET', path: nodePath(nodeName) });
    const node = answeredWith(answer, 200) ? nodeIn(answer, nodeName) : undefined;
    this.#hasReadNode ||= node !== undefined;
    return { answer, node };
  }

  #send(request: KubeRequest): Promise<KubeAnswer> {
    const { api, timeoutMs, stop } = this.#dependencies;
    return api.send({ ...request, timeoutMs, signal: stop });
  }

  #timing(): Omit<Renewal, 'node'> {
    const { durationSeconds, time, usage } = this.#dependencies;
    return { leaseDurationSeconds: durationSeconds(), nowMs: time.nowMs(), usage: usage?.() };
  }

  #whyNoLease(answer: KubeAnswer): string {
    return answeredWith(answer, 200, 201)
      ? `${describeAnswer(answer)}, but the answer is not the Lease ${this.#dependencies.nodeName}`
      : describeAnswer(answer);
  }

  /** Waits for the Retry-After of the answer, but at least `atLeastMs`. */
  async #wait(answer: KubeAnswer, atLeastMs: number): Promise<void> {
    const { time, fraction, stop } = this.#dependencies;
    const retryAfterMs = answer.kind === 'answered' ? retryAfterWaitMs(answer, fraction()) : 0;
    const waitMs = Math.max(atLeastMs, retryAfterMs);
    if (waitMs > 0) await time.sleep(waitMs, stop);
  }
}

const isFromRelay = (answer: KubeAnswer): boolean => answer.kind === 'answered' && answer.isRelayed === true;
