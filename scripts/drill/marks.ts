/** Marks of nodes. The machines beat all the time, so each mark is false. */
import type { SendRequest } from '../../demo/fleet/api-client.ts';
import type { KubeEvent, KubeNode } from '../../shared/kinds/types.ts';
import { listAll } from './workloads.ts';

const MARKS = '/api/v1/events?fieldSelector=reason%3DNodeNotReady';
const TAINTS = new Set(['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable']);

export const isMarked = ({ spec, status }: KubeNode): boolean =>
  status?.conditions?.find(({ type }) => type === 'Ready')?.status !== 'True' ||
  (spec?.taints ?? []).some(({ key = '' }) => TAINTS.has(key));

/** From the watch and from the events: a watch that begins again misses what was marked and repaired meanwhile. */
export class FalseMarks {
  readonly #send: SendRequest;
  readonly #marked = new Set<string>();
  /** Events that were counted, with their count. */
  #counted: ReadonlyMap<string, number> = new Map();

  constructor(send: SendRequest) {
    this.#send = send;
  }

  see(node: KubeNode): void {
    if (isMarked(node)) this.#marked.add(node.metadata.name ?? '');
  }

  /** Nodes since the last call. */
  async take(): Promise<readonly string[]> {
    const marked = new Set(this.#marked);
    this.#marked.clear();
    const counts = new Map<string, number>();
    for (const { metadata, involvedObject, count = 1 } of (await listAll(this.#send, MARKS)) as readonly KubeEvent[]) {
      const uid = metadata.uid ?? '';
      counts.set(uid, count);
      if (count > (this.#counted.get(uid) ?? 0)) marked.add(involvedObject?.name ?? '');
    }
    this.#counted = counts;
    return [...marked];
  }
}
