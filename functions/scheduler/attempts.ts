/** One attempt for each due pod of a pass: decide, then bind, or show why not. */
import { type Backoff, backoffMs } from '../../shared/backoff.ts';
import { defined } from '../../shared/defined.ts';
import type { FleetState } from '../../shared/fleet/fleet-store.ts';
import { gateVerdictFor } from '../../shared/fleet/gate.ts';
import { healthVerdict } from '../../shared/fleet/nodes/health.ts';
import { readHealth } from '../../shared/fleet/nodes/health-store.ts';
import type { QueueStore, WaitingRow } from '../../shared/scheduling/queue-store.ts';
import { isPending, type SchedulablePod } from '../../shared/scheduling/world.rule.ts';
import { StoreFault } from '../../shared/store/item-store.ts';
import type { WorkBudget } from '../../shared/ticks/bounded-work.ts';
import type { WorkDependencies } from '../../shared/ticks/dependencies.ts';
import { bindGroup, GROUP_MAX, type Placement } from './bind.ts';
import type { ClusterCopy } from './cluster-copy.ts';
import { heldDraft, preemptionDraft, type QueueHistory, rejectionDraft, withPreemption } from './decisions.ts';
import * as metric from './metrics.ts';
import { clearNominations, deleteVictims, readBudgets } from './preempt-pods.ts';
import { hasPossibleVictims, type PreemptionBudget, type PreemptionOutcome, preempt } from './preemption.rule.ts';
import { prepareVolumes } from './prepare-volumes.ts';
import { reportRejection } from './report-rejection.ts';
import { type CycleOptions, type NoFit, schedulePod } from './rule.ts';
import { type ClaimStep, volumesOfPod } from './volumes.rule.ts';

/** Refused bindings of one pod in one pass. After them it waits for its backoff. */
const REFUSALS_MAX = 12;
const PAUSES: Backoff = { firstMs: 4, limitMs: 250, jitter: [0.5, 1.5] };

/** A pod that is due. */
export interface DuePod {
  readonly key: string;
  readonly uid: string;
  /** Undefined: it was never tried. */
  readonly row: WaitingRow | undefined;
  readonly queuedAtMs: number;
}

export interface PassContext {
  readonly dependencies: WorkDependencies;
  readonly copy: ClusterCopy;
  readonly queue: QueueStore;
  readonly options: CycleOptions;
  /** The safety gate is closed, and the policy observes it. */
  readonly isHeld: boolean;
  readonly budget: WorkBudget;
  /** Rows of the waiting pods, by key. Kept as they are stored. */
  readonly rows: Map<string, WaitingRow>;
  readonly report: PassCounts;
}

export interface PassCounts {
  bound: number;
  rejected: number;
  errors: number;
  victims: number;
}

/** The options of the rules in this pass. A closed gate is recorded once. */
export async function cycleOptions(
  dependencies: WorkDependencies,
  nodeNames: readonly string[],
  { gate }: FleetState,
): Promise<{ readonly options: CycleOptions; readonly isHeld: boolean }> {
  const { policy, clock, items, ledger } = dependencies;
  const nowMs = clock.nowMs();
  const { percentageOfNodesToScore, defaultTopologySpread } = policy;
  const options = { percentageOfNodesToScore, defaultTopologySpread };
  const verdict = gateVerdictFor(gate, { nowMs, policy });
  if (policy.schedulerGate === 'off' || verdict.kind === 'open') return { options, isHeld: false };
  const health = await readHealth(items, nodeNames);
  const hasRecentHeartbeat = (nodeName: string): boolean => {
    const digest = health.get(nodeName);
    // The grace period that the gate grants to every node proves nothing here.
    return digest !== undefined && healthVerdict(digest, { nowMs, policy, freshSinceMs: 0 }).kind !== 'silent';
  };
  const recent = nodeNames.filter(hasRecentHeartbeat).length;
  const draft = heldDraft(gate, { nowMs, policy, nodes: nodeNames.length, recent });
  // Before the first tick there is no time since when it is closed.
  const sinceMs = gate.reasons.length > 0 ? verdict.sinceMs : (gate.lastTickAtMs ?? 0);
  await ledger.recordOnce(draft, { atMs: sinceMs, key: 'scheduler' });
  return { options: { ...options, hasRecentHeartbeat }, isHeld: true };
}

/** Tries the pods in order. Returns those that were not tried because the time was over. */
export async function tryPods(context: PassContext, due: readonly DuePod[]): Promise<readonly DuePod[]> {
  const attempts = new Attempts(context);
  const waiting = [...due];
  while (waiting.length > 0) {
    if (!context.budget.hasTime()) break;
    const next = waiting.shift()!;
    try {
      waiting.unshift(...(await attempts.run(next, waiting.length === 0)));
    } catch (fault) {
      // A fault of the tables may concern every pod.
      if (fault instanceof StoreFault && fault.retryable) throw fault;
      waiting.unshift(...(await attempts.fault(next, fault)));
    }
  }
  if (waiting.length > 0) waiting.unshift(...(await attempts.flush()));
  return waiting;
}

const queueHistory = ({ row, queuedAtMs }: DuePod): QueueHistory => ({
  queuedAtMs,
  attempt: (row?.rejections ?? 0) + (row?.errors ?? 0) + 1,
});

class Attempts {
  readonly #context: PassContext;
  /** Decided, not yet committed. The snapshot has them as bound. */
  #group: (Placement & { readonly due: DuePod })[] = [];
  readonly #refusals = new Map<string, number>();
  /** As counted in this round, until victims are deleted. */
  #budgets: readonly PreemptionBudget[] | undefined;

  constructor(context: PassContext) {
    this.#context = context;
  }

  /** Returns pods to be tried next: this one, or others that were refused. */
  async run(due: DuePod, isLast: boolean): Promise<readonly DuePod[]> {
    const { copy, options } = this.#context;
    const pod = copy.snapshot.pods.get(due.key);
    if (pod === undefined || pod.uid !== due.uid || !isPending(pod) || pod.isGated) return isLast ? this.flush() : [];
    const { clock, meter } = this.#context.dependencies;
    const startMs = clock.nowMs();
    const volumes = pod.claims.length === 0 ? undefined : volumesOfPod(pod, copy.storedVolumes, copy.snapshot);
    const outcome = schedulePod(pod, copy.snapshot, { ...options, ...defined({ volumes }) });
    const result = outcome.kind === 'fits' ? 'scheduled' : 'unschedulable';
    meter.add(metric.ATTEMPT_DURATION, (clock.nowMs() - startMs) / 1_000, 'Seconds', { result });
    if (outcome.kind === 'fits') {
      const { node } = copy.snapshot.nodes.get(outcome.nodeName)!;
      const steps = volumes?.stepsOn(node) ?? [];
      if (steps.length > 0) {
        // The volumes of a pod are decided on all bindings before it.
        if (this.#group.length > 0) return [...(await this.flush()), due];
        return this.#prepareVolumes(due, outcome.nodeName, steps);
      }
      copy.snapshot.setPod({ ...pod, nodeName: outcome.nodeName });
      this.#group.push({ pod, fit: outcome, queue: queueHistory(due), claims: volumes?.claims ?? [], due });
      return isLast || this.#group.length === GROUP_MAX ? this.flush() : [];
    }
    if (this.#group.length > 0) return [...(await this.flush()), due];
    await this.#reject(pod, due, outcome);
    return [];
  }

  /**
   * Claims volumes for the pod and selects its node for those that are made there. Its room on the node is kept by the
   * nomination until its claims are bound. Returns the pod if something changed meanwhile.
   */
  async #prepareVolumes(due: DuePod, nodeName: string, steps: readonly ClaimStep[]): Promise<readonly DuePod[]> {
    const { copy, dependencies, report } = this.#context;
    const pod = copy.snapshot.pods.get(due.key);
    const object = copy.pending.get(due.key);
    if (pod === undefined || object === undefined) return [];
    const nowMs = dependencies.clock.nowMs();
    const outcome = await prepareVolumes(dependencies, { pod, object, nodeName, steps }, nowMs);
    if (outcome.kind === 'refused') {
      await copy.refresh({ versions: true });
      return this.#withinRefusals([due]);
    }
    copy.bound(outcome.pod);
    report.rejected += 1;
    await this.#wait(pod, due, { plugins: ['VolumeBinding'], isError: false, eventAtMs: due.row?.eventAtMs ?? 0 });
    return [];
  }

  /** Commits the group. Returns the pods that must be decided again. */
  async flush(): Promise<readonly DuePod[]> {
    const { dependencies, copy, report } = this.#context;
    const group = this.#group;
    this.#group = [];
    if (group.length === 0) return [];
    // The copy has only what is stored; a committed binding is added to it.
    for (const { pod } of group) copy.snapshot.setPod(pod);
    const outcome = await bindGroup(dependencies, copy, group);
    report.bound += outcome.bound.length;
    for (let index = 0; index < outcome.bound.length; index += 1) await this.#settleBound(group[index]!);
    if (outcome.cause !== undefined) {
      dependencies.meter.add(metric.COMMIT_REFUSALS, 1, 'Count', { cause: outcome.cause });
    }
    const refused = outcome.refused.map(({ pod }) => group.find((each) => each.pod === pod)!.due);
    const unwritable = outcome.unwritable.map(({ pod }) => group.find((each) => each.pod === pod)!.due);
    for (const due of unwritable) await this.#fail(due);
    if (!outcome.isStale) return refused;
    await this.#pause(refused);
    await copy.refresh({ versions: true });
    return this.#withinRefusals(refused);
  }

  async #settleBound({ due, pod }: Placement & { readonly due: DuePod }): Promise<void> {
    const { dependencies, queue, rows } = this.#context;
    const waitedMs = Math.max(0, dependencies.clock.nowMs() - due.queuedAtMs);
    dependencies.meter.add(metric.SCHEDULING_SLI, waitedMs / 1_000, 'Seconds');
    dependencies.meter.add(metric.POD_SCHEDULING_ATTEMPTS, queueHistory(due).attempt, 'Count');
    if (due.row === undefined) return;
    rows.delete(pod.key);
    await queue.dropRow(pod.key);
  }

  async #pause(refused: readonly DuePod[]): Promise<void> {
    const { pause, random } = this.#context.dependencies;
    const most = Math.max(0, ...refused.map(({ uid }) => this.#refusals.get(uid) ?? 0));
    if (pause === undefined || most === 0) return;
    await pause(backoffMs(PAUSES, most, random.fraction()));
  }

  /** A pod that was refused too often waits for its backoff. */
  async #withinRefusals(refused: readonly DuePod[]): Promise<readonly DuePod[]> {
    const [first, ...others] = refused;
    if (first === undefined) return [];
    const count = (this.#refusals.get(first.uid) ?? 0) + 1;
    this.#refusals.set(first.uid, count);
    if (count <= REFUSALS_MAX) return refused;
    await this.#fail(first);
    return others;
  }

  /** One pod that cannot be decided or written concerns only itself. Returns the pods of its group. */
  async fault(due: DuePod, fault: unknown): Promise<readonly DuePod[]> {
    const { copy, dependencies } = this.#context;
    dependencies.log.error('a pod could not be scheduled', { pod: due.key, error: fault });
    const group = this.#group;
    this.#group = [];
    for (const { pod } of group) copy.snapshot.setPod(pod);
    await this.#fail(due, fault instanceof Error ? fault.message : String(fault));
    return group.flatMap((each) => (each.due === due ? [] : [each.due]));
  }

  /** `message`: shown on the pod. Absent: it was only contended. */
  async #fail(due: DuePod, message?: string): Promise<void> {
    const { copy, report, dependencies } = this.#context;
    report.errors += 1;
    const pod = copy.snapshot.pods.get(due.key);
    const object = copy.pending.get(due.key);
    if (pod === undefined || object === undefined || pod.uid !== due.uid) return;
    let eventAtMs = due.row?.eventAtMs ?? 0;
    if (message !== undefined) {
      const report = { pod, object, reason: 'SchedulerError', message, nominatedNodeName: '', eventAtMs } as const;
      const reported = await reportRejection(dependencies, report, dependencies.clock.nowMs());
      if (reported.stored !== undefined) copy.bound(reported.stored);
      ({ eventAtMs } = reported);
    }
    await this.#wait(pod, due, { plugins: [], isError: true, eventAtMs });
  }

  async #reject(pod: SchedulablePod, due: DuePod, noFit: NoFit): Promise<void> {
    const { dependencies, copy, report } = this.#context;
    const object = copy.pending.get(pod.key);
    if (object === undefined) return;
    report.rejected += 1;
    const nowMs = dependencies.clock.nowMs();
    const preemption = await this.#preemption(pod, noFit);
    const text = preemption === undefined || preemption.kind === 'candidate' ? '' : preemption.text;
    const { nodes } = copy.snapshot;
    const message = withPreemption(noFit.message, text);
    const isCandidate = preemption?.kind === 'candidate';
    const draft = isCandidate
      ? preemptionDraft(pod, preemption, nowMs)
      : rejectionDraft(pod, noFit, { nowMs, nodes, message, preemption: text, queue: queueHistory(due) });
    const nominated = isCandidate ? preemption.chosen.nodeName : preemption?.kind === 'notHelpful' ? '' : undefined;
    const reported = await reportRejection(
      dependencies,
      {
        pod,
        object,
        reason: 'Unschedulable',
        message,
        draft,
        eventAtMs: due.row?.eventAtMs ?? 0,
        ...(nominated === undefined ? {} : { nominatedNodeName: nominated }),
      },
      nowMs,
    );
    const { stored, eventAtMs } = reported;
    if (stored !== undefined) copy.bound(stored);
    await this.#wait(pod, due, { plugins: noFit.plugins, isError: false, eventAtMs });
    if (!isCandidate || stored === undefined) return;
    const { chosen } = preemption;
    const lower = [...copy.snapshot.nominatedTo(chosen.nodeName)].filter(({ priority }) => priority < pod.priority);
    await clearNominations(
      dependencies,
      lower.flatMap(({ key }) => copy.pending.get(key) ?? []),
    );
    this.#budgets = undefined;
    report.victims += await deleteVictims(dependencies, pod, { chosen, nominated: stored, nowMs });
    await copy.refresh();
  }

  /** Undefined: without nodes there is nothing to preempt on. */
  async #preemption(pod: SchedulablePod, noFit: NoFit): Promise<PreemptionOutcome | undefined> {
    const { dependencies, copy, options, isHeld } = this.#context;
    if (copy.snapshot.nodes.size === 0) return undefined;
    const refusal =
      dependencies.policy.preemption === 'off' ? 'policy preemption=off' : isHeld ? 'a closed safety gate' : undefined;
    dependencies.meter.add(metric.PREEMPTION_ATTEMPTS, 1, 'Count');
    const volumes = pod.claims.length === 0 ? undefined : volumesOfPod(pod, copy.storedVolumes, copy.snapshot);
    const asked = { ...options, ...defined({ refusal, volumes }) };
    // A count of all pods of their namespaces: not for a pod that cannot preempt anyway.
    if (hasPossibleVictims(pod, copy.snapshot, { noFit, options: asked }))
      this.#budgets ??= await readBudgets(dependencies);
    return preempt(pod, copy.snapshot, { noFit, options: { ...asked, budgets: this.#budgets ?? [] } });
  }

  /** Stores when the pod is tried again. */
  async #wait(
    pod: SchedulablePod,
    { row, queuedAtMs }: DuePod,
    of: { readonly plugins: WaitingRow['plugins']; readonly isError: boolean; readonly eventAtMs: number },
  ): Promise<void> {
    const { dependencies, copy, queue, rows } = this.#context;
    const next: WaitingRow = {
      key: pod.key,
      uid: pod.uid,
      rejections: (row?.rejections ?? 0) + (of.isError ? 0 : 1),
      errors: of.isError ? (row?.errors ?? 0) + 1 : 0,
      triedAtMs: dependencies.clock.nowMs(),
      plugins: of.plugins,
      isRequeued: false,
      queuedAtMs,
      eventAtMs: of.eventAtMs,
      process: copy.process,
      changesSeen: copy.history.changeCount,
    };
    rows.set(pod.key, next);
    await queue.putRow(next);
  }
}
