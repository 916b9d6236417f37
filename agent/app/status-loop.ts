/**
 * Keeps the status of our Node current (pkg/kubelet/kubelet.go, pkg/kubelet/kubelet_node_status.go).
 *
 * A pass computes the status. It writes it if it changed, or if the last report is nodeStatusReportFrequency old: a
 * status write costs money, and the Lease proves liveness. Passes run one after the other. They and the lease loop do
 * not wait for each other.
 *
 * The local copy of the Node is not watched:
 * - It is the newest answer. The answer to a report is the stored Node, so each report also reads the changes of
 *   others. The next pass corrects those fields that are ours.
 * - It is read again after a failed write, and after `invalidate`. The lease loop calls that after a long time without
 *   a heartbeat, because the controller may have marked the Node Unknown.
 * - A patch from an old copy does no harm: it contains only the fields that we changed.
 *
 * Difference from upstream: a deleted Node (404) is registered again by the next pass, as the controller expects.
 */
import type { KubeNode } from '../../shared/kinds/types.ts';
import type { Log } from '../../shared/observability/log.ts';
import type { AgentConfig } from '../config.ts';
import type { KubeAnswer, KubeApi, KubeRequest } from '../ports/kube-api.ts';
import type { AgentMeter } from '../ports/meter.ts';
import type { AgentTime, Fraction } from '../ports/time.ts';
import { nodePath } from '../rules/lease.ts';
import { type NodeAnswer, nodeAnswer } from '../rules/node-answers.ts';
import { conditionOf } from '../rules/node-conditions.ts';
import type { NodeEvent } from '../rules/node-event.ts';
import { nodeStatusPatch } from '../rules/node-patch.ts';
import { nodeChanged, type ReportState, reportDue } from '../rules/status-report.ts';
import type { ComputedNode } from './node-status.ts';
import type { Registration } from './registration.ts';
import type { SiteStatuses } from './site-statuses.ts';

/** nodeStatusUpdateRetry. */
const ATTEMPTS_MAX = 5;
const JITTER_FACTOR = 0.04;
const FAST_INTERVAL_MS = 100;
/** How long after the start a node that becomes ready reports it at once. Milliseconds. */
const FAST_DURATION_MS = 120_000;
const RETRIES_EXCEEDED = 'update node status exceeds retry count';

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
  /** Called from the second failed attempt of a pass on, to connect again for the next request. */
  readonly onRepeatedFailure: () => void;
  /** Sends the status to the hub of the site, too, while the cluster does not answer. Absent: there is none. */
  readonly siteStatuses?: Pick<SiteStatuses, 'beside'> | undefined;
  /** Whether the node is known not to be ready. The fast loop then skips the computation. */
  readonly isBlocked?: () => boolean;
  /** Applies the pod CIDRs of the Node. Returns whether they are new. */
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
type AttemptOutcome = PassOutcome | { readonly kind: 'retry'; readonly cause: unknown; readonly waitMs: number };

export class StatusLoop {
  readonly #parts: StatusLoopParts;
  #cached: KubeNode | undefined;
  /** The newest Node that was read, also after a failure. */
  #known: KubeNode | undefined;
  #isDeleted = false;
  #report: ReportState = { lastReportAtMs: undefined, delayMs: 0 };
  /** The newest pass or fast attempt: the next one starts after it. */
  #lastWork: Promise<unknown> = Promise.resolve();

  constructor(parts: StatusLoopParts) {
    this.#parts = parts;
    parts.registration.onRegistered((node) => {
      this.#isDeleted = false;
      this.#cached = node;
      this.#known = node;
    });
  }

  /** The local copy of the Node. */
  node(): KubeNode | undefined {
    return this.#cached;
  }

  /** The next pass reads the Node from the server. */
  invalidate(): void {
    this.#cached = undefined;
  }

  /** Runs until stopped. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([this.#runPasses(signal), this.#runFast(signal)]);
  }

  /** One pass, after the current one. Does not reject when the server cannot be reached. */
  pass(signal?: AbortSignal): Promise<PassOutcome> {
    return this.#serialised(() => this.#pass(signal ?? new AbortController().signal));
  }

  /** One round of the loop: registers the Node if necessary, then one pass. */
  async registerAndPass(signal: AbortSignal): Promise<PassOutcome> {
    const { registration } = this.#parts;
    await (this.#isDeleted ? registration.again() : registration.ensure());
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
      if (await this.#serialised(() => this.#fastAttempt(signal))) return;
      await time.sleep(FAST_INTERVAL_MS, signal);
    }
  }

  /** Whether the fast loop has done its work. */
  async #fastAttempt(signal: AbortSignal): Promise<boolean> {
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
    for (let attempt = 1; attempt <= ATTEMPTS_MAX && !signal.aborted; attempt += 1) {
      const outcome = await this.#attempt(attempt === 1, signal);
      if (outcome.kind !== 'retry') {
        meter?.count('nodekeeper_agent_status_passes_total', { outcome: outcome.kind });
        return outcome;
      }
      // The local copy may be outdated. The next attempt, or the next pass, reads the Node.
      this.#cached = undefined;
      last = outcome.cause;
      if (attempt > 1) onRepeatedFailure();
      if (outcome.waitMs > 0 && attempt < ATTEMPTS_MAX) await time.sleep(outcome.waitMs, signal);
    }
    if (signal.aborted) return { kind: 'failed', reason: 'stopped' };
    meter?.count('nodekeeper_agent_status_passes_total', { outcome: 'failed' });
    log.error('the node status could not be updated', { reason: RETRIES_EXCEEDED, cause: last });
    return { kind: 'failed', reason: RETRIES_EXCEEDED };
  }

  async #attempt(isFirst: boolean, signal: AbortSignal): Promise<AttemptOutcome> {
    const { compute, applyPodCidrs } = this.#parts;
    const read = await this.#read(isFirst, signal);
    if (read.kind !== 'read') return read;
    const { node } = read;
    const podCidrsAreNew = (await applyPodCidrs?.(node.spec?.podCIDRs ?? [])) ?? false;
    const computed = await compute(node);
    const due = this.#due(podCidrsAreNew || nodeChanged(node, computed.node));
    if (due === undefined) {
      this.#recordEvents(computed.events);
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
    mayUseCopy: boolean,
    signal: AbortSignal,
  ): Promise<{ readonly kind: 'read'; readonly node: KubeNode } | AttemptOutcome> {
    if (mayUseCopy && this.#cached !== undefined) return { kind: 'read', node: this.#cached };
    const asked = this.#send({ method: 'GET', path: this.#path() }, signal);
    this.#parts.siteStatuses?.beside(asked, this.#statusPath(), () => this.#siteStatus());
    const answer = await asked;
    const read = nodeAnswer(answer, this.#parts.fraction);
    if (read.kind !== 'node') return this.#failure(read);
    this.#cached = read.node;
    this.#known = read.node;
    return { kind: 'read', node: read.node };
  }

  /** What would be written, if the Node is still the one that is known. */
  async #siteStatus(): Promise<KubeRequest | undefined> {
    const known = this.#known;
    return known && this.#statusPatch(known, (await this.#parts.compute(known)).node);
  }

  #statusPatch(from: KubeNode, to: KubeNode): KubeRequest {
    return {
      method: 'PATCH',
      path: this.#statusPath(),
      contentType: 'application/strategic-merge-patch+json',
      body: nodeStatusPatch(from, to) ?? {},
    };
  }

  async #patch(from: KubeNode, computed: ComputedNode, due: Due, signal: AbortSignal): Promise<AttemptOutcome> {
    const request = this.#statusPatch(from, computed.node);
    const asked = this.#send(request, signal);
    this.#parts.siteStatuses?.beside(asked, request.path, async () => request);
    const answer = await asked;
    const written = nodeAnswer(answer, this.#parts.fraction);
    if (written.kind !== 'node') return this.#failure(written);
    this.#cached = written.node;
    this.#known = written.node;
    this.#report = { lastReportAtMs: this.#parts.time.monotonicMs(), delayMs: due.delayMs };
    this.#recordEvents(computed.events);
    return { kind: 'written' };
  }

  #failure(answer: Exclude<NodeAnswer, { kind: 'node' }>): AttemptOutcome {
    if (answer.kind === 'failed') return { kind: 'retry', cause: answer.cause, waitMs: answer.waitMs };
    if (!this.#parts.settings.registerNode) return { kind: 'retry', cause: answer.cause, waitMs: 0 };
    this.#isDeleted = true;
    this.#cached = undefined;
    return { kind: 'gone' };
  }

  #send(request: Parameters<KubeApi['send']>[0], signal: AbortSignal): Promise<KubeAnswer> {
    const { nodeStatusUpdateFrequencyMs, nodeLeaseDurationSeconds } = this.#parts.settings;
    const timeoutMs = Math.min(nodeStatusUpdateFrequencyMs, nodeLeaseDurationSeconds * 1_000);
    return this.#parts.api.send({ ...request, timeoutMs, signal });
  }

  #path(): string {
    return nodePath(this.#parts.settings.nodeName);
  }

  #statusPath(): string {
    return `${this.#path()}/status`;
  }

  #recordEvents(events: readonly NodeEvent[]): void {
    for (const event of events) this.#parts.recordEvent(event);
  }

  /** Starts the work after the previous work, whether that succeeded or failed. */
  #serialised<Result>(work: () => Promise<Result>): Promise<Result> {
    const result = this.#lastWork.then(work, work);
    this.#lastWork = result;
    return result;
  }
}
