/**
 * Namespaces: the objects that each of them has, and their deletion.
 *
 * A deletion marks the namespace, and the API refuses new objects in it. This controller deletes its pods, when none is
 * left the objects of every other stored kind, and removes its finalizer after a pass that found none. A pass removes
 * at most REMOVALS_MAX objects; the next one is due a second later. Each removal is conditional on the version that was
 * read, so passes may run twice or at once.
 *
 * Cost of a pass: a read of half a unit per kind and definition, and the removals. A namespace that is not terminating
 * costs nothing.
 */
import { defined } from '../../../shared/defined.ts';
import { contentOf, contentRefs, noAuthorities, repairedContent } from '../../../shared/kinds/namespaces/contents.ts';
import { storedResources } from '../../../shared/kinds/resources.ts';
import type { StoredResource } from '../../../shared/kinds/stored-resource.ts';
import type { KubeNamespace, KubeObject, ObjectRef } from '../../../shared/kinds/types.ts';
import { parseTimeMs } from '../../../shared/kubernetes/time.ts';
import type { ObjectWrite } from '../../../shared/store/object-store.ts';
import { inParts, UNBOUNDED, workInHalves, workThrough } from '../../../shared/ticks/bounded-work.ts';
import { deletionWrite } from '../deletion-write.ts';
import type { WorkloadDependencies } from '../dependencies.ts';
import { refOfObject, unchanged } from '../owner.ts';
import { customNamespacedKinds } from '../stored-kinds.ts';
import {
  type DeletionPass,
  finalizedNamespace,
  isFinalizedByUs,
  nextLookMs,
  type RemainingObjects,
  withConditions,
} from './rule.ts';

/** Objects of one kind that one pass removes. A kind with more of them is continued by the next pass. */
const REMOVALS_MAX = 500;
/** Objects of one commit: item, index entries and a share of the log each, below the 100 items of a transaction. */
const OBJECTS_PER_COMMIT = 16;
const CONCURRENCY_MAX = 8;
/** Passes of one sync: one that removes objects, and one that finds none. */
const PASSES_MAX = 3;
const CONTINUE_MS = 1_000;
/** Pages of REMOVALS_MAX objects that one pass reads of a kind. */
const PAGES_MAX = 40;

const contents: readonly StoredResource[] = storedResources.filter(
  (each) => each.namespaced && each.verbs.includes('delete') && each.resource !== 'pods',
);

export const namespaceRef = (name: string): ObjectRef => ({ resource: 'namespaces', namespace: '', name });

export interface NamespaceReport {
  /** When to look again. Epoch milliseconds; absent: at the next change. */
  readonly lookAgainAtMs?: number;
}

const DONE: NamespaceReport = {};

type Dependencies = Pick<WorkloadDependencies, 'objects' | 'clock' | 'random' | 'apiAuthorities' | 'definitions'>;

export async function syncNamespace(dependencies: Dependencies, name: string): Promise<NamespaceReport> {
  const namespace: KubeNamespace | undefined = await dependencies.objects.get(namespaceRef(name));
  if (namespace === undefined) return DONE;
  if (namespace.metadata.deletionTimestamp !== undefined) return terminate(dependencies, namespace);
  await ensureContents(dependencies, namespace);
  return DONE;
}

/**
 * Objects that are created again, or repaired. The commit is refused if the namespace changed, so it does not
 * terminate.
 */
async function ensureContents(
  { objects, clock, random, apiAuthorities = noAuthorities }: Dependencies,
  namespace: KubeNamespace,
): Promise<void> {
  const name = namespace.metadata.name ?? '';
  const refs = contentRefs(name);
  const found = await objects.getMany(refs);
  const writes = refs.flatMap((ref, index): ObjectWrite[] => {
    const previous = found[index];
    if (previous === undefined) {
      return [
        { kind: 'create', ref, object: contentOf(ref, { nowMs: clock.nowMs(), uuid: random.uuid, apiAuthorities }) },
      ];
    }
    const object = repairedContent(previous, apiAuthorities);
    return object === previous ? [] : [{ kind: 'update', ref, object, previous }];
  });
  if (writes.length === 0) return;
  // Refused when another worker was first, or the namespace changed: that change starts a sync of its own.
  await objects.commit({ writes, extra: [unchanged(namespaceRef(name), namespace)] });
}

async function terminate(dependencies: Dependencies, namespace: KubeNamespace): Promise<NamespaceReport> {
  if (isFinalizedByUs(namespace)) return DONE;
  const name = namespace.metadata.name ?? '';
  let outcome: PassOutcome = { remaining: [], failures: [], hasMore: false, removed: 0 };
  for (let pass = 1; pass <= PASSES_MAX; pass += 1) {
    outcome = await deleteContents(dependencies, name);
    if (outcome.hasMore || outcome.removed === 0) break;
  }
  const nowMs = dependencies.clock.nowMs();
  if (outcome.hasMore || outcome.removed > 0) return { lookAgainAtMs: nowMs + CONTINUE_MS };
  if (outcome.remaining.length === 0 && outcome.failures.length === 0) return finalize(dependencies, namespace);
  const next = withConditions(namespace, outcome, nowMs);
  // A refused write is repeated by the next look.
  if (next !== undefined) await update(dependencies, namespace, next);
  const deletedAtMs = parseTimeMs(namespace.metadata.deletionTimestamp) ?? nowMs;
  return { lookAgainAtMs: nextLookMs(outcome, deletedAtMs, nowMs) };
}

async function finalize(dependencies: Dependencies, namespace: KubeNamespace): Promise<NamespaceReport> {
  const next = finalizedNamespace(namespace);
  const outcome =
    next === undefined
      ? await dependencies.objects.commit({ writes: [{ kind: 'delete', ref: refOf(namespace), previous: namespace }] })
      : await update(dependencies, namespace, next);
  // Another writer changed it: its finalizers are evaluated again.
  return outcome.kind === 'committed' ? DONE : { lookAgainAtMs: dependencies.clock.nowMs() + CONTINUE_MS };
}

const refOf = (namespace: KubeNamespace): ObjectRef => namespaceRef(namespace.metadata.name ?? '');

const update = ({ objects }: Dependencies, previous: KubeNamespace, object: KubeNamespace) =>
  objects.commit({ writes: [{ kind: 'update', ref: refOf(previous), object, previous }] });

interface PassOutcome extends DeletionPass {
  /** Some kinds have more objects than a pass removes. */
  readonly hasMore: boolean;
  /** Objects that were removed or marked. */
  readonly removed: number;
}

async function deleteContents(dependencies: Dependencies, namespace: string): Promise<PassOutcome> {
  const found: KindOutcome[] = [];
  const failures: string[] = [];
  const work = async (kind: Contained): Promise<void> => {
    try {
      found.push(await deleteKind(dependencies, kind, namespace));
    } catch (fault) {
      failures.push(`${kind.resource}: ${fault instanceof Error ? fault.message : 'unknown fault'}`);
    }
  };
  const options = { concurrencyMax: CONCURRENCY_MAX, budget: UNBOUNDED };
  await work({ group: '', resource: 'pods' });
  // A running pod keeps what protects it, such as its NetworkPolicies (KEP-5080).
  if (found.some(({ remaining, hasMore }) => remaining.count === 0 && !hasMore)) {
    await workThrough([...contents, ...(await customNamespacedKinds(dependencies))], options, work);
  }
  return {
    remaining: found.map(({ remaining }) => remaining).filter(({ count }) => count > 0),
    failures,
    hasMore: found.some(({ hasMore }) => hasMore),
    removed: found.reduce((sum, { removed }) => sum + removed, 0),
  };
}

interface Contained {
  readonly group: string;
  /** Name in the store. */
  readonly resource: string;
  /** Absent: `resource`. */
  readonly plural?: string;
}

interface KindOutcome {
  readonly remaining: RemainingObjects;
  readonly hasMore: boolean;
  readonly removed: number;
}

/**
 * Pages until REMOVALS_MAX objects can be removed. Objects that are marked and held do not count: behind them are
 * others that nothing has marked. `namespace` '': all of them.
 */
export async function deleteKind(
  { objects, clock }: Pick<Dependencies, 'objects' | 'clock'>,
  { group, resource, plural = resource }: Contained,
  namespace: string,
): Promise<KindOutcome> {
  const nowMs = clock.nowMs();
  const pending: ObjectWrite[] = [];
  const held: KubeObject[] = [];
  let continueAfter: string | undefined;
  for (let page = 1; page <= PAGES_MAX; page += 1) {
    const list = await objects.list({ resource, namespace, limit: REMOVALS_MAX, ...defined({ continueAfter }) });
    for (const object of list.objects) {
      const write = deletionWrite(refOfObject(resource, object), object, nowMs);
      if (write.kind === 'update') held.push(object);
      // An object that is marked already stays as it is, until its grace period and its finalizers end.
      if (write.kind !== 'update' || write.object !== object) pending.push(write);
    }
    continueAfter = list.next;
    if (continueAfter === undefined || pending.length >= REMOVALS_MAX) break;
  }
  const { left, faults } = await commitInParts(objects, pending);
  if (faults.length > 0) throw new AggregateError(faults, `${left} objects could not be deleted`);
  return {
    remaining: {
      group,
      resource: plural,
      count: held.length + left,
      finalizers: held.flatMap(({ metadata }) => metadata.finalizers ?? []),
    },
    hasMore: continueAfter !== undefined && pending.length > 0,
    removed: pending.length,
  };
}

async function commitInParts(
  objects: Dependencies['objects'],
  writes: readonly ObjectWrite[],
): Promise<{ readonly left: number; readonly faults: readonly unknown[] }> {
  let left = 0;
  const faults: unknown[] = [];
  for (const part of inParts(writes, OBJECTS_PER_COMMIT)) {
    // An object that another writer changed is refused alone, and is in the next pass.
    const outcome = await workInHalves(part, UNBOUNDED, async (some) =>
      (await objects.commit({ writes: some })).kind === 'committed' ? 'done' : 'split',
    );
    left += outcome.left;
    faults.push(...outcome.faults);
  }
  return { left, faults };
}
