/**
 * Decides for each new pod whether this node runs it: one after the other, in the order of their creation, before any
 * of them starts. A pod that already runs stays admitted.
 */
import type { KubeNode } from '../../../shared/kinds/types.ts';
import { type Admission, admitPod, type Refusal } from '../../rules/pod-admission.ts';
import { rejectedStatus } from '../../rules/pod-status.ts';
import type { PodLoopDependencies } from './dependencies.ts';
import { ownNode } from './own-node.ts';
import { byAge, countsOnNode, isDeleted, logFields, type PodEntry } from './pod-entry.ts';

export class PodAdmissions {
  readonly #dependencies: PodLoopDependencies;
  readonly #entries: ReadonlyMap<string, PodEntry>;

  constructor(dependencies: PodLoopDependencies, entries: ReadonlyMap<string, PodEntry>) {
    this.#dependencies = dependencies;
    this.#entries = entries;
  }

  /** @returns false when the Node could not be read: pods then still wait for their admission */
  async decide(runningUids: ReadonlySet<string>, stop?: AbortSignal): Promise<boolean> {
    const waiting = [...this.#entries.values()]
      .filter((each) => each.present && each.admission === 'waiting' && !isDeleted(each))
      .sort(byAge);
    for (const entry of waiting) if (runningUids.has(entry.uid)) this.#adopt(entry);
    const fresh = waiting.filter(({ uid }) => !runningUids.has(uid));
    if (fresh.length === 0) return true;
    const refusals = new Map(fresh.map((entry) => [entry, this.#refusalBefore(entry)]));
    const isNodeNeeded = fresh.some((entry) => refusals.get(entry) === undefined);
    const node = isNodeNeeded ? await ownNode(this.#dependencies, 'no pod is admitted', stop) : undefined;
    for (const entry of fresh) {
      const verdict = refusals.get(entry) ?? (node === undefined ? undefined : this.#verdictOn(entry, node));
      if (verdict === undefined) return false;
      if (verdict.kind === 'refused') this.#refuse(entry, verdict);
      else entry.admission = 'admitted';
    }
    return true;
  }

  /** Admits a pod while the API, which alone has the Node, does not answer. */
  admitWithoutNode(entry: PodEntry, isRunning: boolean): void {
    if (isRunning) {
      this.#adopt(entry);
      return;
    }
    const verdict = this.#refusalBefore(entry) ?? this.#dependencies.topology.admit(entry.pod);
    if (verdict.kind === 'refused') this.#refuse(entry, verdict);
    else entry.admission = 'admitted';
  }

  #adopt(entry: PodEntry): void {
    const { topology, log } = this.#dependencies;
    const verdict = topology.admit(entry.pod);
    if (verdict.kind === 'refused') {
      log.warn('a running pod would not be admitted now', { ...logFields(entry), ...verdict });
    }
    entry.admission = 'admitted';
    entry.adopted = true;
  }

  /** Why this pod is refused, whatever its Node is like; undefined if that is not known yet. */
  #refusalBefore({ pod }: PodEntry): Refusal | undefined {
    const { runtime, gate } = this.#dependencies;
    if (runtime.refusal !== undefined) return { kind: 'refused', ...runtime.refusal };
    const verdict = gate(pod);
    return verdict.kind === 'refused' ? verdict : undefined;
  }

  #verdictOn(entry: PodEntry, node: KubeNode): Admission {
    const { operatingSystem, topology, runtime } = this.#dependencies;
    const { declaredFeatures = [] } = runtime;
    const others = [...this.#entries.values()].filter((each) => each !== entry && countsOnNode(each));
    const facts = { node, others: others.map(({ pod }) => pod), operatingSystem, declaredFeatures };
    const verdict = admitPod({ ...facts, pod: entry.pod });
    return verdict.kind === 'refused' ? verdict : topology.admit(entry.pod);
  }

  #refuse(entry: PodEntry, { reason, message }: Refusal): void {
    const { time, meter, log, recordEvent } = this.#dependencies;
    entry.admission = 'refused';
    entry.status = rejectedStatus(entry.pod.status ?? {}, { reason, message }, time.nowMs());
    meter.count('kubelet_admission_rejections_total', { reason });
    recordEvent(entry.pod, { type: 'Warning', reason, message });
    log.info('a pod was refused', { ...logFields(entry), reason, message });
  }
}
