/**
 * The read-only storage of decisions. With a field selector that names their subject (`node=n1`, `pod=default/web-0`,
 * `zone=…`, `about.kind=Fleet`) a list is one query. Without one it reads all decisions.
 */

import type { KindStorage } from '../../api/kind-storage.ts';
import { type ResourceStorage, readOnlyStorage } from '../../api/resource-storage.ts';
import { uidOfName } from '../../api/uid-of-name.ts';
import type { Clock } from '../../clock.ts';
import { type DecisionAbout, WORKLOAD_KINDS } from '../../decisions/decision-record.ts';
import { type DecisionStore, decisionStore, type NamedDecision } from '../../decisions/decision-store.ts';
import { defined } from '../../defined.ts';
import type { FieldSelector } from '../../kubernetes/selectors.ts';
import { badRequest } from '../../kubernetes/status.ts';
import { RESOURCE_VERSIONS_PER_MS } from '../../store/layout.ts';
import type { KubeObject } from '../types.ts';
import { decisionObject, decisions } from './serve.ts';

const objectOf = ({ name, record }: NamedDecision): KubeObject =>
  decisionObject(name, record, record.atMs * RESOURCE_VERSIONS_PER_MS, uidOfName(name));

/** The subject in a field selector, undefined when it has none. @throws StatusError 400 for a pod without namespace */
function decisionsAbout(fields: Pick<FieldSelector, 'exact'>): DecisionAbout | undefined {
  const node = fields.exact('node');
  if (node !== undefined) return { kind: 'Node', name: node };
  const pod = fields.exact('pod');
  if (pod !== undefined) {
    const [namespace, name, ...more] = pod.split('/');
    if (name === undefined || more.length > 0) {
      throw badRequest(`field label pod: expected NAMESPACE/NAME, not ${JSON.stringify(pod)}`);
    }
    return { kind: 'Pod', namespace: namespace!, name };
  }
  const zone = fields.exact('zone');
  if (zone !== undefined) return { kind: 'Zone', name: zone };
  const kind = fields.exact('about.kind');
  const name = fields.exact('about.name');
  if (kind === 'Fleet') return { kind, name: 'fleet' };
  if (name === undefined) return undefined;
  if (kind === 'Node' || kind === 'Zone') return { kind, name };
  const namespace = fields.exact('about.namespace');
  const known = ['Pod' as const, ...WORKLOAD_KINDS].find((each) => each === kind);
  return known === undefined || namespace === undefined ? undefined : { kind: known, namespace, name };
}

export function decisionStorage(decisions: DecisionStore, clock: Clock): ResourceStorage {
  return readOnlyStorage({
    async get(_namespace, name) {
      const found = await decisions.get(name, clock.nowMs());
      return found === undefined ? undefined : objectOf(found);
    },
    async list({ limit, continueAfter, fields }) {
      const about = fields === undefined ? undefined : decisionsAbout(fields);
      const page = await decisions.list({
        nowMs: clock.nowMs(),
        limit,
        ...defined({ about, continueAfter }),
      });
      return {
        items: page.decisions.map(objectOf),
        positions: page.decisions.map(({ name, position = name }) => position),
        ...defined({ next: page.next }),
      };
    },
    listVersion: async () => String(clock.nowMs() * RESOURCE_VERSIONS_PER_MS),
    readsInsteadOfLog: () => true,
    // A watch reads every few seconds. Reading all decisions each time would cost too much.
    refusesWatch: (fields) =>
      decisionsAbout(fields) === undefined
        ? 'a watch of decisions names what they are about: --field-selector node=NAME, pod=NAMESPACE/NAME, zone=KEY or about.kind=Fleet'
        : undefined,
  });
}

export const decisionStorages: readonly KindStorage[] = [
  [decisions, (_, { items, clock }) => decisionStorage(decisionStore(items), clock)],
];
