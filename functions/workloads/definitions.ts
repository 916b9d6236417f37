/**
 * CustomResourceDefinitions: the end of their objects, and names that become free.
 *
 * A deletion marks the definition. From then on no object is created (custom-resources/storage.ts), so the objects that
 * there are become fewer with each pass, and a pass that finds none is the last. A pass removes a bounded number of
 * them; the next one is due a second later. Each removal is conditional on the version that was read, so passes may run
 * twice or at once.
 *
 * Cost of a pass: a read of the objects that it removes, and the removals.
 */
import {
  asDefinition,
  conditionOf,
  isEstablished,
  type StoredDefinition,
  withCondition,
} from '../../shared/kinds/customresourcedefinitions/definition.ts';
import { decidedNames } from '../../shared/kinds/customresourcedefinitions/names-store.ts';
import {
  CLEANUP_FINALIZER,
  CUSTOM_RESOURCE_DEFINITIONS,
} from '../../shared/kinds/customresourcedefinitions/resource.ts';
import type { ObjectRef } from '../../shared/kinds/types.ts';
import { formatTime } from '../../shared/kubernetes/time.ts';
import { sectionWrites } from '../../shared/store/section-store.ts';
import type { WorkloadDependencies } from './dependencies.ts';
import { deleteKind } from './namespaces/reconcile.ts';
import { isReleased } from './owned-pods.rule.ts';
import type { SyncReport } from './owner.ts';

/** Passes of one sync: those that remove objects, and one that finds none. */
const PASSES_MAX = 3;
const CONTINUE_MS = 1_000;
/** Objects with finalizers are looked at so often. */
const LOOK_AT_FINALIZERS_MS = 15_000;
const DONE: SyncReport = {};

type Dependencies = Pick<WorkloadDependencies, 'objects' | 'items' | 'clock' | 'definitions'>;

const refOf = (name: string): ObjectRef => ({ resource: CUSTOM_RESOURCE_DEFINITIONS.resource, namespace: '', name });

export async function syncDefinition(dependencies: Dependencies, name: string): Promise<SyncReport> {
  const read = await dependencies.objects.get(refOf(name));
  if (read === undefined) return DONE;
  const definition = asDefinition(read);
  const isLeaving =
    definition.metadata.deletionTimestamp !== undefined &&
    (definition.metadata.finalizers ?? []).includes(CLEANUP_FINALIZER);
  if (isLeaving) return terminate(dependencies, name, definition);
  await acceptFreeNames(dependencies, definition.spec?.group ?? '');
  return DONE;
}

async function terminate(dependencies: Dependencies, name: string, definition: StoredDefinition): Promise<SyncReport> {
  const kind = { group: definition.spec?.group ?? '', resource: name };
  for (let pass = 1; pass <= PASSES_MAX; pass += 1) {
    const { remaining, hasMore, removed } = await deleteKind(dependencies, kind, '');
    if (hasMore) break;
    if (removed > 0) continue;
    if (remaining.count === 0) return finish(dependencies, name, definition);
    const report = { lookAgainAtMs: dependencies.clock.nowMs() + LOOK_AT_FINALIZERS_MS };
    const what = `${remaining.count} CustomResources remain: their finalizers are not removed`;
    return (await showProgress(dependencies, name, definition, what)) ? report : { lookAgainAtMs: soon(dependencies) };
  }
  await showProgress(dependencies, name, definition, 'CustomResource deletion is in progress');
  return { lookAgainAtMs: soon(dependencies) };
}

const soon = ({ clock }: Dependencies): number => clock.nowMs() + CONTINUE_MS;

/** False if another writer changed the definition first. */
async function showProgress(
  { objects, clock }: Dependencies,
  name: string,
  definition: StoredDefinition,
  message: string,
): Promise<boolean> {
  if (conditionOf(definition, 'Terminating')?.message === message) return true;
  const progress = { type: 'Terminating', status: 'True', reason: 'InstanceDeletionInProgress', message };
  const object = withCondition(definition, progress, formatTime(clock.nowMs()));
  const outcome = await objects.commit({
    writes: [{ kind: 'update', ref: refOf(name), object, previous: definition }],
  });
  return outcome.kind === 'committed';
}

/** No object is left: the definition is removed, with its sections, unless another finalizer holds it. */
async function finish(dependencies: Dependencies, name: string, definition: StoredDefinition): Promise<SyncReport> {
  const { objects, clock } = dependencies;
  const { finalizers = [], ...metadata } = definition.metadata;
  const kept = finalizers.filter((each) => each !== CLEANUP_FINALIZER);
  const next: StoredDefinition = {
    ...definition,
    metadata: { ...metadata, ...(kept.length > 0 && { finalizers: kept }) },
  };
  const ref = refOf(name);
  const previous = definition;
  const { sections = [] } = definition;
  const outcome = isReleased(next)
    ? await objects.commit({
        writes: [{ kind: 'delete', ref, previous }],
        extra: sectionWrites(name, { next: [], previous: sections, nowMs: clock.nowMs() }),
      })
    : await objects.commit({ writes: [{ kind: 'update', ref, object: next, previous }] });
  if (outcome.kind !== 'committed') return { lookAgainAtMs: soon(dependencies) };
  await acceptFreeNames(dependencies, definition.spec?.group ?? '');
  return DONE;
}

/** Definitions that wait for a name get it when no other has it. A refused write is repeated by the other writer. */
async function acceptFreeNames(dependencies: Dependencies, group: string): Promise<void> {
  const { definitions, objects, clock } = dependencies;
  const waiting = (await definitions.all()).filter(
    (each) =>
      each.spec?.group === group && (!isEstablished(each) || conditionOf(each, 'NamesAccepted')?.status !== 'True'),
  );
  for (const previous of waiting) {
    const { definition, writes } = await decidedNames(dependencies, previous, clock.nowMs());
    if (writes.length === 0) continue;
    const ref = refOf(previous.metadata.name ?? '');
    await objects.commit({ writes: [{ kind: 'update', ref, object: definition, previous }], extra: writes });
  }
}
