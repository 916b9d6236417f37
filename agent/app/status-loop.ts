/**
 * Keeps the status of our Node right (pkg/kubelet/kubelet.go, pkg/kubelet/kubelet_node_status.go).
 *
 * A pass computes the status and writes it when it changed, or when the last report is nodeStatusReportFrequency old: the
 * server charges for a status write, and liveness is the business of the Lease. Passes are serialised; the lease loop is
 * never waited for, nor does it wait for us.
 *
 * There is no watch behind the local copy of the Node: it is the last answer we got, and the answer to a report is the Node
 * as it is then. So what others wrote is seen once a report, without a request of its own, and what of it is ours to set
 * right is so in the pass after it. The Node is read when a write failed, and when somebody says that the copy may be
 * outdated (`invalidate`), as the lease loop does after a silence in which the controller may have marked the Node Unknown.
 * A patch made from an old copy does no harm: it names only what we changed.
 *
 * Difference to upstream: a Node that is gone (404) is registered again by the next pass, as the controller expects.
 */
import type { KubeNode } from '../../shared/kube/types.ts';
import type { Log } from '../../shared/ports/log.ts';
import type { AgentConfig } from '../config.ts';
import type { KubeAnswer, KubeApi } from '../ports/kube-api.ts';
import type { AgentMeter } from '../ports/meter.ts';
import type { AgentTime, Fraction } from '../ports/time.ts';
import { retryAfterWaitMs } from '../rules/backoff.ts';
import { answeredWith, objectIn } from '../rules/kube-answer.ts';
import { nodePath } from '../rules/lease.ts';
import { conditionOf } from '../rules/node-conditions.ts';
import type { NodeEvent } from '../rules/node-event.ts';
import { nodeStatusPatch } from '../rules/node-patch.ts';
import { nodeChanged, type ReportState, reportDue } from '../rules/status-report.ts';
import type { ComputedNode } from './node-status.ts';
import type { Registration } from './registration.ts';

const TRIES_MAX = 5;
const JITTER_FACTOR = 0.04;
const FAST_INTERVAL_MS = 100;
/** How long after the start a node that becomes ready says so at once. */
const FAST_DURATION_MS = 120_000;
const EXCEEDED = 'update node status exceeds retry count';

export interface StatusLoopParts {
  readonly settings: Pick<
    AgentConfig,
    | 'nodeName'
    | 'registerNode'
    | 'nodeLeaseDurationSeconds'
    | 'nodeStatusUpdateFrequencyMs'
    | 'nodeStatusReportFrequencyMs'
  >;
  readonly api: KubeApi;
  readonly time: AgentTime;
  readonly fraction: Fraction;
  readonly log: Log;
  readonly meter?: AgentMeter;
  readonly compute: (node: KubeNode) => Promise<ComputedNode>;
  readonly registration: Registration;
  readonly recordEvent: (event: NodeEvent) => void;
  /** From the second failing try of a pass on: so that the next request dials again. */
  readonly onRepeatedFailure: () => void;
  /** Whether something is known to keep the node from being ready; spares the fast loop the computation. */
  readonly isBlocked?: () => boolean;
  /** Told of the pod CIDRs of the Node; answers whether they are new. */
  readonly applyPodCidrs?: (podCidrs: readonly string[]) => Promise<boolean>;
}

export type PassOutcome =
  | { readonly kind: 'written' }
  /** Nothing changed and no report was due. */
  | { readonly kind: 'quiet' }
  /** The Node does not exist; the next pass registers it. */
  | { readonly kind: 'gone' }
  | { readonly kind: 'failed'; readonly reason: string };

type Due = NonNullable<ReturnType<typeof reportDue>>;
type TryOutcome = PassOutcome | { readonly kind: 'retry'; readonly cause: unknown; readonly waitMs: number };

export class StatusLoop {
  readonly #parts: StatusLoopParts;
  #cached: KubeNode | undefined;
  #gone = false;
  #report: ReportState = { lastReportAtMs: undefined, delayMs: 0 };
  /** End of the last pass that was let in. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(parts: StatusLoopParts) {
    this.#parts = parts;
    parts.registration.onRegistered((node) => {
      this.#gone = false;
      this.#cached = node;
    });
  }

  /** The Node as we last saw it. */
  node(): KubeNode | undefined {
    return this.#cached;
  }

  /** The next pass reads the Node from the server. */
  invalidate(): void {
    this.#cached = undefined;
  }

  /** Runs until told to stop. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([this.#runPasses(signal), this.#runFast(signal)]);
  }

  /** One pass, behind the one that may be going on. Never rejects for want of a server. */
  pass(signal?: AbortSignal): Promise<PassOutcome> {
    return this.#inTurn(() => this.#pass(signal ?? new AbortController().signal));
  }

  /** What the loop does each time it wakes: registers the Node unless that has worked already, then one pass. */
  async registerAndPass(signal: AbortSignal): Promise<PassOutcome> {
    const { registration } = this.#parts;
    await (this.#gone ? registration.again() : registration.ensure());
    return this.pass(signal);
  }

  async #runPasses(signal: AbortSignal): Promise<void> {
    const { time, fraction, settings } = this.#parts;
    while (!signal.aborted) {
      await this.registerAndPass(signal);
      await time.sleep(settings.nodeStatusUpdateFrequencyMs * (1 + fraction() * JITTER_FACTOR), signal);
    }
  }

  async #runFast(signal: AbortSignal): Promise<void> {
    const { time } = this.#parts;
    const endsAtMs = time.monotonicMs() + FAST_DURATION_MS;
    while (!signal.aborted && time.monotonicMs() < endsAtMs) {
      if (await this.#inTurn(() => this.#fastTry(signal))) return;
      await time.sleep(FAST_INTERVAL_MS, signal);
    }
  }

  /** Whether the fast loop is through. */
  async #fastTry(signal: AbortSignal): Promise<boolean> {
    const cached = this.#cached;
    const before = conditionOf(cached?.status?.conditions, 'Ready');
    if (cached === undefined || before === undefined) return false;
    if (before.status === 'True') return true;
    if (this.#parts.isBlocked?.() === true) return false;
    const computed = await this.#parts.compute(cached);
    if (conditionOf(computed.node.status?.conditions, 'Ready')?.status !== 'True') return false;
    const due = this.#due(true);
    const outcome = due === undefined ? undefined : await this.#patch(cached, computed, due, signal);
    if (outcome?.kind !== 'written') await this.#pass(signal);
    return true;
  }

  async #pass(signal: AbortSignal): Promise<PassOutcome> {
    const { log, meter, time, onRepeatedFailure } = this.#parts;
    let last: unknown;
    for (let tries = 0; tries < TRIES_MAX && !signal.aborted; tries += 1) {
      const outcome = await this.#try(tries === 0, signal);
      if (outcome.kind !== 'retry') {
        meter?.count('nodekeeper_agent_status_passes_total', { outcome: outcome.kind });
        return outcome;
      }
      // What we know of the Node is in doubt now; the next try, and the next pass, read it.
      this.#cached = undefined;
      last = outcome.cause;
      if (tries > 0) onRepeatedFailure();
      if (outcome.waitMs > 0 && tries + 1 < TRIES_MAX) await time.sleep(outcome.waitMs, signal);
    }
    if (signal.aborted) return { kind: 'failed', reason: 'told to stop' };
    meter?.count('nodekeeper_agent_status_passes_total', { outcome: 'failed' });
    log.error('the node status could not be updated', { reason: EXCEEDED, cause: last });
    return { kind: 'failed', reason: EXCEEDED };
  }

  async #try(first: boolean, signal: AbortSignal): Promise<TryOutcome> {
    const { compute, applyPodCidrs } = this.#parts;
    const read = await this.#read(first, signal);
    if (read.kind !== 'read') return read;
    const { node } = read;
    const podCidrsAreNew = (await applyPodCidrs?.(node.spec?.podCIDRs ?? [])) ?? false;
    const computed = await compute(node);
    const due = this.#due(podCidrsAreNew || nodeChanged(node, computed.node));
    if (due === undefined) {
      this.#tell(computed.events);
      return { kind: 'quiet' };
    }
    return this.#patch(node, computed, due, signal);
  }

  #due(changed: boolean): Due | undefined {
    const { settings, time, fraction } = this.#parts;
    return reportDue(this.#report, {
      changed,
      nowMs: time.monotonicMs(),
      reportFrequencyMs: settings.nodeStatusReportFrequencyMs,
      fraction,
    });
  }

  async #read(
    first: boolean,
    signal: AbortSignal,
  ): Promise<{ readonly kind: 'read'; readonly node: KubeNode } | TryOutcome> {
    if (first && this.#cached !== undefined) return { kind: 'read', node: this.#cached };
    const answer = await this.#send({ method: 'GET', path: this.#path() }, signal);
    const node = answeredWith(answer, 200) ? objectIn<KubeNode>(answer) : undefined;
    if (node === undefined) return this.#failure(answer);
    this.#cached = node;
    return { kind: 'read', node };
  }

  async #patch(from: KubeNode, computed: ComputedNode, due: Due, signal: AbortSignal): Promise<TryOutcome> {
    const answer = await this.#send(
      {
        method: 'PATCH',
        path: `${this.#path()}/status`,
        contentType: 'application/strategic-merge-patch+json',
        body: nodeStatusPatch(from, computed.node) ?? {},
      },
      signal,
    );
    const stored = answeredWith(answer, 200) ? objectIn<KubeNode>(answer) : undefined;
    if (stored === undefined) return this.#failure(answer);
    this.#cached = stored;
    this.#report = { lastReportAtMs: this.#parts.time.monotonicMs(), delayMs: due.delayMs };
    this.#tell(computed.events);
    return { kind: 'written' };
  }

  #failure(answer: KubeAnswer): TryOutcome {
    if (answer.kind === 'failed') return { kind: 'retry', cause: answer.cause, waitMs: 0 };
    if (answer.status === 404 && this.#parts.settings.registerNode) {
      this.#gone = true;
      this.#cached = undefined;
      return { kind: 'gone' };
    }
    const waitMs = retryAfterWaitMs(answer, this.#parts.fraction());
    return { kind: 'retry', cause: { status: answer.status, body: answer.body }, waitMs };
  }

  #send(request: Parameters<KubeApi['send']>[0], signal: AbortSignal): Promise<KubeAnswer> {
    const { nodeStatusUpdateFrequencyMs, nodeLeaseDurationSeconds } = this.#parts.settings;
    const timeoutMs = Math.min(nodeStatusUpdateFrequencyMs, nodeLeaseDurationSeconds * 1_000);
    return this.#parts.api.send({ ...request, timeoutMs, signal });
  }

  #path(): string {
    return nodePath(this.#parts.settings.nodeName);
  }

  #tell(events: readonly NodeEvent[]): void {
    for (const event of events) this.#parts.recordEvent(event);
  }

  /** One after the other, whatever became of the one before. */
  #inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const turn = this.#turn.then(work, work);
    this.#turn = turn;
    return turn;
  }
}
